import functools
import itertools
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import reference
from laws import ALPHA, pearson
from machines import machine, weaker
from popcd.kernels import sweep, tempering, uniform_ladder

tempering_module = sys.modules["popcd.kernels.tempering"]  # the package's attribute of that name is the function
SMALL = machine(3, 2, scale=2.0)
BASE = np.array([0.8, -0.5, 0.3])
BETAS = (0.0, 0.3, 0.65, 1.0)
LADDERS = 100_000


FLAT_KERNEL = tempering(uniform_ladder(3))


@functools.cache
def compiled(base):
    """The kernel with this base and its step as one program."""
    kernel = tempering(BETAS, np.array(base))
    return kernel, jax.jit(kernel.step)


def replicas_after(rbm, seed, steps=2, base=BASE, build=compiled):
    """State numbers, ladders x temperatures, after some steps from the exact product of the annealed machines."""
    rng = np.random.default_rng(seed)
    laws = [reference.p_visible(SMALL.anneal(beta, BASE)) for beta in BETAS]
    laws = [law / law.sum() for law in laws]
    numbers = np.stack([rng.choice(len(law), LADDERS, p=law) for law in laws], axis=1)
    kernel, step = build(tuple(base))
    state = kernel.init(jnp.asarray(reference.states(3)[numbers], jnp.float32))
    for number in range(steps):
        state, info = step(jax.random.key(1000 * seed + number), state, rbm)
    return reference.index(state.visible), laws, info


def p_values(numbers, laws):
    """Neighbouring replicas are independent and each has its own law: all pairs of states are counted."""
    pairs = range(len(laws) - 1)
    return [pearson(numbers[:, t] * 8 + numbers[:, t + 1], np.outer(laws[t], laws[t + 1]).ravel()) for t in pairs]


def test_replicas_started_at_their_targets_stay_there(seed):
    numbers, laws, info = replicas_after(SMALL, seed)
    assert min(p_values(numbers, laws)) > ALPHA / 3
    assert info["swap_rates"].shape == (3,)
    assert min(p_values(replicas_after(weaker(SMALL), seed)[0], laws)) < ALPHA / 3


def test_a_swap_of_the_wrong_sign_is_found(seed, monkeypatch):
    right = tempering_module.swap_log_ratio
    monkeypatch.setattr(tempering_module, "swap_log_ratio", lambda betas, potential: -right(betas, potential))
    numbers, laws, _ = replicas_after(SMALL, seed, build=compiled.__wrapped__)
    assert min(p_values(numbers, laws)) < ALPHA / 3


def test_a_forgotten_base_rate_is_found(seed):
    numbers, laws, _ = replicas_after(SMALL, seed, base=np.zeros(3))
    assert min(p_values(numbers, laws)) < ALPHA / 3


@pytest.mark.usefixtures("float64")
def test_swaps_are_in_detailed_balance():
    """pi_s(x) pi_t(y) a(x, y) = pi_s(y) pi_t(x) a(y, x) for all pairs x, y of joint states (v, h)."""
    v, h = reference.states(3), reference.states(2)
    v, h = np.repeat(v, len(h), axis=0), np.tile(h, (8, 1))
    potential = np.asarray(-SMALL.energy(v, h) - v @ BASE)
    for s, t in itertools.pairwise(BETAS):
        cold, hot = (np.log(reference.table(SMALL.anneal(beta, BASE))).ravel() for beta in (s, t))
        x, y = (grid.ravel() for grid in np.meshgrid(np.arange(32), np.arange(32), indexing="ij"))
        pairs = jnp.asarray(np.stack([potential[x], potential[y]], axis=1))
        ratio = np.asarray(tempering_module.swap_log_ratio(jnp.array([s, t]), pairs))[:, 0].reshape(32, 32)
        flow = np.exp(cold[:, None] + hot[None, :] + np.minimum(ratio, 0))
        np.testing.assert_allclose(flow, flow.T, rtol=1e-10)


def test_exchanges_move_states_as_said():
    """Potentials that fall along the ladder are always exchanged: first (0,1) and (2,3), then the middle pair."""
    potential = jnp.array([[3.0, 2.0, 1.0, 0.0], [-3.0, -2.0, -1.0, 1e6]])
    source, taken = tempering_module.exchange(jax.random.key(0), jnp.array([0.0, 0.3, 0.6, 1.0]) * 1e6, potential)
    assert source.tolist() == [[1, 3, 0, 2], [0, 1, 2, 3]]
    assert taken.tolist() == [[True, True, True], [False, False, False]]


def test_swap_rate_is_the_expected_one(seed):
    """Without coupling all potentials are alike up to the biases; with none at all every exchange is accepted."""
    flat = machine(3, 2, scale=0.0)
    flat = type(flat)(flat.weights, np.zeros(3), np.zeros(2))
    kernel = FLAT_KERNEL
    _, info = jax.jit(kernel.step)(jax.random.key(seed), kernel.init(jnp.zeros((50, 3, 3))), flat)
    assert info["swap_rates"].tolist() == [1.0, 1.0]


def test_one_temperature_is_a_gibbs_chain():
    kernel = tempering(uniform_ladder(1))
    state, info = kernel.step(jax.random.key(0), kernel.init(jnp.zeros((5, 1, 3))), SMALL)
    expected, _ = sweep(jax.random.key(0), jnp.zeros((5, 3)), SMALL)
    np.testing.assert_array_equal(state.visible[:, 0], expected)
    assert info["swap_rates"].shape == (0,)


@pytest.mark.parametrize(
    "betas", [(0.0, 0.5), (0.5, 0.2, 1.0), (-0.1, 1.0), (0.0, 0.5, 0.5, 1.0), (0.0, float("nan"), 1.0), ()]
)
def test_bad_ladders_are_refused(betas):
    with pytest.raises(ValueError, match="betas must"):
        tempering(betas)
