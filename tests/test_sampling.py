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
    for name, value in {"AUTO_UNITS": 2, "_LADDERS": 20_000, "_TEMPERATURES": 4, "_LEAST_SWEEPS": 60}.items():
        monkeypatch.setattr(popcd.sampling, name, value)
    assert pearson(reference.index(popcd.sample(WIDE, 20_000, seed)), reference.p_visible(WIDE)) > ALPHA
    assert pearson(reference.index(popcd.sample(weaker(WIDE), 20_000, seed)), reference.p_visible(WIDE)) < ALPHA
    assert popcd.sample(WIDE, 30, seed).shape == (30, 5)


def test_bad_n_is_refused():
    with pytest.raises(ValueError, match="n must be a whole number of at least 1, got 0"):
        popcd.sample(WIDE, 0)
