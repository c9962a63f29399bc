import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import popcd
import reference
from laws import ALPHA, pearson
from machines import SHAPES, SQUARE, WIDE, machine, weaker
from popcd.evaluation import ais

both = pytest.mark.parametrize("rbm", SHAPES, ids=["5x3", "3x5"])


def base_of(rbm):
    return np.linspace(-0.7, 0.9, rbm.n_visible)


def ratio(rbm, states, beta, next_beta):
    v = jnp.asarray(states, rbm.dtype)
    base = jnp.asarray(base_of(rbm), rbm.dtype)
    return np.asarray(ais.log_ratio(rbm, v, rbm.hidden_logits(v), base, jnp.asarray(beta), jnp.asarray(next_beta)))


@both
@pytest.mark.parametrize(("beta", "next_beta"), [(0.0, 1.0), (0.3, 0.31), (0.5, 0.5), (1.0, 0.2), (1.0, 0.0)])
@pytest.mark.usefixtures("float64")
def test_a_log_ratio_is_the_difference_of_two_free_energies(rbm, beta, next_beta):
    v = reference.states(rbm.n_visible)
    ends = [np.log(reference.table(rbm.anneal(b, base_of(rbm))).sum(axis=1)) for b in (beta, next_beta)]
    np.testing.assert_allclose(ratio(rbm, v, beta, next_beta), ends[1] - ends[0], rtol=1e-10, atol=1e-12)


@pytest.mark.usefixtures("float64")
def test_a_log_ratio_over_huge_logits_does_not_overflow():
    huge = popcd.RBM(weights=np.full((2, 1), 2000.0), visible_bias=np.zeros(2), hidden_bias=np.zeros(1))
    v = np.array([[1.0, 1.0], [0.0, 0.0]])
    both_ways = [ratio(huge, v, 0.0, 1.0), ratio(huge, v, 1.0, 0.0)]
    expected = np.array([4000 - np.log(2), 0.0]) - v @ base_of(huge)
    np.testing.assert_allclose(both_ways, [expected, -expected], rtol=1e-9)


@both
@pytest.mark.parametrize("betas", [(0.0, 1.0), (0.0, 0.4, 1.0), (0.0, 0.2, 0.7, 1.0), (1.0, 0.6, 0.0)])
@pytest.mark.usefixtures("float64")
def test_weights_of_all_paths_average_to_the_ratio_of_partition_functions(rbm, betas):
    """Every path v_0, v_1, ... is summed: p(v_0) w_0(v_0) T(v_0, v_1) w_1(v_1) ... = Z_last / Z_first."""
    v, base = reference.states(rbm.n_visible), base_of(rbm)
    law = reference.p_visible(rbm.anneal(betas[0], base))
    for beta, next_beta in itertools.pairwise(betas):
        law = law * np.exp(ratio(rbm, v, beta, next_beta)) @ reference.gibbs_matrix(rbm.anneal(next_beta, base))
    log_z = [reference.log_z(rbm.anneal(beta, base)) for beta in (betas[0], betas[-1])]
    np.testing.assert_allclose(np.log(law.sum()), log_z[1] - log_z[0], rtol=1e-10)


@pytest.mark.parametrize("rbm", [*SHAPES, SQUARE], ids=["5x3", "3x5", "4x4"])
def test_transitions_follow_the_annealed_machine(rbm, seed):
    start, beta, base = np.arange(rbm.n_visible) % 2, jnp.float32(0.6), jnp.asarray(base_of(rbm), jnp.float32)
    law = reference.gibbs_matrix(rbm.anneal(0.6, base_of(rbm)))[reference.index(start)]

    def found(machine):
        logits = machine.hidden_logits(np.tile(start, (100_000, 1)))
        return reference.index(jax.jit(ais.transition)(jax.random.key(seed), machine, logits, base, beta))

    assert pearson(found(rbm), law) > ALPHA
    assert pearson(found(weaker(rbm)), law) < ALPHA


@both
@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_mean_weights_are_the_ratio_of_partition_functions(rbm, seed, direction):
    base, n = base_of(rbm), 50_000
    betas = np.array([0.0, 0.3, 0.6, 1.0])
    law = reference.p_visible(rbm) if direction == "reverse" else reference.p_visible(rbm.anneal(0.0, base))
    betas = betas[::-1] if direction == "reverse" else betas
    numbers = np.random.default_rng(seed).choice(len(law), n, p=law / law.sum())
    start = jnp.asarray(reference.states(rbm.n_visible)[numbers], jnp.float32)
    log_z = {1.0: reference.log_z(rbm), 0.0: ais.base_log_partition(rbm, base)}

    def p_value(machine):
        log_weights = ais.anneal(jax.random.key(seed), machine, start, betas, base)
        weights = np.exp(log_weights - log_z[betas[-1]] + log_z[betas[0]])
        return 2 * stats.norm.sf(abs(weights.mean() - 1) / (weights.std() / np.sqrt(n)))

    assert p_value(rbm) > ALPHA
    assert p_value(weaker(rbm)) < ALPHA


@pytest.mark.usefixtures("float64")
def test_the_base_rate_model_is_the_annealed_machine_at_zero():
    log_z = reference.log_z(WIDE.anneal(0.0, base_of(WIDE)))
    np.testing.assert_allclose(ais.base_log_partition(WIDE, base_of(WIDE)), log_z, rtol=1e-12)


def test_base_samples_follow_the_base_rate_model(seed):
    law = reference.p_visible(WIDE.anneal(0.0, base_of(WIDE)))
    drawn = ais.base_samples(jax.random.key(seed), WIDE, base_of(WIDE), 50_000)
    assert pearson(reference.index(drawn), law / law.sum()) > ALPHA
    assert pearson(reference.index(drawn), reference.p_visible(WIDE)) < ALPHA


def test_float32_loses_less_than_a_hundredth_of_a_nat():
    """50,000 steps of `anneal` on a machine whose visible units are held by their biases: the sum is known in float64."""
    held = np.where(np.arange(300) % 3 == 0, 60.0, -60.0)
    free = machine(300, 200, scale=0.05)
    rbm = popcd.RBM(free.weights, visible_bias=held, hidden_bias=free.hidden_bias + 1)
    v = np.tile(held > 0, (4, 1))
    with jax.enable_x64(True):
        states = jnp.asarray(v, float)
        expected = ais.log_ratio(rbm, states, rbm.hidden_logits(states), held, jnp.float64(0), jnp.float64(1))
    found = ais.anneal(jax.random.key(0), rbm, jnp.asarray(v, jnp.float32), ais.linear_schedule(50_000), held)
    assert np.abs(expected).min() > 20
    np.testing.assert_allclose(found, expected, atol=0.01)


def test_the_naive_difference_would_lose_more():
    """The same sum with free energies subtracted in float32: what `log_ratio` is there to avoid."""
    rbm = jax.tree.map(jnp.float32, machine(300, 200, scale=3.0))
    v, base = np.random.default_rng(0).integers(0, 2, (16, 300)), jnp.zeros(300)
    betas = ais.linear_schedule(50_000)[-2001:]

    @jax.jit
    def log_p(beta):
        return -rbm.anneal(beta).free_energy(v)

    def lost(increment):
        total = sum(np.asarray(increment(a, b), np.float64) for a, b in itertools.pairwise(np.float32(betas)))
        with jax.enable_x64(True):
            exact = popcd.RBM(*reference.parameters(rbm))
            ends = [-np.asarray(exact.anneal(float(np.float32(b))).free_energy(v)) for b in (betas[0], betas[-1])]
        return np.abs(total - (ends[1] - ends[0])).max()

    logits = rbm.hidden_logits(v)
    careful = jax.jit(lambda a, b: ais.log_ratio(rbm, jnp.asarray(v, jnp.float32), logits, base, a, b))
    assert lost(careful) < 0.01 / 5
    assert lost(lambda a, b: log_p(b) - log_p(a)) > 2 * lost(careful)


def test_progress_is_reported():
    seen = []
    start = ais.base_samples(jax.random.key(0), WIDE, base_of(WIDE), 10)
    ais.anneal(jax.random.key(0), WIDE, start, ais.linear_schedule(1200), base_of(WIDE), lambda *done: seen.append(done))
    assert seen == [(500, 1200), (1000, 1200), (1200, 1200)]


def test_the_schedule_of_2008():
    betas = ais.schedule_2008()
    assert (betas[0], betas[500], betas[4500], betas[-1]) == (0.0, 0.5, 0.9, 1.0)
    for part, size in ((betas[:501], 0.5 / 500), (betas[500:4501], 0.4 / 4000), (betas[4500:], 0.1 / 10_000)):
        np.testing.assert_allclose(np.diff(part), size, rtol=1e-9)
    for n in (1, 3, 100):
        assert len(ais.check_schedule(ais.schedule_2008(n))) == n + 1


@pytest.mark.parametrize(
    "betas", [(0.0, 0.9), (0.1, 1.0), (0.0, 0.6, 0.5, 1.0), (1.0,), np.linspace(1, 0, 20), (0.0, np.nan, 1.0)]
)
def test_bad_schedules_are_refused(betas):
    with pytest.raises(ValueError, match="betas must"):
        popcd.log_partition(WIDE, method="ais", betas=betas)
