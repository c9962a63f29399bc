import numpy as np
import pytest

from popcd.evaluation.power_law import Slope, fit_slope


def test_the_slope_is_that_of_weighted_least_squares():
    size, value, error = [10, 50, 400, 3000], np.array([3.0, 1.1, 0.2, 0.01]), np.array([0.3, 0.05, 0.01, 0.004])
    x, y, sigma = np.log(size), np.log(value), error / value
    expected, covariance = np.polyfit(x, y, 1, w=1 / sigma, cov="unscaled")
    found = fit_slope(size, value, error, law=-1)
    np.testing.assert_allclose(found.value, expected[0])
    chi2 = np.square((y - np.polyval(expected, x)) / sigma).sum()
    assert chi2 > 2  # these points scatter more than their errors allow
    np.testing.assert_allclose(found.stderr, np.sqrt(covariance[0, 0] * chi2 / 2))
    wide = fit_slope(size, value, 10 * error, law=-1)
    np.testing.assert_allclose(wide.value, expected[0])
    np.testing.assert_allclose(wide.stderr, 10 * np.sqrt(covariance[0, 0]))


def test_points_without_a_logarithm_or_an_error_do_not_count():
    found = fit_slope([1, 10, 100, 1000], [1.0, 0.1, -0.3, 0.0], [0.1, 0.01, 0.1, 0.0], law=-1)
    np.testing.assert_allclose(found.value, -1)
    assert fit_slope([1, 10], [1.0, -1.0], [0.1, 0.1], law=-1) is None


@pytest.mark.parametrize(
    ("value", "stderr", "law", "verdict"),
    [
        (-1.02, 0.01, -1, "falls as 1/N"),
        (-1.9, 0.05, -2, "falls as 1/N^2"),
        (0.02, 0.01, -1, "does not fall"),
        (-0.5, 0.3, -1, "undecided"),
        (-0.5, 0.1, -1, "falls slower than 1/N"),
        (-1.5, 0.1, -1, "falls faster than 1/N"),
        (0.5, 0.1, -2, "grows"),
    ],
)
def test_verdicts(value, stderr, law, verdict):
    assert Slope(value, stderr, law).verdict == verdict
