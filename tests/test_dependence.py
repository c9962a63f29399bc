import numpy as np
import pytest
from scipy import stats

import popcd
import popcd.dependence
import popcd.sampling
import reference
from laws import ALPHA
from machines import SHAPES, WIDE, weaker


def both_informations(rbm):
    """Mutual and lautum information by brute force over the joint table."""
    joint = reference.table(rbm) / reference.table(rbm).sum()
    product = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    return (joint * np.log(joint / product)).sum(), (product * np.log(product / joint)).sum()


def p_value(gap, error):
    return 2 * stats.norm.sf(abs(gap) / error)


@pytest.mark.parametrize("rbm", SHAPES, ids=["5x3", "3x5"])
def test_informations_are_those_of_the_joint_table(rbm, seed):
    mutual, lautum = both_informations(rbm)
    found = popcd.information(rbm, n_samples=200_000, seed=seed)
    np.testing.assert_allclose(found.total, mutual + lautum, rtol=1e-10)
    assert p_value(found.lautum - lautum, found.lautum_stderr) > ALPHA
    assert p_value(found.mutual - mutual, found.mutual_stderr) > ALPHA
    half = popcd.RBM(rbm.weights / 2, rbm.visible_bias, rbm.hidden_bias)
    assert p_value(found.lautum - both_informations(half)[1], found.lautum_stderr) < ALPHA
    assert found.total_stderr == 0
    np.testing.assert_allclose(found.ess_bound, np.exp(-found.lautum))
    assert found.method == "exact"


def test_the_bound_holds_for_perfect_chains():
    """ESS of single-proposal pop-CD with hidden states drawn from the model, by enumeration: 1 / E[w^2] < exp(-lautum)."""
    joint = reference.table(WIDE) / reference.table(WIDE).sum()
    weights = np.outer(joint.sum(axis=1), joint.sum(axis=0)) / joint
    lautum = both_informations(WIDE)[1]
    assert 1 / (joint * weights**2).sum() < np.exp(-lautum)


def test_sampled_information_agrees(monkeypatch, seed):
    for module in (popcd.dependence, popcd.sampling):
        monkeypatch.setattr(module, "AUTO_UNITS", 2)
    for name, value in {"LADDERS": 5_000, "_TEMPERATURES": 4, "_LEAST_SWEEPS": 60}.items():
        monkeypatch.setattr(popcd.sampling, name, value)
    mutual, lautum = both_informations(WIDE)
    found = popcd.information(WIDE, n_samples=10_000, seed=seed)
    assert found.method == "sampled"
    assert p_value(found.total - mutual - lautum, found.total_stderr) > ALPHA
    assert p_value(found.mutual - mutual, found.mutual_stderr) > ALPHA
    assert p_value(found.lautum - lautum, found.lautum_stderr) > ALPHA
    assert p_value(found.lautum - both_informations(weaker(WIDE))[1], found.lautum_stderr) < ALPHA


def test_too_few_samples_are_refused():
    with pytest.raises(ValueError, match="n_samples must be a whole number of at least 2, got 1"):
        popcd.information(WIDE, n_samples=1)
