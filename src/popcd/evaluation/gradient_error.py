"""Bias and variance of a gradient estimator on a given machine, in streaming moments.

    bias = |mean g - truth|^2 / parameters,   variance = mean |g - mean g|^2 / parameters

An average of R estimates has squared error variance / R even without any bias; the corrected bias has that subtracted.
Reference: Krause, Fischer, Igel (2016), section 4, Table 1.
"""

import functools
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from popcd.checks import binary_matrix, positive_int
from popcd.estimators import Estimator
from popcd.evaluation.ais import Progress
from popcd.evaluation.exact import data_moments, exact_gradient
from popcd.evaluation.likelihood import AUTO_UNITS, base_rate
from popcd.evaluation.tempered import tempered_moments
from popcd.gradient import gradient
from popcd.prng import fold_in, stream
from popcd.rbm import RBM

_GROUPS = 20
_CHUNK = 250


@dataclass(frozen=True)
class GradientError:
    """Mean squares per parameter, each with its standard error (a jackknife over 20 groups of repeats).

    bias : squared distance of the mean gradient from the truth, as the paper reports it.
    bias_corrected : the same less `noise_floor`, what an unbiased estimator would show; can be slightly negative.
    variance : of one gradient estimate, its batch included.
    noise_floor : variance / repeats, and the noise of the truth where that was sampled.
    ess : mean effective sample size of the particles.
    truth : "exact", "tempered" or "given".
    """

    bias: float
    bias_stderr: float
    bias_corrected: float
    variance: float
    variance_stderr: float
    noise_floor: float
    ess: float
    repeats: int
    truth: str


def gradient_error(
    rbm: RBM,
    data: Any,
    estimator: Estimator,
    *,
    batch_size: int,
    repeats: int = 5_000,
    seed: int = 0,
    truth: RBM | None = None,
    progress: Progress | None = None,
) -> GradientError:
    """Bias and variance per parameter of `estimator` at `rbm`, every estimate with a fresh batch of `data`.

    Parameters
    ----------
    rbm : the machine at which gradients are estimated.
    data : rows x visible; each batch is drawn from it without replacement.
    estimator : any popcd estimator; persistent ones keep their chains from repeat to repeat.
    batch_size, repeats : rows per estimate and number of estimates. Memory does not grow with the repeats.
    seed : the same seed gives the same figures.
    truth : the gradient over all of `data` where it is known already; by default exact up to 20 units on the smaller side,
        and by long parallel tempering beyond.
    progress : called with the repeats done and the repeats in all.

    Examples
    --------
    >>> import popcd
    >>> data, rbm = popcd.datasets.load("bars-and-stripes").train, popcd.RBM.create(16, 4)
    >>> found = popcd.gradient_error(rbm, data, popcd.exact(), batch_size=32, repeats=20)
    >>> found.bias < 1e-12, found.variance < 1e-12
    (True, True)
    """
    rows = binary_matrix("data", data, rbm.n_visible)
    batch_size, repeats = positive_int("batch_size", batch_size), positive_int("repeats", repeats)
    if batch_size > len(rows):
        raise ValueError(f"batch_size must be at most the number of rows, {len(rows)}, got {batch_size}")
    if repeats < 2:
        raise ValueError(f"repeats must be at least 2 to have a variance, got {repeats}")
    known, kind, truth_noise = _truth(rbm, rows, truth, seed)

    rbm = jax.tree.map(lambda leaf: jnp.asarray(leaf, rbm.dtype), rbm)
    centre = jax.tree.map(lambda leaf: jnp.asarray(leaf, rbm.dtype), known)
    root, on_device = jax.random.key(seed), jnp.asarray(rows)
    state = estimator.init(stream(root, "init"), rbm, on_device[: estimator.n_starts or batch_size])
    chunk = min(_CHUNK, -(-repeats // _GROUPS))
    n_chunks = -(-repeats // chunk)
    groups = _Groups(min(_GROUPS, n_chunks))
    for number in range(n_chunks):
        first = number * chunk
        count = min(chunk, repeats - first)
        state, sums = _repeat(root, state, first, count, rbm, centre, on_device, estimator, batch_size)
        groups.add(number * groups.n // n_chunks, count, sums)
        if progress is not None:
            progress(first + count, repeats)
    return groups.result(repeats, kind, truth_noise)


@functools.partial(jax.jit, static_argnames=("estimator", "batch_size"))
def _repeat(
    root: Array,
    state: Any,
    first: Array,
    count: Array,
    rbm: RBM,
    truth: RBM,
    data: Array,
    estimator: Estimator,
    batch_size: int,
) -> tuple[Any, tuple[RBM, RBM, Array]]:
    """Sums over repeats of g - truth, of its squares, and of the effective sample size."""
    n_starts = max(estimator.n_starts or 0, batch_size)

    def one(number: Array, carry: Any) -> Any:
        state, (total, squares, ess) = carry
        order = jnp.arange(len(data))
        if batch_size < len(data):
            order = jax.random.permutation(fold_in(stream(root, "data"), number), len(data))
        rows = data[jnp.resize(order, (n_starts,))]
        state, particles = estimator.step(fold_in(stream(root, "chain"), number), state, rbm, rows)
        gap = jax.tree.map(jnp.subtract, gradient(rbm, rows[:batch_size], particles), truth)
        total = jax.tree.map(jnp.add, total, gap)
        squares = jax.tree.map(lambda s, g: s + g * g, squares, gap)
        return state, (total, squares, ess + particles.ess)

    zeros = jax.tree.map(jnp.zeros_like, rbm)
    return jax.lax.fori_loop(first, first + count, one, (state, (zeros, zeros, jnp.zeros((), rbm.dtype))))


def _truth(rbm: RBM, rows: np.ndarray, given: RBM | None, seed: int) -> tuple[RBM, str, float]:
    """The gradient over all rows, how it is known, and its own noise per parameter."""
    if given is not None:
        if given.weights.shape != rbm.weights.shape:
            raise ValueError(f"truth has weights of shape {given.weights.shape}, the machine {rbm.weights.shape}")
        return given, "given", 0.0
    if min(rbm.n_visible, rbm.n_hidden) <= AUTO_UNITS:
        return exact_gradient(rbm, rows), "exact", 0.0
    model, noise = tempered_moments(jax.random.key(seed), rbm, base_rate(rows))
    means = data_moments(rbm, rows)
    found = RBM(*(a - b for a, b in zip(jax.tree.leaves(means), jax.tree.leaves(model), strict=True)))
    return found, "tempered", noise


class _Groups:
    """Streaming sums of gaps and squares, one pair per group of repeats, in float64."""

    def __init__(self, n: int):
        self.n, self.counts, self.ess = n, np.zeros(n), 0.0
        self.totals: list[Any] = [0.0] * n
        self.squares = np.zeros(n)

    def add(self, group: int, count: int, sums: tuple[RBM, RBM, Array]) -> None:
        total, squares, ess = sums
        self.counts[group] += count
        self.totals[group] = self.totals[group] + _flat(total)
        self.squares[group] += _flat(squares).mean()
        self.ess += float(ess)

    def result(self, repeats: int, kind: str, truth_noise: float) -> GradientError:
        totals = np.stack(self.totals)
        bias, variance = _figures(totals.sum(axis=0), self.squares.sum(), repeats)
        without = [
            _figures(totals.sum(axis=0) - totals[g], self.squares.sum() - self.squares[g], repeats - self.counts[g])
            for g in range(self.n)
        ]
        bias_stderr, variance_stderr = np.sqrt((self.n - 1) * np.var(without, axis=0))
        floor = variance / repeats + truth_noise
        return GradientError(
            bias=float(bias),
            bias_stderr=float(bias_stderr),
            bias_corrected=float(bias - floor),
            variance=float(variance),
            variance_stderr=float(variance_stderr),
            noise_floor=float(floor),
            ess=self.ess / repeats,
            repeats=repeats,
            truth=kind,
        )


def _flat(rbm: RBM) -> np.ndarray:
    return np.concatenate([np.asarray(leaf, np.float64).ravel() for leaf in jax.tree.leaves(rbm)])


def _figures(total: np.ndarray, squares: float, n: float) -> tuple[float, float]:
    """Bias and variance per parameter from the sums of n gaps and of their squares (mean over parameters)."""
    bias = np.square(total / n).mean()
    return bias, (squares / n - bias) * n / (n - 1)
