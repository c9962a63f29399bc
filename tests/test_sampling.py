import numpy as np
import pytest

import popcd
import popcd.sampling
import reference
from laws import ALPHA, pearson
from machines import SHAPES, WIDE, machine, weaker

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
