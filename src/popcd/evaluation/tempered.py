"""Samples of the machine by long parallel tempering, and log Z by Bennett's acceptance ratio across its ladder.

For neighbours t and t + 1 with `f(v) = log p~_{t+1}(v) - log p~_t(v)`, log(Z_{t+1} / Z_t) is the Delta that solves

    mean over samples of t of sigmoid(f - Delta)  =  mean over samples of t + 1 of sigmoid(Delta - f)

References: Bennett (1976); Desjardins et al. (2010) for the sampler. Consistent in the number of samples as long as every
replica has reached its target; neither a lower nor an upper bound.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from popcd.devices import beside, on_host, spread
from popcd.evaluation.ais import Progress, base_samples, log_ratio
from popcd.kernels.tempering import TemperingState, tempering, uniform_ladder
from popcd.prng import fold_in
from popcd.rbm import RBM, unchecked

_GROUPS = 16


class Tempered(NamedTuple):
    """What long parallel tempering leaves behind.

    visible : snapshots x ladders x visible, the states at beta = 1 as uint8.
    below, above : snapshots x ladders x (temperatures - 1), f at the samples of the lower and of the upper replica.
    swap_rates : the share of sweeps in which each pair of neighbours exchanged.
    """

    visible: np.ndarray
    below: np.ndarray
    above: np.ndarray
    swap_rates: np.ndarray


@functools.partial(jax.jit, static_argnames=("betas", "sweeps"))
def _sweeps(
    key: Array, state: TemperingState, first: Array, base_bias: Array, rbm: RBM, betas: tuple[float, ...], sweeps: int
) -> tuple[TemperingState, Array, Array, Array]:
    """Sweeps numbered from `first`; the state, mean swap rates, and f at the samples below and above each gap."""
    kernel, beta = tempering(betas, base_bias), jnp.asarray(betas, rbm.dtype)

    def one(state: TemperingState, number: Array) -> tuple[TemperingState, Array]:
        state, info = kernel.step(fold_in(key, first + number), state, rbm)
        return state, info["swap_rates"]

    state, rates = jax.lax.scan(one, state, jnp.arange(sweeps))
    logits = rbm.hidden_logits(state.visible)
    across = jax.vmap(log_ratio, in_axes=(None, 1, 1, None, 0, 0), out_axes=1)
    below = across(rbm, state.visible[:, :-1], logits[:, :-1], base_bias, beta[:-1], beta[1:])
    above = across(rbm, state.visible[:, 1:], logits[:, 1:], base_bias, beta[:-1], beta[1:])
    return state, rates.mean(axis=0), below, above


def temper(
    key: Array,
    rbm: RBM,
    base_bias: np.ndarray,
    betas: tuple[float, ...],
    n_ladders: int,
    snapshots: int,
    spacing: int,
    progress: Progress | None = None,
) -> Tempered:
    """Run ladders from the base-rate model; the first half of the snapshots, `spacing` sweeps apart, is burn-in and dropped."""
    rbm = jax.tree.map(lambda leaf: jnp.asarray(leaf, rbm.dtype), rbm)
    base = jnp.asarray(base_bias, rbm.dtype)
    start = base_samples(fold_in(key, 0), rbm, base, n_ladders * len(betas))
    state = TemperingState(spread(start.reshape(n_ladders, len(betas), rbm.n_visible)))
    rbm, base = beside((rbm, base), state.visible)
    kept = []
    for number in range(2 * snapshots):
        state, *found = _sweeps(fold_in(key, 1), state, number * spacing, base, rbm, betas, spacing)
        if number >= snapshots:
            top, *figures = on_host((state.visible[:, -1], *found))
            kept.append((np.asarray(top).astype(np.uint8), *map(np.asarray, figures)))
        if progress is not None:
            progress(number + 1, 2 * snapshots)
    visible, rates, below, above = (np.stack(column) for column in zip(*kept, strict=True))
    return Tempered(visible, below.astype(np.float64), above.astype(np.float64), rates.mean(axis=0))


@functools.partial(jax.jit, static_argnames=("betas", "sweeps", "groups"))
def _sum_moments(
    key: Array,
    state: TemperingState,
    first: Array,
    base_bias: Array,
    rbm: RBM,
    betas: tuple[float, ...],
    sweeps: int,
    groups: int,
) -> tuple[TemperingState, RBM, Array]:
    """Sums over sweeps of `v E[h|v]'`, `v` and `E[h|v]` at beta = 1, for each group of ladders."""
    kernel = tempering(betas, base_bias)

    def one(carry: tuple[TemperingState, RBM], number: Array) -> tuple[tuple[TemperingState, RBM], Array]:
        state, info = kernel.step(fold_in(key, first + number), carry[0], rbm)
        visible = state.visible[:, -1].reshape(groups, -1, rbm.n_visible)
        hidden = jax.nn.sigmoid(rbm.hidden_logits(visible))
        found = unchecked(jnp.einsum("gli,glj->gij", visible, hidden), visible.sum(axis=1), hidden.sum(axis=1))
        return (state, jax.tree.map(jnp.add, carry[1], found)), info["swap_rates"]

    zeros = jax.tree.map(lambda leaf: jnp.zeros((groups, *leaf.shape), rbm.dtype), rbm)
    (state, total), rates = jax.lax.scan(one, (state, zeros), jnp.arange(sweeps))
    return state, total, rates.mean(axis=0)


def tempered_moments(
    key: Array, rbm: RBM, base_bias: np.ndarray, n_temperatures: int, n_ladders: int, sweeps: int
) -> tuple[RBM, float, float]:
    """`E[v h']`, `E[v]` and `E[h]` by long parallel tempering, the variance per parameter of these means, the least swap rate.

    Half of the sweeps are burn-in. The variance is that between 16 groups of ladders, which knows of autocorrelation.
    """
    rbm = jax.tree.map(lambda leaf: jnp.asarray(leaf, rbm.dtype), rbm)
    betas, base = uniform_ladder(n_temperatures), jnp.asarray(base_bias, rbm.dtype)
    n_ladders = -(-n_ladders // _GROUPS) * _GROUPS
    start = base_samples(fold_in(key, 0), rbm, base, n_ladders * n_temperatures)
    state = TemperingState(spread(start.reshape(n_ladders, n_temperatures, rbm.n_visible)))
    rbm, base = beside((rbm, base), state.visible)
    chunk = max(1, min(100, sweeps // 2))
    total, count, rates = [np.zeros((_GROUPS, *leaf.shape)) for leaf in jax.tree.leaves(rbm)], 0, []
    for first in range(0, sweeps, chunk):
        state, sums, rate = _sum_moments(fold_in(key, 1), state, first, base, rbm, betas, chunk, _GROUPS)
        if first >= sweeps // 2:
            total = [a + np.asarray(b, np.float64) for a, b in zip(total, jax.tree.leaves(on_host(sums)), strict=True)]
            count += chunk * n_ladders // _GROUPS
            rates.append(np.asarray(on_host(rate)))
    means = [part / count for part in total]
    noise = np.concatenate([part.var(axis=0, ddof=1).ravel() for part in means]).mean() / _GROUPS
    least = float(np.mean(rates, axis=0).min(initial=1.0))
    return RBM(*(part.mean(axis=0) for part in means)), float(noise), least


def bennett(below: np.ndarray, above: np.ndarray) -> float:
    """Sum over the gaps of the ladder of log(Z_{t+1} / Z_t); both arguments are samples x gaps.

    >>> bennett(np.array([[0.5], [0.5]]), np.array([[0.5], [0.5]]))
    0.5
    """
    if not (np.isfinite(below).all() and np.isfinite(above).all()):
        raise ValueError("log ratios along the ladder are not finite: the parameters are too large for float32")
    low, high = np.minimum(below.min(axis=0), above.min(axis=0)), np.maximum(below.max(axis=0), above.max(axis=0))
    while True:
        delta = (low + high) / 2
        if ((delta == low) | (delta == high)).all():
            return float(delta.sum())
        balance = _sigmoid(below - delta).mean(axis=0) - _sigmoid(delta - above).mean(axis=0)
        low, high = np.where(balance > 0, delta, low), np.where(balance > 0, high, delta)


def bennett_log_ratio(samples: Tempered) -> tuple[float, float]:
    """log(Z_1 / Z_0) across the whole ladder and its standard error, by a jackknife over groups of ladders."""
    n_ladders, gaps = samples.below.shape[1:]
    value = bennett(samples.below.reshape(-1, gaps), samples.above.reshape(-1, gaps))
    groups = np.array_split(np.arange(n_ladders), min(_GROUPS, n_ladders))
    without = [
        bennett(*(np.delete(part, group, axis=1).reshape(-1, gaps) for part in (samples.below, samples.above)))
        for group in groups
    ]
    return value, float(np.sqrt((len(groups) - 1) * np.var(without)))


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return np.exp(-np.logaddexp(0, -x))
