"""Block Gibbs sampling: all hidden units given the visible ones, then all visible units given the hidden ones.

    T(v -> v') = sum_h p(h | v) p(v' | h)

Reference: Smolensky (1986). Reversible with respect to p(v); mixes slowly where modes are far apart.
"""

from typing import NamedTuple

import jax
from jax import Array

from popcd.checks import positive_int
from popcd.kernels.kernel import Kernel
from popcd.prng import bernoulli
from popcd.rbm import RBM


class GibbsState(NamedTuple):
    """`visible`: chains x visible."""

    visible: Array


def sweep(key: Array, visible: Array, rbm: RBM, number: int | Array = 0) -> tuple[Array, Array]:
    """One block Gibbs sweep, `h ~ p(h | v)`, `v' ~ p(v | h)`; returns (v', h). Sweeps of one key differ in their numbers.

    >>> import jax, jax.numpy as jnp, popcd
    >>> visible, hidden = sweep(jax.random.key(0), jnp.zeros((5, 4)), popcd.RBM.create(4, 3))
    >>> visible.shape, hidden.shape
    ((5, 4), (5, 3))
    """
    hidden = bernoulli(key, rbm.hidden_logits(visible), site=2 * number)
    return bernoulli(key, rbm.visible_logits(hidden), site=2 * number + 1), hidden


def sweeps(key: Array, visible: Array, rbm: RBM, n: int | Array) -> Array:
    """The visible states after `n` sweeps, numbers 0 to n - 1 of `key`."""
    if isinstance(n, int) and n < 2:  # no loop to compile
        return sweep(key, visible, rbm)[0] if n else visible
    return jax.lax.fori_loop(0, n, lambda i, v: sweep(key, v, rbm, i)[0], visible)


def gibbs(k: int = 1) -> Kernel:
    """The kernel of `k` block Gibbs sweeps.

    >>> import jax, jax.numpy as jnp, popcd
    >>> kernel, rbm = gibbs(k=2), popcd.RBM.create(4, 3)
    >>> state, _ = kernel.step(jax.random.key(0), kernel.init(jnp.zeros((5, 4))), rbm)
    >>> state.visible.shape
    (5, 4)
    """
    k = positive_int("k", k)

    def step(key: Array, state: GibbsState, rbm: RBM) -> tuple[GibbsState, dict[str, Array]]:
        return GibbsState(sweeps(key, state.visible, rbm, k)), {}

    return Kernel(GibbsState, step)
