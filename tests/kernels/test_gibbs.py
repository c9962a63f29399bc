import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import reference
from laws import ALPHA, pearson
from machines import SHAPES, SQUARE, weaker
from popcd.kernels import gibbs, sweep

both = pytest.mark.parametrize("rbm", [*SHAPES, SQUARE], ids=["5x3", "3x5", "4x4"])
CHAINS = 100_000


@functools.cache
def compiled(k):
    """The kernel of k sweeps and its step as one program, for all seeds."""
    kernel = gibbs(k)
    return kernel, jax.jit(kernel.step)


def visible_after(rbm, starts, seed, k):
    kernel, step = compiled(k)
    state, info = step(jax.random.key(seed), kernel.init(jnp.asarray(starts, jnp.float32)), rbm)
    assert info == {}
    return reference.index(state.visible)


@both
@pytest.mark.usefixtures("float64")
def test_the_gibbs_matrix_of_the_logits_leaves_the_target_as_it_is(rbm):
    """T from popcd's own conditionals: pi T = pi, and T is the matrix of the joint table."""
    v, h = reference.states(rbm.n_visible), reference.states(rbm.n_hidden)
    hidden = np.stack([rbm.mirror().log_prob_visible(h, np.tile(row, (len(h), 1))) for row in v])
    visible = np.stack([rbm.log_prob_visible(v, np.tile(row, (len(v), 1))) for row in h])
    matrix, target = np.exp(hidden) @ np.exp(visible), reference.p_visible(rbm)
    np.testing.assert_allclose(target @ matrix, target, rtol=1e-10)
    np.testing.assert_allclose(matrix, reference.gibbs_matrix(rbm), rtol=1e-10)


@both
def test_chains_started_at_the_target_stay_there(rbm, seed):
    target = reference.p_visible(rbm)
    numbers = np.random.default_rng(seed).choice(len(target), CHAINS, p=target)
    starts = reference.states(rbm.n_visible)[numbers]
    assert pearson(visible_after(rbm, starts, seed, k=3), target) > ALPHA
    assert pearson(visible_after(weaker(rbm), starts, seed, k=3), target) < ALPHA


@both
@pytest.mark.parametrize("k", [1, 2, 5])
def test_k_sweeps_follow_the_kth_power_of_the_matrix(rbm, seed, k):
    start = np.arange(rbm.n_visible) % 2
    law = np.linalg.matrix_power(reference.gibbs_matrix(rbm), k)[reference.index(start)]
    starts = np.tile(start, (CHAINS, 1))
    assert pearson(visible_after(rbm, starts, seed, k), law) > ALPHA
    assert pearson(visible_after(weaker(rbm), starts, seed, k), law) < ALPHA


@both
def test_a_sweep_returns_the_pair_that_was_drawn(rbm, seed):
    """(h, v') from a fixed v has the law p(h | v) p(v' | h): all pairs of states are counted."""
    start = np.arange(rbm.n_visible) % 2
    joint = reference.table(rbm)
    given = joint[reference.index(start)] / joint[reference.index(start)].sum()
    law = (joint / joint.sum(axis=0, keepdims=True) * given).ravel()
    starts = jnp.asarray(np.tile(start, (CHAINS, 1)), jnp.float32)

    def pairs(machine):
        visible, hidden = jax.jit(sweep)(jax.random.key(seed), starts, machine)
        return reference.index(visible) * joint.shape[1] + reference.index(hidden)

    assert pearson(pairs(rbm), law) > ALPHA
    assert pearson(pairs(weaker(rbm)), law) < ALPHA


def test_bad_k_is_refused():
    with pytest.raises(ValueError, match="k must be a whole number of at least 1, got 0"):
        gibbs(0)
