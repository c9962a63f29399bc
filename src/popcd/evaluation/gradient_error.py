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

from popcd.checks import binary_matrix, instance_of, positive_int
from popcd.estimators import Estimator
from popcd.evaluation.ais import Progress
from popcd.evaluation.true_gradient import TrueGradient, true_gradient
from popcd.gradient import gradient
from popcd.prng import bits, fold_in, root_key, stream
from popcd.rbm import RBM

GROUPS = 20
_CHUNK = 250


@dataclass(frozen=True)
class GradientError:
    """Mean squares per parameter, each with its standard error (a jackknife over 20 groups of repeats).

    bias : squared distance of the mean gradient from the truth, as the paper reports it.
    bias_corrected : the same less `noise_floor`, what an unbiased estimator would show; can be slightly negative.
    variance : of one gradient estimate, its batch included.
    noise_floor : variance / repeats (between groups of repeats for persistent chains), and the noise of a sampled truth.
    ess : mean effective sample size of the particles.
    truth, truth_swap_rate : "exact", "tempered" or "given"; the least swap rate of a tempered one.
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
    truth_swap_rate: float | None

    @property
    def above_noise(self) -> bool:
        """Whether a bias is surely there: three standard errors above zero, and more of it than the noise subtracted."""
        return self.bias_corrected > max(3 * self.bias_stderr, self.noise_floor)


def gradient_error(
    rbm: RBM,
    data: Any,
    estimator: Estimator,
    *,
    batch_size: int,
    repeats: int = 5_000,
    seed: int = 0,
    truth: RBM | TrueGradient | None = None,
    n_temperatures: int = 40,
    n_ladders: int = 32,
    sweeps: int = 2_000,
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
    truth : the gradient over all of `data` where it is known already; by default found by `popcd.evaluation.true_gradient`.
    n_temperatures, n_ladders, sweeps : the parallel tempering behind a truth that cannot be exact.
    progress : called with the repeats done and the repeats in all.

    Examples
    --------
    >>> import popcd
    >>> data, rbm = popcd.datasets.load("bars-and-stripes").train, popcd.RBM.create(16, 4)
    >>> found = popcd.gradient_error(rbm, data, popcd.exact(), batch_size=32, repeats=20)
    >>> found.bias < 1e-12, found.variance < 1e-12
    (True, True)
    """
    instance_of("rbm", rbm, RBM)
    instance_of("estimator", estimator, Estimator)
    rows = binary_matrix("data", data, rbm.n_visible)
    batch_size, repeats = positive_int("batch_size", batch_size), positive_int("repeats", repeats, least=3)
    if batch_size > len(rows):
        raise ValueError(f"batch_size must be at most the number of rows, {len(rows)}, got {batch_size}")
    if truth is None:
        truth = true_gradient(rbm, rows, n_temperatures=n_temperatures, n_ladders=n_ladders, sweeps=sweeps, seed=seed)
    known = as_truth(truth, rbm)

    rbm = jax.tree.map(lambda leaf: jnp.asarray(leaf, rbm.dtype), rbm)
    centre = jax.tree.map(lambda leaf: jnp.asarray(leaf, rbm.dtype), known.gradient)
    root, on_device = stream(root_key(seed), "gradient_error"), jnp.asarray(rows)
    first_rows = _draw(stream(root, "init"), len(rows), estimator.n_starts or batch_size)
    state = estimator.init(stream(root, "init"), rbm, on_device[first_rows])
    chunk = min(_CHUNK, -(-repeats // GROUPS))
    n_chunks = -(-repeats // chunk)
    groups = Groups(min(GROUPS, n_chunks))
    for number in range(n_chunks):
        first = number * chunk
        count = min(chunk, repeats - first)
        state, sums = _repeat(root, state, first, count, rbm, centre, on_device, estimator, batch_size)
        groups.add(number * groups.n // n_chunks, count, sums)
        if progress is not None:
            progress(first + count, repeats)
    return groups.result(repeats, known, independent=not jax.tree.leaves(state))


def _draw(key: Array, n_rows: int, n: int) -> Array:
    """`n` row numbers without replacement, in random order; from the beginning again where there are fewer rows.

    Random words of 30 bits are ordered as the floats that have these bits, for which XLA has a fast partial sort.
    """
    words = jax.lax.bitcast_convert_type(bits(key, (n_rows,)) >> 2, jnp.float32)
    return jnp.resize(jax.lax.top_k(words, min(n, n_rows))[1], (n,))


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
        rows = data[_draw(fold_in(stream(root, "data"), number), len(data), n_starts)]
        state, particles = estimator.step(fold_in(stream(root, "chain"), number), state, rbm, rows)
        gap = jax.tree.map(jnp.subtract, gradient(rbm, rows[:batch_size], particles), truth)
        total = jax.tree.map(jnp.add, total, gap)
        squares = jax.tree.map(lambda s, g: s + g * g, squares, gap)
        return state, (total, squares, ess + particles.ess)

    zeros = jax.tree.map(jnp.zeros_like, rbm)
    return jax.lax.fori_loop(first, first + count, one, (state, (zeros, zeros, jnp.zeros((), rbm.dtype))))


def as_truth(truth: TrueGradient | RBM, rbm: RBM) -> TrueGradient:
    """A gradient that is known already, checked against the machine."""
    known = truth if isinstance(truth, TrueGradient) else TrueGradient(truth, "given")
    if known.gradient.weights.shape != rbm.weights.shape:
        raise ValueError(f"truth has weights of shape {known.gradient.weights.shape}, the machine {rbm.weights.shape}")
    return known


class Groups:
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

    def result(self, repeats: int, truth: TrueGradient, independent: bool) -> GradientError:
        totals = np.stack(self.totals)
        bias, variance = _figures(totals.sum(axis=0), self.squares.sum(), repeats)
        without = [
            _figures(totals.sum(axis=0) - totals[g], self.squares.sum() - self.squares[g], repeats - self.counts[g])
            for g in range(self.n)
        ]
        bias_stderr, variance_stderr = np.sqrt((self.n - 1) * np.var(without, axis=0))
        # Repeats of persistent chains depend on each other, so that their noise is measured between groups
        between = (totals / self.counts[:, None]).var(axis=0, ddof=1).mean() / self.n
        floor = (variance / repeats if independent else between) + truth.noise
        return GradientError(
            bias=float(bias),
            bias_stderr=float(bias_stderr),
            bias_corrected=float(bias - floor),
            variance=float(variance),
            variance_stderr=float(variance_stderr),
            noise_floor=float(floor),
            ess=self.ess / repeats,
            repeats=repeats,
            truth=truth.kind,
            truth_swap_rate=truth.swap_rate,
        )


def _flat(rbm: RBM) -> np.ndarray:
    return np.concatenate([np.asarray(leaf, np.float64).ravel() for leaf in jax.tree.leaves(rbm)])


def _figures(total: np.ndarray, squares: float, n: float) -> tuple[float, float]:
    """Bias and variance per parameter from the sums of n gaps and of their squares (mean over parameters)."""
    bias = np.square(total / n).mean()
    return bias, (squares / n - bias) * n / (n - 1)
