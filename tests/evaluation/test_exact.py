from pathlib import Path

import jax
import numpy as np
import pytest

import popcd
import reference
from machines import SHAPES, WIDE, machine
from popcd.evaluation import exact_gradient, exact_moments

EXTERNAL = Path(__file__).parents[3] / "shared" / "data" / "external"


@pytest.mark.parametrize("rbm", SHAPES, ids=["5x3", "3x5"])
def test_log_z_is_that_of_the_joint_table(rbm):
    estimate = popcd.log_partition(rbm)
    np.testing.assert_allclose(estimate.value, reference.log_z(rbm), rtol=1e-12)
    assert (estimate.stderr, estimate.method, estimate.ess, estimate.trustworthy) == (0.0, "exact", None, True)
    assert estimate.lower == estimate.upper == estimate.value


@pytest.mark.parametrize("scale", [0.7, 20.0], ids=["factored", "direct"])
def test_many_blocks(scale):
    """15 units in blocks of 2**8 states, with weights small and large, against a direct sum in NumPy."""
    rbm = machine(20, 15, scale=scale)
    w, b, c = reference.parameters(rbm)
    h = reference.states(15)
    terms = h @ c + np.logaddexp(0, h @ w.T + b).sum(axis=1)
    np.testing.assert_allclose(popcd.log_partition(rbm).value, np.logaddexp.reduce(terms), rtol=1e-12)


def test_thousands_of_units_on_the_other_side():
    rbm = machine(2500, 3, scale=0.5)
    w, b, c = reference.parameters(rbm)
    h = reference.states(3)
    terms = h @ c + np.logaddexp(0, h @ w.T + b).sum(axis=1)
    np.testing.assert_allclose(popcd.log_partition(rbm).value, np.logaddexp.reduce(terms), rtol=1e-12)
    np.testing.assert_allclose(popcd.log_partition(rbm.mirror()).value, np.logaddexp.reduce(terms), rtol=1e-12)


def test_huge_weights_do_not_overflow():
    rbm = popcd.RBM(weights=np.full((3, 2), 5000.0), visible_bias=np.full(3, -1.0), hidden_bias=np.full(2, -2.0))
    np.testing.assert_allclose(popcd.log_partition(rbm).value, 30_000 - 3 - 4, rtol=1e-12)


def all_moments(rbm):
    joint = reference.table(rbm) / reference.table(rbm).sum()
    v, h = reference.states(rbm.n_visible), reference.states(rbm.n_hidden)
    return v.T @ joint @ h, joint.sum(axis=1) @ v, joint.sum(axis=0) @ h


@pytest.mark.parametrize("rbm", [*SHAPES, machine(4, 3, scale=40.0)], ids=["5x3", "3x5", "large weights"])
def test_moments_are_those_of_the_joint_table(rbm):
    for found, expected in zip(reference.parameters(exact_moments(rbm)), all_moments(rbm), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-14)


def test_moments_of_many_blocks():
    """Differences of log Z are its derivatives: E[v h'] by central differences, in a machine of 2**4 blocks."""
    rbm = machine(14, 12, scale=0.5)
    w, b, c = reference.parameters(rbm)
    moments, size = exact_moments(rbm), 1e-5

    def log_z(i, j, change):
        moved = w.copy()
        moved[i, j] += change
        return popcd.log_partition(popcd.RBM(moved, b, c)).value

    for i, j in [(0, 0), (13, 2), (5, 11), (9, 8)]:
        slope = (log_z(i, j, size) - log_z(i, j, -size)) / (2 * size)
        np.testing.assert_allclose(moments.weights[i, j], slope, rtol=1e-7)


@pytest.mark.parametrize("rbm", SHAPES, ids=["5x3", "3x5"])
def test_the_exact_gradient_is_that_of_the_table(rbm):
    data = reference.states(rbm.n_visible)[[1, 2, 2, 7]]
    expected = reference.expected_gradient(rbm, data, reference.p_visible(rbm))
    np.testing.assert_allclose(reference.flat(exact_gradient(rbm, data)), expected, rtol=1e-10, atol=1e-14)


def test_mean_log_likelihood_over_more_rows_than_a_block():
    p = reference.p_visible(WIDE)
    numbers = np.random.default_rng(0).integers(0, 32, 10_000)
    found = popcd.log_likelihood(WIDE, reference.states(5)[numbers])
    np.testing.assert_allclose(found.value, np.log(p[numbers]).mean(), rtol=1e-12)
    assert (found.stderr, found.method) == (0.0, "exact")
    assert found.lower == found.upper == found.value
    np.testing.assert_allclose(found.rows, np.log(p[numbers]), rtol=1e-12)
    np.testing.assert_allclose(found.rows_stderr, np.log(p[numbers]).std(ddof=1) / 100)


def test_single_precision_machines_lose_nothing_further():
    rbm = jax.tree.map(jax.numpy.float32, WIDE)
    np.testing.assert_allclose(popcd.log_partition(rbm).value, reference.log_z(rbm), rtol=1e-12)


@pytest.mark.parametrize(("name", "log_z"), [("pylearn2_mnist_15", 215.138405525), ("pydeep_4x4", 59.67490197)])
def test_published_machines(name, log_z):
    file = EXTERNAL / f"{name}.npz"
    if not file.exists():
        pytest.skip("the published machines are not beside the repository")
    with np.load(file) as z:
        rbm = popcd.RBM(weights=z["W"], visible_bias=z["b"], hidden_bias=z["c"])
    np.testing.assert_allclose(popcd.log_partition(rbm).value, log_z, atol=1e-6)


def test_bad_requests_are_named():
    with pytest.raises(ValueError, match=r"has 31 units: enumeration would sum 2\*\*31 states .* at most 30 .*method='ais'"):
        popcd.log_partition(popcd.RBM.create(40, 31), method="exact")
    with pytest.raises(ValueError, match="unknown method 'guess': expected one of auto, exact, ais"):
        popcd.log_partition(WIDE, method="guess")
    with pytest.raises(ValueError, match="4 columns, but the machine has 5 visible units"):
        popcd.log_likelihood(WIDE, np.eye(4))
    broken = jax.tree.map(lambda leaf: leaf * np.nan, WIDE)
    with pytest.raises(ValueError, match="weights must be finite, got nan"):
        popcd.log_partition(broken)
