"""Parallel tempering: Gibbs chains at a ladder of inverse temperatures that exchange their states.

Replica t samples the machine annealed to beta_t,

    log p~_t(v, h) = v'b0 + beta_t U(v, h),   U(v, h) = -E(v, h) - v'b0,

and neighbours exchange their pairs (v, h) with probability `min(1, exp((beta_{t+1} - beta_t)(U_t - U_{t+1})))`,
first the pairs (0,1), (2,3), ..., then (1,2), (3,4), ...

References: Desjardins, Courville, Bengio, Vincent, Delalleau (2010); Salakhutdinov (2009). Leaves the product of the
annealed machines as it is; its replica at beta = 1 mixes between modes that block Gibbs sampling does not cross.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from popcd.checks import positive_int, real_array
from popcd.kernels.kernel import Kernel
from popcd.prng import bernoulli, uniform
from popcd.rbm import RBM


class TemperingState(NamedTuple):
    """`visible`: ladders x temperatures x visible; the last temperature is beta = 1."""

    visible: Array


def uniform_ladder(n_temperatures: int) -> tuple[float, ...]:
    """Inverse temperatures evenly spaced from 0 to 1; a single one is 1.

    >>> uniform_ladder(3)
    (0.0, 0.5, 1.0)
    """
    n = positive_int("n_temperatures", n_temperatures)
    return tuple(np.linspace(0, 1, n).tolist()) if n > 1 else (1.0,)


def check_ladder(betas: Sequence[float]) -> tuple[float, ...]:
    """`betas` if they increase within [0, 1] and end at 1."""
    values = np.asarray(real_array("betas", betas, 1), float)
    if values[0] < 0 or values[-1] != 1 or (np.diff(values) <= 0).any():
        raise ValueError(f"betas must increase from at least 0 to exactly 1, got {values.tolist()}")
    return tuple(values.tolist())


def swap_log_ratio(betas: Array, potential: Array) -> Array:
    """Log acceptance ratio of exchanging replicas t and t + 1; ladders x temperatures to one less."""
    return jnp.diff(betas)[None, :] * (potential[:, :-1] - potential[:, 1:])


def exchange(key: Array, betas: Array, potential: Array, site: int = 0) -> tuple[Array, Array]:
    """Even, then odd exchanges; returns where each replica's state comes from, and which exchanges took place.

    `potential` is U, ladders x temperatures; the second result is ladders x (temperatures - 1).
    """
    ladders, temperatures = potential.shape
    pair = jnp.arange(temperatures - 1)
    source = jnp.broadcast_to(jnp.arange(temperatures)[None, :], potential.shape)
    taken = jnp.zeros((ladders, temperatures - 1), bool)
    chance = uniform(key, taken.shape, potential.dtype, site)  # no pair is both even and odd
    for parity in (0, 1):
        ratio = swap_log_ratio(betas, jnp.take_along_axis(potential, source, axis=1))
        accept = chance <= jnp.exp(jnp.minimum(ratio, 0))
        accept = accept & (pair % 2 == parity)[None, :]
        up = jnp.pad(accept, ((0, 0), (0, 1))).astype(source.dtype)
        down = jnp.pad(accept, ((0, 0), (1, 0))).astype(source.dtype)
        here = jnp.arange(temperatures)[None, :] + up - down
        source, taken = jnp.take_along_axis(source, here, axis=1), taken | accept
    return source, taken


def tempering(betas: Sequence[float], base_bias: ArrayLike | None = None) -> Kernel:
    """The kernel of one tempered sweep: a Gibbs sweep of every replica, then even and odd exchanges.

    Parameters
    ----------
    betas : increasing inverse temperatures that end at 1.
    base_bias : the visible logits of the base-rate model at beta = 0; zero (uniform) by default.

    `info["swap_rates"]` is the share of ladders that exchanged, one number per neighbouring pair.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, popcd
    >>> kernel, rbm = tempering(uniform_ladder(4)), popcd.RBM.create(5, 3)
    >>> state, info = kernel.step(jax.random.key(0), kernel.init(jnp.zeros((7, 4, 5))), rbm)
    >>> state.visible.shape, info["swap_rates"].shape
    ((7, 4, 5), (3,))
    """
    ladder = check_ladder(betas)

    def step(key: Array, state: TemperingState, rbm: RBM) -> tuple[TemperingState, dict[str, Array]]:
        beta = jnp.asarray(ladder, rbm.dtype)
        base = jnp.zeros_like(rbm.visible_bias) if base_bias is None else jnp.asarray(base_bias, rbm.dtype)
        # The logits of rbm.anneal(beta, base), with one product for all temperatures instead of one each.
        tempered = beta[None, :, None]
        hidden = bernoulli(key, tempered * rbm.hidden_logits(state.visible), site=0)
        rest = (1 - tempered) * base[None, None, :]
        visible = bernoulli(key, rest + tempered * rbm.visible_logits(hidden), site=1)
        potential = -rbm.energy(visible, hidden) - jnp.sum(visible * base[None, None, :], axis=-1)
        source, taken = exchange(key, beta, potential, site=2)
        visible = jnp.take_along_axis(visible, source[:, :, None], axis=1)
        return TemperingState(visible), {"swap_rates": taken.mean(axis=0, dtype=rbm.dtype)}

    return Kernel(TemperingState, step)
