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
from popcd.evaluation.bracket import combine
from popcd.evaluation.exact import log_unnormalised
from popcd.evaluation.tempered import bennett, bennett_log_ratio, temper, tempered_moments
from popcd.evaluation.weights import LogMean, log_mean, pareto_k
from popcd.kernels import uniform_ladder

EXTERNAL = Path(__file__).parents[3] / "shared" / "data" / "external"
QUICK = {"n_chains": 500, "n_steps": 300, "n_temperatures": 6, "n_ladders": 50, "sweeps": 200}
both = pytest.mark.parametrize("rbm", SHAPES, ids=["5x3", "3x5"])


def z_test(gap, error):
    return 2 * stats.norm.sf(abs(gap) / error)


def t_test(gap, error, freedom):
    return 2 * stats.t.sf(abs(gap) / error, freedom)


@both
@pytest.mark.parametrize("given", ["nothing", "data", "base"])
def test_ais_agrees_with_enumeration(rbm, seed, given):
    data = reference.states(rbm.n_visible)[[1, 3, 6]]
    options = {"nothing": {}, "data": {"data": data}, "base": {"base_bias": np.linspace(-1, 1, rbm.n_visible)}}[given]
    found = popcd.log_partition(rbm, "ais", seed=seed, **QUICK, **options)
    truth, details = reference.log_z(rbm), found.details
    assert z_test(found.value - truth, found.stderr) > ALPHA
    assert t_test(details["reverse"] - truth, details["reverse_stderr_delta"], 49) > ALPHA
    assert t_test(details["bennett"] - truth, details["bennett_stderr"], 15) > ALPHA
    assert (found.method, details["forward"]) == ("ais", found.value)
    assert found.lower == pytest.approx(found.value - 2 * found.stderr)
    assert found.upper > details["reverse"]
    other = reference.log_z(weaker(weaker(rbm)))
    assert z_test(found.value - other, found.stderr) < ALPHA


def test_bennett_balances_the_partition_functions(seed):
    """Independent samples of both neighbours; the error of Delta follows from that of the balance it solves."""
    n, rng = 200_000, np.random.default_rng(seed)
    v, laws = reference.states(5), [reference.p_visible(WIDE.anneal(beta)) for beta in (0.5, 1.0)]
    ends = [np.log(reference.table(WIDE.anneal(beta)).sum(axis=1)) for beta in (0.5, 1.0)]
    below, above = ((ends[1] - ends[0])[rng.choice(len(v), n, p=law / law.sum())] for law in laws)
    truth = reference.log_z(WIDE) - reference.log_z(WIDE.anneal(0.5))

    def p_value(below, above):
        up, down = (1 / (1 + np.exp(-x)) for x in (below - truth, truth - above))
        error = np.sqrt((up.var() + down.var()) / n) / ((up * (1 - up)).mean() + (down * (1 - down)).mean())
        return z_test(bennett(below[:, None], above[:, None]) - truth, error)

    assert p_value(below, above) > ALPHA
    assert p_value(below, below) < ALPHA


def test_bennett_refuses_what_is_not_finite():
    with pytest.raises(ValueError, match="not finite"):
        bennett(np.array([[np.inf]]), np.array([[0.0]]))


def test_the_jackknife_knows_the_spread_of_bennett(seed):
    """Standard errors of 20 independent runs against the scatter of their values: a ratio of chi-squares."""
    base = np.zeros(5)
    runs = [temper(jax.random.key(1000 * seed + i), WIDE, base, uniform_ladder(4), 32, 10, 3) for i in range(20)]
    values, errors = np.array([bennett_log_ratio(run) for run in runs]).T
    scatter = values.var(ddof=1) / np.mean(errors**2)
    assert stats.f.sf(scatter, 19, 300) > ALPHA
    assert stats.f.cdf(scatter, 19, 300) > ALPHA


def test_tempered_moments_and_their_noise(seed):
    """The mean square over 23 correlated parameters is at most that many times one chi-square; the twin is far beyond."""
    key, limit = jax.random.key(seed), stats.chi2.isf(ALPHA, 23) / 23 * 23
    found, noise, rate = tempered_moments(key, WIDE, np.zeros(5), n_temperatures=5, n_ladders=1600, sweeps=200)
    exact, twin = (reference.flat(popcd.evaluation.exact_moments(rbm)) for rbm in (WIDE, weaker(weaker(WIDE))))
    assert np.square(reference.flat(found) - exact).mean() < limit * noise
    assert np.square(reference.flat(found) - twin).mean() > limit * noise
    assert 0 < rate < 1


def modes_apart(size=24, hidden=12, strength=3.0):
    """Two distant modes of unequal mass: chains that begin in the wrong one never leave it."""
    pattern = np.where(np.arange(size) < size // 3, 1.0, -1.0)
    weights = strength * pattern[:, None] * np.ones((1, hidden)) / 2
    return popcd.RBM(weights, visible_bias=-weights.sum(axis=1) / 2 * 0.98, hidden_bias=-weights.sum(axis=0) / 2)


@pytest.mark.parametrize("mode", ["smaller", "larger"])
@pytest.mark.parametrize(("n_steps", "n_temperatures"), [(3, 3), (50, 8), (1000, 40)])
def test_an_estimate_is_right_or_flagged(n_steps, n_temperatures, mode):
    """Data of one mode alone as base, which all but excludes the other, from far too little effort to enough."""
    rbm = modes_apart()
    truth = popcd.log_partition(rbm).value
    data = np.tile((np.arange(24) < 8) == (mode == "larger"), (4, 1)).astype(int)
    effort = {"n_chains": 100, "n_steps": n_steps, "n_temperatures": n_temperatures, "n_ladders": 20, "sweeps": 100}
    found = popcd.log_partition(rbm, "ais", data=data, **effort)
    assert abs(found.value - truth) < 0.5 or not found.trustworthy
    if mode == "smaller":
        assert abs(found.value - truth) > 4
    if mode == "smaller" and n_steps == 1000:
        assert "the base rate hides modes" in found.reason


def test_too_little_effort_is_flagged():
    rbm = modes_apart()
    poor = popcd.log_partition(rbm, "ais", n_chains=100, n_steps=3, n_temperatures=3, n_ladders=20, sweeps=20)
    assert not poor.trustworthy
    assert "use more steps, chains, temperatures or sweeps" in poor.reason


def test_enough_effort_without_data_is_right_and_trusted():
    rbm = modes_apart()
    found = popcd.log_partition(rbm, "ais", n_steps=2000, n_chains=512)
    assert found.trustworthy, found.reason
    assert found.lower < popcd.log_partition(rbm).value < found.upper


GOOD = LogMean(0.0, 0.01, 0.01, 400.0, 0.1, 0.6)


def combined(**change):
    settings = {"forward": GOOD, "reverse": GOOD, "uniform": GOOD, "bennett": 0.0, "bennett_stderr": 0.01, "swap_rate": 0.3}
    settings["log_mass"] = -1.0
    return combine(**(settings | change))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"forward": GOOD._replace(ess=2.0)}, r"effective sample size of forward AIS is only 2\.0"),
        ({"forward": GOOD._replace(pareto_k=0.65)}, r"largest forward weights .* \(Pareto k 0\.65\)"),
        ({"reverse": GOOD._replace(pareto_k=0.9)}, r"largest reverse weights .* \(Pareto k 0\.90\)"),
        ({"forward": GOOD._replace(value=-5.0)}, r"wider than 1 nat.*Bennett's estimate 0\.00 is 5\.00 nat away"),
        ({"forward": GOOD._replace(value=5.0)}, r"lies above the upper bound"),
        ({"forward": GOOD._replace(stderr=float("nan"))}, r"wider than 1 nat"),
        ({"uniform": GOOD._replace(value=1.0)}, r"uniform distribution finds more, 1\.00: the base rate hides modes"),
        ({"swap_rate": 0.001}, r"exchange in only 0\.10% of sweeps"),
        ({"log_mass": 0.5}, r"data rows alone would have probability exp\(0\.48\) > 1"),
    ],
)
def test_each_reason_for_distrust_is_said(change, words):
    assert combined().trustworthy
    assert combined().reason == ""
    found = combined(**change)
    assert not found.trustworthy
    assert re.search(words, found.reason)


def test_the_mass_of_the_data_is_a_lower_bound():
    assert combined(log_mass=0.01).lower == 0.01
    assert combined(log_mass=None).lower == pytest.approx(-0.02)


def test_weights_in_groups_have_the_error_of_the_groups(seed):
    """Ten copies of every weight are no more than one of it."""
    log_weights = 0.5 * np.random.default_rng(seed).normal(size=400)
    once, tenfold = log_mean(log_weights), log_mean(np.tile(log_weights, (10, 1)))
    np.testing.assert_allclose([tenfold.value, tenfold.stderr], [once.value, once.stderr])
    np.testing.assert_allclose(tenfold.bootstrap, once.bootstrap, rtol=0.2)


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
    assert seen[-1][0] == seen[-1][1] == 200 + 2 * 300 + 75


def test_the_same_seed_gives_the_same_estimate():
    values = [popcd.log_partition(WIDE, "ais", seed=s, **QUICK).value for s in (1, 1, 2)]
    assert values[0] == values[1] != values[2]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"base_bias": np.zeros(4)}, "base_bias has 4 numbers, but the machine has 5 visible units"),
        ({"base_bias": np.full(5, np.nan)}, "base_bias must be finite"),
        ({"data": np.eye(4)}, "data has 4 columns"),
        ({"n_chains": 1}, "n_chains must be a whole number of at least 2, got 1"),
        ({"n_temperatures": 1}, "n_temperatures must be a whole number of at least 2"),
        ({"n_steps": 0}, "n_steps must be"),
        ({"sweeps": 0}, "sweeps must be"),
        ({"n_ladders": 1}, "n_ladders must be a whole number of at least 2"),
    ],
)
@pytest.mark.parametrize("method", ["auto", "ais"])
def test_bad_options_are_named_also_where_enumeration_would_not_need_them(method, options, words):
    with pytest.raises(ValueError, match=words):
        popcd.log_partition(WIDE, method, **options)


def test_what_is_not_a_machine_is_refused():
    for function in (popcd.log_likelihood, popcd.train, popcd.gradient_error, popcd.pseudo_log_likelihood):
        extra = {"batch_size": 2} if function is popcd.gradient_error else {}
        extra = {"batch_size": 2, "iterations": 1} if function is popcd.train else extra
        arguments = ("x", np.eye(4)) if not extra else ("x", np.eye(4), popcd.cd())
        with pytest.raises(TypeError, match=r"rbm must be a popcd.RBM, got 'x'"):
            function(*arguments, **extra)


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
    found = popcd.log_likelihood(rbm, rows, n_chains=512, n_steps=14_500, sweeps=2_000)
    print(found.value, found.stderr, found.lower, found.upper, found.reason, found.details)
    assert found.trustworthy, found.reason
    assert found.upper - found.lower < 1
    assert found.lower < -86.34 < found.upper
    assert z_test(found.details["forward"] - 451.28, found.stderr) > ALPHA
