import jax
import jax.numpy as jnp
import numpy as np
import pytest

import popcd
import popcd.sampling
import reference
from laws import ALPHA, pearson
from machines import SHAPES, WIDE, machine, weaker
from popcd.sampling import clamped_sweep

both = pytest.mark.parametrize("rbm", SHAPES, ids=["5x3", "3x5"])


@both
def test_pairs_follow_the_joint_table(rbm, seed):
    joint = reference.table(rbm) / reference.table(rbm).sum()

    def found(machine):
        visible, hidden = popcd.sampling.sample_pairs(machine, 100_000, seed)
        return reference.index(visible) * joint.shape[1] + reference.index(hidden)

    assert pearson(found(rbm), joint.ravel()) > ALPHA
    assert pearson(found(weaker(rbm)), joint.ravel()) < ALPHA


def test_draws_of_many_blocks_follow_the_model(seed):
    """11 units on the smaller side: the first three visible units are counted."""
    rbm = machine(12, 11, scale=0.6)
    states = reference.states(12)
    log_p = np.asarray(-rbm.free_energy(states), np.float64)
    p = np.exp(log_p - np.logaddexp.reduce(log_p))
    marginal = np.bincount(reference.index(states[:, :3]), weights=p)
    drawn = popcd.sample(rbm, n=50_000, seed=seed)
    assert drawn.dtype == np.uint8
    assert pearson(reference.index(drawn[:, :3]), marginal) > ALPHA
    assert pearson(reference.index(1 - drawn[:, :3]), marginal) < ALPHA


def test_tempered_draws_follow_the_model(seed, monkeypatch):
    """One draw from each of many independent ladders."""
    for name, value in {"AUTO_UNITS": 2, "LADDERS": 20_000, "_TEMPERATURES": 4, "_LEAST_SWEEPS": 60}.items():
        monkeypatch.setattr(popcd.sampling, name, value)
    assert pearson(reference.index(popcd.sample(WIDE, 20_000, seed)), reference.p_visible(WIDE)) > ALPHA
    assert pearson(reference.index(popcd.sample(weaker(WIDE), 20_000, seed)), reference.p_visible(WIDE)) < ALPHA
    assert popcd.sample(WIDE, 30, seed).shape == (30, 5)


def test_tempered_draws_find_both_of_two_distant_modes(seed, monkeypatch):
    """One mode holds nearly all of the mass, and chains of a ladder from the machine's own biases begin in the other."""
    pattern = np.where(np.arange(24) < 8, 1.0, -1.0)
    weights = 1.5 * pattern[:, None] * np.ones((1, 12))
    rbm = popcd.RBM(weights, visible_bias=-weights.sum(axis=1) / 2 * 0.98, hidden_bias=-weights.sum(axis=0) / 2)
    exact = popcd.sample(rbm, 2_000, seed)[:, 0].mean()
    monkeypatch.setattr(popcd.sampling, "AUTO_UNITS", 2)
    monkeypatch.setattr(popcd.sampling, "LADDERS", 200)
    assert abs(popcd.sample(rbm, 200, seed)[:, 0].mean() - exact) < 6 * np.sqrt(exact * (1 - exact) / 200) + 0.02


def test_bad_n_is_refused():
    with pytest.raises(ValueError, match="n must be a whole number of at least 1, got 0"):
        popcd.sample(WIDE, 0)


def test_gibbs_chains_that_start_at_the_model_stay_there(seed):
    """And they move: three sweeps from one state have the law of the kernel's third power."""
    start = reference.states(5)[np.random.default_rng(seed).choice(32, 20_000, p=reference.p_visible(WIDE))]

    def found(rbm, rows):
        return reference.index(popcd.sample(rbm, 20_000, seed, method="gibbs", start=rows, sweeps=3))

    assert pearson(found(WIDE, start), reference.p_visible(WIDE)) > ALPHA
    assert pearson(found(weaker(weaker(WIDE)), start), reference.p_visible(WIDE)) < ALPHA
    joint = reference.table(WIDE)
    transition = (joint / joint.sum(axis=1, keepdims=True)) @ (joint / joint.sum(axis=0)).T
    assert pearson(found(WIDE, np.ones((1, 5))), np.linalg.matrix_power(transition, 3)[-1]) > ALPHA
    assert pearson(found(WIDE, np.ones((1, 5))), np.linalg.matrix_power(transition, 2)[-1]) < ALPHA


def test_missing_units_follow_their_law_given_the_known_ones(seed):
    """Two kinds of rows, each with its own units missing; the twin does not see the known ones."""
    p = reference.p_visible(WIDE).reshape(2, 2, 2, 2, 2)
    rows = np.full((40_000, 5), np.nan)
    rows[::2, [0, 3]] = [1, 0]
    rows[1::2, [1, 2, 4]] = [0, 1, 1]
    first, second = p[1, :, :, 0, :].ravel(), p[:, 0, 1, :, 1].ravel()
    drawn = popcd.complete(WIDE, rows, sweeps=60, seed=seed)
    np.testing.assert_array_equal(drawn[~np.isnan(rows)], rows[~np.isnan(rows)])
    assert pearson(reference.index(drawn[::2, [1, 2, 4]]), first / first.sum()) > ALPHA
    assert pearson(reference.index(drawn[1::2, [0, 3]]), second / second.sum()) > ALPHA
    blind = popcd.complete(WIDE, np.full((40_000, 5), np.nan), sweeps=60, seed=seed)
    assert pearson(reference.index(blind[::2, [1, 2, 4]]), first / first.sum()) < ALPHA


def test_rows_without_anything_missing_come_back():
    rows = np.array([[0, 1, 1, 0, 1]], np.int8)
    np.testing.assert_array_equal(popcd.complete(WIDE, rows, sweeps=3), rows)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: popcd.sample(WIDE, 3, method="magic"), ValueError, "method"),
        (lambda: popcd.sample(WIDE, 3, start=np.ones((1, 5))), ValueError, "start is where chains of method 'gibbs' begin"),
        (lambda: popcd.sample(machine(30, 25), 3, method="exact"), ValueError, "at most 20 units, got 25; use 'tempering'"),
        (lambda: popcd.complete(WIDE, np.array([["a"] * 5])), TypeError, "got dtype <U1"),
        (lambda: popcd.complete(WIDE, np.full((1, 5), 0.5)), ValueError, "must hold only 0 and 1, got 0.5"),
        (lambda: popcd.complete(WIDE, np.full((1, 4), np.nan)), ValueError, "4 columns"),
    ],
)
def test_bad_requests_are_named(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_a_sweep_with_nothing_known_is_a_gibbs_sweep(seed):
    """So what is shown of the bits of Gibbs sweeps holds here, too."""
    key, start = jax.random.key(seed), jnp.zeros((50, 5))
    free = clamped_sweep(key, start, jnp.ones((50, 5), bool), WIDE)
    np.testing.assert_array_equal(free, popcd.kernels.sweep(key, start, WIDE)[0])
