"""Exact enumeration of the smaller side: every state a particle, weighted with its unnormalised probability.

    sum over particles = sum_v p(v) f(v)   or   sum_h p(h) E[v | h] h'

No bias, no variance; two to the power of the smaller side in time and memory, so for small machines only.
"""

import functools

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from popcd.estimators.estimator import Estimator, stateless
from popcd.particles import Particles
from popcd.rbm import RBM

MOST_NUMBERS = 2**27  # half a gigabyte in float32


def all_states(n_units: int, dtype: type) -> Array:
    """All 2**n binary states, one per row; bit i of the row's number is unit i.

    >>> all_states(2, int).tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    """
    numbers = jax.lax.broadcasted_iota(jnp.uint32, (2**n_units, n_units), 0)
    units = jax.lax.broadcasted_iota(jnp.uint32, (2**n_units, n_units), 1)
    return (numbers >> units & jnp.uint32(1)).astype(dtype)


def exact() -> Estimator:
    """The exact gradient, for machines so small that all states of one side fit into memory (784 x 17, say).

    Examples
    --------
    >>> import jax, popcd
    >>> rbm = popcd.RBM.create(n_visible=6, n_hidden=3)
    >>> _, particles = popcd.exact().step(jax.random.key(0), None, rbm, None)
    >>> particles.visible.shape, particles.hidden.shape
    ((8, 6), (8, 3))
    """
    return _exact()


@functools.cache
def _exact() -> Estimator:
    def step(key: Array, state: None, rbm: RBM, batch: ArrayLike) -> tuple[None, Particles]:
        smaller, larger = sorted((rbm.n_visible, rbm.n_hidden))
        if 2**smaller * larger > MOST_NUMBERS:
            raise ValueError(
                f"exact() holds all states of the smaller side in memory; {rbm.n_visible} x {rbm.n_hidden} would need "
                f"2**{smaller} states of {larger} numbers, and at most 2**27 numbers are taken: use a sampling estimator, "
                "or popcd.evaluation.exact_gradient, which goes through the states in blocks"
            )
        states = all_states(smaller, rbm.dtype)
        if rbm.n_visible <= rbm.n_hidden:
            return None, Particles(states, -rbm.free_energy(states))
        visible = jax.nn.sigmoid(rbm.visible_logits(states))
        return None, Particles(visible, -rbm.mirror().free_energy(states), hidden=states)

    return Estimator("exact", (), stateless, step, sampled=False)
