"""Annealed importance sampling between a base-rate model and the machine, in either direction.

    log w = sum_t log p~_{t+1}(v_t) - log p~_t(v_t),   v_{t+1} ~ T_{t+1}(v_t),   E[w] = Z_end / Z_start

with `log p~_beta(v) = (1 - beta) v'b0 + beta v'b + sum_j softplus(beta x_j)`, x = v'W + c, and a Gibbs sweep of the annealed
machine as T. Upwards from the base-rate model, log mean w underestimates log Z on average; downwards from samples of the
machine it overestimates log Z: together they are a bracket.

References: Neal (2001); Salakhutdinov and Murray (2008); Burda, Grosse, Salakhutdinov (2015) for the reverse direction.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from popcd.checks import real_array
from popcd.devices import beside, on_host, spread
from popcd.prng import bernoulli, fold_in, stream
from popcd.rbm import RBM, softplus

_CHUNK = 500  # steps whose increments are summed in float32 before they join the float64 total

Progress = Callable[[int, int], None]


def linear_schedule(n_steps: int) -> np.ndarray:
    """Inverse temperatures of `n_steps` equal steps from 0 to 1.

    >>> linear_schedule(4).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    return np.linspace(0, 1, n_steps + 1)


def schedule_2008(n_steps: int = 14_500) -> np.ndarray:
    """The schedule of Salakhutdinov and Murray (2008), 500 steps to 0.5, 4,000 to 0.9, 10,000 to 1, or its shape in fewer.

    >>> betas = schedule_2008()
    >>> len(betas), betas[[0, 500, 4500, 14_500]].tolist()
    (14501, [0.0, 0.5, 0.9, 1.0])
    """
    return np.interp(np.arange(n_steps + 1) / n_steps * 14_500, [0, 500, 4_500, 14_500], [0, 0.5, 0.9, 1])


def check_schedule(betas: Any) -> np.ndarray:
    """`betas` if they run from 0 to 1 without falling."""
    values = np.asarray(real_array("betas", betas, 1), np.float64)
    if len(values) < 2 or values[0] != 0 or values[-1] != 1 or (np.diff(values) < 0).any():
        shown = f"{values[:3].tolist()} ... {values[-3:].tolist()}" if len(values) > 6 else values.tolist()
        raise ValueError(f"betas must run from exactly 0 to exactly 1 and never decrease, got {shown}")
    return values


def base_log_partition(rbm: RBM, base_bias: np.ndarray) -> float:
    """log Z of the annealed machine at beta = 0: independent visible units and fair hidden ones."""
    return float(np.logaddexp(0, np.asarray(base_bias, np.float64)).sum() + rbm.n_hidden * np.log(2))


def base_samples(key: Array, rbm: RBM, base_bias: Array, n: int) -> Array:
    """Exact draws of the base-rate model, n x visible."""
    return bernoulli(key, jnp.broadcast_to(jnp.asarray(base_bias, rbm.dtype)[None, :], (n, rbm.n_visible)))


def log_ratio(
    rbm: RBM, visible: Array, logits: Array, base_bias: Array, beta: Array, next_beta: Array, small: bool = False
) -> Array:
    """`log p~_{next}(v) - log p~_beta(v)` of states whose `rbm.hidden_logits` are given, to the precision of the difference.

    With a = beta x and d = (next - beta) x, `softplus(a + d) - softplus(a) = max(d, 0) + log1p(s expm1(-|d|))`,
    s = sigmoid(-a) for positive d and sigmoid(a) otherwise: no two large numbers are subtracted. From |d| = 1 on the
    difference itself is as precise and cannot overflow; `small` promises that no |d| is so large.
    """
    step = next_beta - beta
    change = step * logits
    share = jax.nn.sigmoid(jnp.where(change > 0, -beta, beta) * logits)
    size = jnp.abs(change)
    per_unit = jnp.maximum(change, 0) + jnp.log1p(share * jnp.expm1(-jnp.minimum(size, 1)))
    if not small:
        per_unit = jnp.where(size < 1, per_unit, softplus(next_beta * logits) - softplus(beta * logits))
    return step * jnp.sum(visible * (rbm.visible_bias - base_bias)[None, :], axis=-1) + jnp.sum(per_unit, axis=-1)


def transition(key: Array, rbm: RBM, logits: Array, base_bias: Array, beta: Array) -> Array:
    """A Gibbs sweep of `rbm.anneal(beta, base_bias)` from states whose `rbm.hidden_logits` are given."""
    hidden = bernoulli(key, beta * logits, site=0)
    return bernoulli(key, (1 - beta) * base_bias[None, :] + beta * rbm.visible_logits(hidden), site=1)


@functools.partial(jax.jit, static_argnames="small")
def _chunk(
    key: Array, visible: Array, first: Array, betas: Array, base_bias: Array, rbm: RBM, small: bool
) -> tuple[Array, Array]:
    """Steps along `betas`, numbered from `first`; the new states and the sum of their log ratios."""

    def pick(number: Array) -> Array:
        # betas[number], by a sum: XLA would fetch the number for every unit that is drawn, and no longer draw many at once
        return jnp.sum(jnp.where(jnp.arange(len(betas)) == number, betas, 0))

    def step(carry: tuple[Array, Array], number: Array) -> tuple[tuple[Array, Array], None]:
        visible, total = carry
        beta, next_beta = pick(number), pick(number + 1)
        logits = rbm.hidden_logits(visible)
        total = total + log_ratio(rbm, visible, logits, base_bias, beta, next_beta, small)
        return (transition(fold_in(key, first + number), rbm, logits, base_bias, next_beta), total), None

    start = (visible, jnp.zeros(len(visible), visible.dtype))
    (visible, total), _ = jax.lax.scan(step, start, jnp.arange(len(betas) - 1))
    return visible, total


def anneal(
    key: Array,
    rbm: RBM,
    visible: Array,
    betas: Sequence[float] | np.ndarray,
    base_bias: Any,
    progress: Progress | None = None,
) -> np.ndarray:
    """Log-weights of chains that start at `visible`, drawn from the first of `betas`, and move to the last.

    Parameters
    ----------
    key : typed PRNG key.
    rbm : the machine at beta = 1.
    visible : chains x visible.
    betas : rising from 0 to 1 for forward AIS, falling from 1 to 0 for reverse AIS.
    base_bias : visible logits of the base-rate model at beta = 0.
    progress : called with the steps done and the steps in all.

    Returns
    -------
    One float64 number per chain, `E[exp(.)] = Z_last / Z_first`.

    Examples
    --------
    >>> import jax
    >>> from popcd.evaluation.exact import exact_log_partition
    >>> key, rbm = jax.random.key(0), RBM.create(4, 3)
    >>> start = base_samples(key, rbm, np.zeros(4), 1000)
    >>> log_weights = anneal(key, rbm, start, linear_schedule(50), np.zeros(4))
    >>> bool(abs(np.log(np.exp(log_weights).mean()) + 7 * np.log(2) - exact_log_partition(rbm)) < 0.05)
    True
    """
    rbm = jax.tree.map(lambda leaf: jnp.asarray(leaf, rbm.dtype), rbm)
    path, base = np.asarray(betas), jnp.asarray(base_bias, rbm.dtype)
    visible = spread(visible)
    rbm, base = beside((rbm, base), visible)
    largest = np.max(np.abs(rbm.hidden_bias) + np.abs(rbm.weights).sum(axis=0)) * np.abs(np.diff(path)).max()
    total, steps = np.zeros(len(visible)), len(path) - 1
    for first in range(0, steps, _CHUNK):
        part = jnp.asarray(path[first : first + _CHUNK + 1], rbm.dtype)
        visible, increments = _chunk(stream(key, "anneal"), visible, first, part, base, rbm, bool(largest < 1))
        total += np.asarray(on_host(increments), np.float64)
        if progress is not None:
            progress(first + len(part) - 1, steps)
    return total
