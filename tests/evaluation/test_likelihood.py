import re
from pathlib import Path

import jax
import numpy as np
import pytest
from scipy import stats

import popcd
import reference
from laws import ALPHA
from machines import SHAPES, WIDE, machine, weaker
from popcd.evaluation.exact import log_unnormalised
from popcd.evaluation.likelihood import _combine
from popcd.evaluation.tempered import bennett, bennett_log_ratio, temper, tempered_moments
from popcd.evaluation.weights import LogMean, log_mean, pareto_k
from popcd.kernels import uniform_ladder

EXTERNAL = Path(__file__).parents[3] / "shared" / "data" / "external"
QUICK = {"n_chains": 500, "n_steps": 300, "n_temperatures": 6, "n_ladders": 50, "sweeps": 200}
both = pytest.mark.parametrize("rbm", SHAPES, ids=["5x3", "3x5"])


def z_test(gap, error):
    return 2 * stats.norm.sf(abs(gap) / error)


@both
@pytest.mark.parametrize("given", ["nothing", "data", "base"])
def test_ais_agrees_with_enumeration(rbm, seed, given):
    data = reference.states(rbm.n_visible)[[1, 3, 6]]
    options = {"nothing": {}, "data": {"data": data}, "base": {"base_bias": np.linspace(-1, 1, rbm.n_visible)}}[given]
    found = popcd.log_partition(rbm, "ais", seed=seed, **QUICK, **options)
    truth, details = reference.log_z(rbm), found.details
    assert z_test(found.value - truth, found.stderr) > ALPHA
    assert z_test(details["reverse"] - truth, details["reverse_stderr"]) > ALPHA
    assert stats.t.sf(abs(details["bennett"] - truth) / details["bennett_stderr"], 15) * 2 > ALPHA
    assert found.trustworthy, found.reason
    assert found.method == "ais"
    assert found.lower < found.value < found.upper + 4 * found.stderr
    other = reference.log_z(weaker(rbm))
    assert z_test(found.value - other, found.stderr) < ALPHA


def test_bennett_is_exact_on_all_states_and_needs_both_sides():
    """With every state weighed by repetition of equal counts, the balance is that of the partition functions."""
    n, rng = 200_000, np.random.default_rng(0)
    v, laws = reference.states(5), [reference.p_visible(WIDE.anneal(beta)) for beta in (0.5, 1.0)]
    ends = [np.log(reference.table(WIDE.anneal(beta)).sum(axis=1)) for beta in (0.5, 1.0)]
    below, above = ((ends[1] - ends[0])[rng.choice(len(v), n, p=law / law.sum())] for law in laws)
    truth = reference.log_z(WIDE) - reference.log_z(WIDE.anneal(0.5))
    assert abs(bennett(below[:, None], above[:, None]) - truth) < 0.01
    assert abs(bennett(below[:, None], below[:, None]) - truth) > 0.05


def test_the_jackknife_knows_the_spread_of_bennett(seed):
    """Standard errors of 20 independent runs against the scatter of their values: a ratio of chi-squares."""
    base = np.zeros(5)
    runs = [temper(jax.random.key(1000 * seed + i), WIDE, base, uniform_ladder(4), 32, 10, 3) for i in range(20)]
    values, errors = np.array([bennett_log_ratio(run) for run in runs]).T
    scatter = values.var(ddof=1) / np.mean(errors**2)
    assert stats.f.sf(scatter, 19, 300) > ALPHA
    assert stats.f.cdf(scatter, 19, 300) > ALPHA


def test_tempered_moments_and_their_noise(seed):
    found, noise = tempered_moments(jax.random.key(seed), WIDE, np.zeros(5), n_temperatures=5, n_ladders=160, sweeps=200)
    exact = popcd.evaluation.exact_moments(WIDE)
    off = np.square(reference.flat(found) - reference.flat(exact)).mean()
    assert off < 8 * noise
    assert np.square(reference.flat(found) - reference.flat(popcd.evaluation.exact_moments(weaker(WIDE)))).mean() > 8 * noise


def modes_apart(size=24, hidden=12, strength=3.0):
    """Two distant modes of unequal mass that short annealing cannot tell apart."""
    pattern = np.where(np.arange(size) < size // 3, 1.0, -1.0)
    weights = strength * pattern[:, None] * np.ones((1, hidden)) / 2
    return popcd.RBM(weights, visible_bias=-weights.sum(axis=1) / 2 * 0.98, hidden_bias=-weights.sum(axis=0) / 2)


def test_an_estimate_that_is_wrong_is_flagged():
    rbm = modes_apart()
    truth = popcd.log_partition(rbm).value
    poor = popcd.log_partition(rbm, "ais", n_chains=100, n_steps=3, n_temperatures=3, n_ladders=20, sweeps=20)
    assert abs(poor.value - truth) > 0.5
    assert not poor.trustworthy
    assert "use more steps, chains or sweeps" in poor.reason


def test_a_log_z_that_gives_the_data_more_than_all_probability_is_flagged():
    """All states as data have probability 1 together; with too small a log Z they have more."""
    truth, good = popcd.log_partition(WIDE).value, LogMean(0.0, 0.01, 0.01, 400.0, 0.1)
    states = reference.states(5).astype(np.uint8)

    def flagged(shift):
        side = good._replace(value=truth + shift)
        return _combine(WIDE, states, side, side, (truth + shift, 0.01), exchanges=1000)

    assert flagged(0.0).trustworthy
    assert "probability exp(" in flagged(-0.3).reason


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ess": 2.0}, "effective sample size of forward AIS is only 2.0"),
        ({"pareto_k": 0.9}, r"Pareto k 0.90"),
        ({"value": -5.0}, r"wider than 1 nat.*Bennett's estimate 0.00 is 5.00 nat away"),
        ({"value": 5.0}, r"lies above the upper bound"),
        ({"stderr": float("nan")}, "wider than 1 nat"),
    ],
)
def test_each_reason_for_distrust_is_said(change, words):
    good = LogMean(0.0, 0.01, 0.01, 400.0, 0.1)
    assert _combine(WIDE, None, good, good, (0.0, 0.01), 1000).trustworthy
    found = _combine(WIDE, None, good._replace(**change), good, (0.0, 0.01), 1000)
    assert not found.trustworthy
    assert re.search(words, found.reason)


def test_replicas_that_do_not_exchange_are_distrusted():
    good = LogMean(0.0, 0.01, 0.01, 400.0, 0.1)
    found = _combine(WIDE, None, good, good, (0.0, 0.01), exchanges=3)
    assert "exchanged only 3 times across one gap" in found.reason


def test_log_mean_and_its_errors(seed):
    log_weights = 0.5 * np.random.default_rng(seed).normal(size=4000) + 700
    found = log_mean(log_weights)
    truth = 700 + 0.125
    assert z_test(found.value - truth, found.stderr) > ALPHA
    assert z_test(found.value - truth - 0.1, found.stderr) < ALPHA
    np.testing.assert_allclose(found.bootstrap, found.stderr, rtol=0.2)
    np.testing.assert_allclose(found.stderr, np.sqrt(np.expm1(0.25) / 4000), rtol=0.2)
    np.testing.assert_allclose(found.ess, 4000 * np.exp(-0.25), rtol=0.1)


@pytest.mark.parametrize("k", [0.2, 0.5, 0.9])
def test_pareto_k_of_pareto_weights(seed, k):
    """exp(k x) with x exponential has a Pareto tail of shape k; the fit's asymptotic variance is (1 + k)^2 / tail."""
    n = 20_000
    found = pareto_k(k * np.random.default_rng(seed).exponential(size=n))
    assert z_test(found - k, (1 + k) / np.sqrt(3 * np.sqrt(n)) + 0.02) > ALPHA


def test_pareto_k_of_few_and_of_equal_weights():
    assert np.isnan(pareto_k(np.zeros(10)))
    assert pareto_k(np.zeros(100)) == -np.inf


def test_pseudo_log_likelihood_is_that_of_the_table(seed):
    rbm, v = machine(4, 6), reference.states(4)
    p = reference.p_visible(rbm)
    rows = v[np.random.default_rng(seed).integers(0, 16, 100_000)]
    expected = np.zeros(16)
    for i in range(4):
        flipped = v.copy()
        flipped[:, i] = 1 - flipped[:, i]
        expected += np.log(p / (p + p[reference.index(flipped)]))
    found = popcd.pseudo_log_likelihood(rbm, rows)
    np.testing.assert_allclose(found.rows, expected[reference.index(rows)], rtol=1e-4)
    np.testing.assert_allclose(found.value, found.rows.mean())


def test_progress_runs_from_the_first_to_the_last_piece_of_work():
    seen = []
    popcd.log_partition(WIDE, "ais", progress=lambda *done: seen.append(done), **QUICK)
    done = [d for d, _ in seen]
    assert done == sorted(done)
    assert seen[-1][0] == seen[-1][1] == 200 + 2 * 300


def test_the_same_seed_gives_the_same_estimate():
    values = [popcd.log_partition(WIDE, "ais", seed=s, **QUICK).value for s in (1, 1, 2)]
    assert values[0] == values[1] != values[2]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"base_bias": np.zeros(4)}, "base_bias has 4 numbers, but the machine has 5 visible units"),
        ({"base_bias": np.full(5, np.nan)}, "base_bias must be finite"),
        ({"data": np.eye(4)}, "data has 4 columns"),
        ({"n_chains": 0}, "n_chains must be"),
        ({"n_steps": 0}, "n_steps must be"),
        ({"sweeps": 0}, "sweeps must be"),
        ({"n_ladders": 0}, "n_ladders must be"),
    ],
)
def test_bad_options_are_named(options, words):
    with pytest.raises(ValueError, match=words):
        popcd.log_partition(WIDE, "ais", **options)


def published():
    if not EXTERNAL.exists():
        pytest.skip("the published machines are not beside the repository")
    with np.load(EXTERNAL / "sm2008_cd25_500.npz") as z:
        rbm = popcd.RBM(weights=z["W"], visible_bias=z["b"], hidden_bias=z["c"])
    with np.load(EXTERNAL / "binarized_mnist_test.npz") as z:
        return rbm, np.unpackbits(z["test"], axis=1)[:, :784]


def test_unnormalised_log_probability_of_the_published_machine():
    np.testing.assert_allclose(log_unnormalised(*published()).mean(), 364.94234, atol=1e-3)


@pytest.mark.slow
def test_log_z_of_the_published_machine():
    rbm, rows = published()
    found = popcd.log_likelihood(rbm, rows)
    print(found.value, found.stderr, found.lower, found.upper, found.reason, found.details)
    assert found.trustworthy, found.reason
    assert found.upper - found.lower < 1
    assert found.lower < -86.34 < found.upper
    assert z_test(found.details["forward"] - 451.28, found.details["forward_stderr"]) > ALPHA
