import sys

import numpy as np
import pytest
from scipy import stats

import popcd
import reference
from laws import ALPHA
from machines import SHAPES, WIDE, machine, weaker

both = pytest.mark.parametrize("rbm", SHAPES, ids=["5x3", "3x5"])


def cd_figures(rbm, data, k):
    """Bias and variance per parameter of CD-k on the full batch, from the powers of the Gibbs matrix."""
    f = reference.statistics(rbm)
    laws = np.linalg.matrix_power(reference.gibbs_matrix(rbm), k)[reference.index(data)]
    truth = reference.expected_gradient(rbm, data, reference.p_visible(rbm))
    mean = reference.expected_gradient(rbm, data, laws.mean(axis=0))
    variance = sum(law @ f**2 - (law @ f) ** 2 for law in laws) / len(data) ** 2
    return np.square(mean - truth).mean(), variance.mean()


def p_value(gap, error):
    return 2 * stats.t.sf(abs(gap) / error, 19)


@both
@pytest.mark.parametrize("k", [1, 3])
def test_bias_and_variance_of_cd_are_those_of_the_gibbs_matrix(rbm, seed, k):
    data = reference.states(rbm.n_visible)[[0, 1, 3, 5, 6]]
    bias, variance = cd_figures(rbm, data, k)
    found = popcd.gradient_error(rbm, data, popcd.cd(k), batch_size=5, repeats=20_000, seed=seed)
    assert p_value(found.bias_corrected - bias, found.bias_stderr) > ALPHA
    assert p_value(found.variance - variance, found.variance_stderr) > ALPHA
    truth, twin = popcd.evaluation.exact_gradient(rbm, data), weaker(weaker(weaker(rbm)))
    wrong = popcd.gradient_error(twin, data, popcd.cd(k), batch_size=5, repeats=20_000, seed=seed, truth=truth)
    off = (wrong.variance - variance) / wrong.variance_stderr, (wrong.bias_corrected - bias) / wrong.bias_stderr
    assert p_value(max(map(abs, off)), 1) < ALPHA
    assert (found.truth, wrong.truth, found.repeats) == ("exact", "given", 20_000)


def test_fresh_batches_have_the_variance_of_draws_without_replacement(seed):
    """With the exact negative phase only the batch is random: (1/n - 1/N) times the variance of f over the rows."""
    data = reference.states(5)[:20]
    f = reference.statistics(WIDE)[reference.index(data)]
    found = popcd.gradient_error(WIDE, data, popcd.exact(), batch_size=4, repeats=5_000, seed=seed)
    expected = f.var(axis=0, ddof=1).mean() * (1 / 4 - 1 / 20)
    assert p_value(found.variance - expected, found.variance_stderr) > ALPHA
    assert p_value(found.variance - expected * 20 / 16, found.variance_stderr) < ALPHA
    assert found.bias_corrected < 6 * found.bias_stderr
    np.testing.assert_allclose(found.noise_floor, found.variance / 5_000)


def test_a_tempered_truth_serves_where_enumeration_does_not(monkeypatch, seed):
    monkeypatch.setattr(sys.modules["popcd.evaluation.true_gradient"], "AUTO_UNITS", 2)
    data = reference.states(5)[[0, 1, 3, 5, 6]]
    tempering = {"n_temperatures": 5, "n_ladders": 160, "sweeps": 400}
    found = popcd.gradient_error(WIDE, data, popcd.exact(), batch_size=5, repeats=50, seed=seed, **tempering)
    assert found.truth == "tempered"
    assert 0 < found.truth_swap_rate < 1
    # the mean square of correlated parameters is spread no wider than that of one
    assert 0 < found.bias < stats.chi2.isf(ALPHA, 1) * found.noise_floor
    np.testing.assert_allclose(found.variance, 0, atol=1e-10)
    truth = popcd.evaluation.true_gradient(WIDE, data, seed=seed, **tempering)
    again = popcd.gradient_error(WIDE, data, popcd.exact(), batch_size=5, repeats=50, seed=seed, truth=truth)
    assert again == found


@pytest.mark.parametrize("estimator", [popcd.pcd(), popcd.pt(3)], ids=str)
def test_persistent_chains_do_not_depend_on_the_order_of_the_rows(estimator, seed):
    """Two far modes, sorted: chains that all began at the first rows would sit in one of them, with a bias near 1/4."""
    data = np.repeat([[0] * 12, [1] * 12], 100, axis=0)
    weights = 2.0 + 0.01 * np.arange(12)[:, None]
    rbm = popcd.RBM(weights, -weights[:, 0] / 2, -weights.sum(axis=0) / 2)
    for rows in (data, data[::-1]):
        found = popcd.gradient_error(rbm, rows, estimator, batch_size=50, repeats=40, seed=seed)
        # each of 50 chains begins in either mode: the mean of their states deviates by at most 1 / sqrt(4 * 50)
        assert found.bias < stats.norm.isf(ALPHA) ** 2 / 200 < 0.25


def test_the_floor_of_persistent_chains_knows_of_their_autocorrelation(seed):
    data, slow = reference.states(5)[:16], machine(5, 3, scale=2.5)
    found = popcd.gradient_error(slow, data, popcd.pcd(), batch_size=16, repeats=5_000, seed=seed)
    assert found.noise_floor > 2 * found.variance / found.repeats


def test_what_is_not_an_estimator_is_refused():
    with pytest.raises(TypeError, match=r"estimator must be a popcd.Estimator, got 'cd'"):
        popcd.gradient_error(WIDE, reference.states(5), "cd", batch_size=4)


def test_persistent_chains_and_larger_populations():
    data = reference.states(5)[:16]
    for estimator in (popcd.pcd(n_chains=7), popcd.pt(3), popcd.pop_cd(n_particles=50)):
        found = popcd.gradient_error(WIDE, data, estimator, batch_size=4, repeats=200)
        assert found.variance > 0
    assert 1 < found.ess < 50


def test_progress_and_any_number_of_repeats():
    seen = []
    data = reference.states(5)[:8]
    popcd.gradient_error(WIDE, data, popcd.cd(), batch_size=8, repeats=7, progress=lambda *done: seen.append(done))
    assert seen[-1] == (7, 7)
    one = popcd.gradient_error(WIDE, data, popcd.cd(), batch_size=8, repeats=777, seed=3)
    two = popcd.gradient_error(WIDE, data, popcd.cd(), batch_size=8, repeats=777, seed=3)
    assert one == two


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch_size": 9}, "batch_size must be at most the number of rows, 8, got 9"),
        ({"repeats": 2}, "repeats must be a whole number of at least 3, got 2"),
        ({"truth": popcd.RBM.create(3, 5)}, r"truth has weights of shape \(3, 5\), the machine \(5, 3\)"),
        ({"data": np.eye(4)}, "4 columns"),
    ],
)
def test_bad_input_is_named(options, words):
    settings = {"data": reference.states(5)[:8], "batch_size": 8, "repeats": 10} | options
    with pytest.raises(ValueError, match=words):
        popcd.gradient_error(WIDE, settings.pop("data"), popcd.cd(), **settings)
