import numpy as np
import pytest
from scipy import stats

import popcd
from laws import ALPHA


def two_states(coupling):
    """One visible and one hidden unit, and the autocorrelation time of every feature of the chain."""
    rbm = popcd.RBM(np.array([[coupling]]), np.array([-coupling / 2]), np.array([-coupling / 2]))
    joint = np.exp([[0, -coupling / 2], [-coupling / 2, 0]])
    transition = (joint / joint.sum(axis=1, keepdims=True)) @ (joint / joint.sum(axis=0)).T
    second = np.trace(transition) - 1
    return rbm, (1 + second) / (1 - second)


@pytest.mark.parametrize("coupling", [1.0, 4.0, 6.0])
def test_the_time_of_a_chain_of_two_states_is_that_of_its_second_eigenvalue(coupling, seed):
    rbm, expected = two_states(coupling)
    found = popcd.mixing(rbm, n_chains=200, sweeps=4_000, seed=seed)
    assert found.reached
    bias = 0.02 * expected  # the window leaves out exp(-5) of the sum, twice
    assert abs(found.autocorrelation_time - expected) < stats.norm.isf(ALPHA / 2) * found.stderr + bias
    _, other = two_states(coupling + 1)
    assert abs(found.autocorrelation_time - other) > stats.norm.isf(ALPHA / 2) * found.stderr + bias


def test_modes_of_equal_free_energy_are_seen():
    """Artificial Modes: chains never leave their mode, whose free energies are all alike."""
    data = popcd.datasets.load("artificial-modes").train
    run = popcd.train(popcd.RBM.create(16, 8, data=data), data, popcd.pop_cd(), iterations=3_000, batch_size=500)
    found = popcd.mixing(run.rbm, sweeps=500)
    assert found.autocorrelation_time > 50
    assert not found.reached


def test_bad_numbers_are_refused():
    with pytest.raises(ValueError, match="n_chains must be a whole number of at least 2, got 1"):
        popcd.mixing(two_states(1.0)[0], n_chains=1)
