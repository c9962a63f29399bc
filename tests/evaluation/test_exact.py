from pathlib import Path

import jax
import numpy as np
import pytest

import popcd
import reference
from machines import SHAPES, WIDE, machine

EXTERNAL = Path(__file__).parents[3] / "shared" / "data" / "external"


@pytest.mark.parametrize("rbm", SHAPES, ids=["5x3", "3x5"])
def test_log_z_is_that_of_the_joint_table(rbm):
    estimate = popcd.log_partition(rbm)
    np.testing.assert_allclose(estimate.value, reference.log_z(rbm), rtol=1e-12)
    assert estimate == (estimate.value, 0.0, estimate.value, estimate.value, "exact", None)


def test_many_blocks():
    """15 units in blocks of 2**13 states, against a direct sum in NumPy."""
    rbm = machine(20, 15, scale=0.7)
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
    np.testing.assert_allclose(popcd.log_partition(rbm.mirror()).value, np.logaddexp.reduce(terms), rtol=1e-6)


def test_huge_weights_do_not_overflow():
    rbm = popcd.RBM(weights=np.full((3, 2), 5000.0), visible_bias=np.full(3, -1.0), hidden_bias=np.full(2, -2.0))
    np.testing.assert_allclose(popcd.log_partition(rbm).value, 30_000 - 3 - 4, rtol=1e-12)


def test_mean_log_likelihood_over_more_rows_than_a_block():
    p = reference.p_visible(WIDE)
    numbers = np.random.default_rng(0).integers(0, 32, 10_000)
    found = popcd.log_likelihood(WIDE, reference.states(5)[numbers])
    np.testing.assert_allclose(found.value, np.log(p[numbers]).mean(), rtol=1e-12)
    assert (found.stderr, found.method) == (0.0, "exact")
    assert found.lower == found.upper == found.value


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
    with pytest.raises(ValueError, match=r"31 units: enumeration would sum 2\*\*31 states; at most 30"):
        popcd.log_partition(popcd.RBM.create(40, 31))
    with pytest.raises(ValueError, match="unknown method 'guess': expected one of auto, exact"):
        popcd.log_partition(WIDE, method="guess")
    with pytest.raises(ValueError, match="4 columns, but the machine has 5 visible units"):
        popcd.log_likelihood(WIDE, np.eye(4))
