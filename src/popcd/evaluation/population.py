"""Bias and variance of the negative phase against the number of particles N, a population being streamed through memory.

    g_N = mean over all data of f(v) - sum_i w_i f(v_i) / sum_i w_i,   i = 1 .. N

The sums run over blocks of particles, each scaled by the largest weight so far, so that memory does not grow with N. With
independent particles and weights of finite variance, bias and variance both fall as 1/N (the squared bias as 1/N^2); an
estimator without weights keeps the bias of its chains, whatever N.
References: Krause, Fischer, Igel (2016), section 3; Owen (2013), Monte Carlo theory, methods and examples, section 9.2.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from popcd.checks import binary_matrix, instance_of, positive_int
from popcd.estimators import Estimator
from popcd.evaluation.ais import Progress
from popcd.evaluation.exact import data_moments
from popcd.evaluation.gradient_error import GROUPS, GradientError, Groups, as_truth
from popcd.evaluation.power_law import Slope, fit_slope
from popcd.evaluation.true_gradient import TrueGradient, true_gradient
from popcd.gradient import weighted_statistics
from popcd.prng import fold_in, root_key, stream
from popcd.rbm import RBM

_BLOCK = 10_000  # particles in memory at a time
_LEAST_REPEATS = 8


@dataclass(frozen=True)
class PopulationError:
    """What `population_error` found, size by size.

    sizes : particles of a population, in increasing order.
    errors : one `GradientError` each; its variance is that of the particles alone, its `ess` is out of so many particles.
    """

    sizes: tuple[int, ...]
    errors: tuple[GradientError, ...]

    @property
    def variance_slope(self) -> Slope | None:
        """The exponent of the variance, held against -1; None with one size."""
        found = self.errors
        return fit_slope(self.sizes, [e.variance for e in found], [e.variance_stderr for e in found], law=-1)

    @property
    def bias_slope(self) -> Slope | None:
        """The exponent of the squared bias, held against -2; None where it is above its noise at fewer than two sizes."""
        seen = [(n, e) for n, e in zip(self.sizes, self.errors, strict=True) if e.above_noise]
        values, errors = [e.bias_corrected for _, e in seen], [e.bias_stderr for _, e in seen]
        return fit_slope([n for n, _ in seen], values, errors, law=-2)


def population_error(
    rbm: RBM,
    data: Any,
    estimator: Estimator,
    *,
    sizes: Sequence[int],
    repeats: int = 1_000,
    seed: int = 0,
    truth: RBM | TrueGradient | None = None,
    progress: Progress | None = None,
) -> PopulationError:
    """Bias, variance and effective sample size of `estimator` at `rbm` for populations of each of these `sizes`.

    The positive phase is the exact mean over all of `data`, so bias and variance are those of the population and not of a
    batch. Every particle starts at a row drawn at random, with replacement.

    Parameters
    ----------
    rbm : the machine at which gradients are estimated.
    data : rows x visible, over which the gradient is taken and at which particles start.
    estimator : one that starts at data and normalises by the sum of weights: `cd`, or `pop_cd` of any proposal. A mixture
        needs its `mixture_size`, which divides every size.
    sizes : particles of a population. Memory does not grow with them.
    repeats : populations of the smallest size. Of a larger one as many fewer as it is larger, but at least 8.
    seed : the same seed gives the same figures. Populations of different sizes share no random bits.
    truth : the gradient over all of `data` where it is known already; by default found by `popcd.evaluation.true_gradient`.
    progress : called with the particles done and the particles in all.

    References
    ----------
    Krause, Fischer, Igel (2016), sections 3 and 4.

    Examples
    --------
    >>> import popcd
    >>> data, rbm = popcd.datasets.load("bars-and-stripes").train, popcd.RBM.create(16, 4)
    >>> found = population_error(rbm, data, popcd.pop_cd(), sizes=[100, 1000], repeats=1_000)
    >>> [error.repeats for error in found.errors], found.variance_slope.verdict
    ([1000, 100], 'falls as 1/N')
    """
    instance_of("rbm", rbm, RBM)
    instance_of("estimator", estimator, Estimator)
    rows = binary_matrix("data", data, rbm.n_visible)
    repeats = positive_int("repeats", repeats, least=_LEAST_REPEATS)
    sizes = sorted({positive_int("sizes", size, least=2) for size in sizes})
    unit = _unit(estimator, rbm, rows, sizes)
    known = as_truth(true_gradient(rbm, rows, seed=seed) if truth is None else truth, rbm)

    # Data moments less the true gradient are the model's moments: what the weighted mean over particles should be
    target = jax.tree.map(lambda a, b: jnp.asarray(a - b, rbm.dtype), data_moments(rbm, rows), known.gradient)
    rbm = jax.tree.map(lambda leaf: jnp.asarray(leaf, rbm.dtype), rbm)
    root, on_device = stream(root_key(seed), "population"), jnp.asarray(rows)
    counts = [max(_LEAST_REPEATS, repeats * sizes[0] // size) for size in sizes]
    done, in_all, errors = 0, sum(n * size for n, size in zip(counts, sizes, strict=True)), []
    for size, n in zip(sizes, counts, strict=True):
        chunk = -(-n // GROUPS)
        groups = Groups(-(-n // chunk))
        for group, first in enumerate(range(0, n, chunk)):
            count = min(chunk, n - first)
            key, per_block = fold_in(root, size), _units_per_block(size // unit, unit)
            sums = _repeat(key, first, count, size // unit, rbm, target, on_device, estimator, unit, per_block)
            groups.add(group, count, sums)
            done += count * size
            if progress is not None:
                progress(done, in_all)
        errors.append(groups.result(n, known, independent=True))
    return PopulationError(tuple(sizes), tuple(errors))


def _unit(estimator: Estimator, rbm: RBM, rows: Any, sizes: Sequence[int]) -> int:
    """Particles that are weighed together, and can only be drawn together: a mixture, or one."""
    settings = dict(estimator.settings)
    if not sizes or sizes[-1] >= 2**31:
        raise ValueError(f"sizes must name at least one number of particles, each below 2**31, got {sizes}")
    if jax.tree.leaves(jax.eval_shape(estimator.init, root_key(0), rbm, rows)) or not estimator.sampled:
        raise ValueError(f"{estimator} has no population that starts at data: expected cd or pop_cd; see gradient_error")
    if estimator.n_starts is not None:
        raise ValueError(f"{estimator} has a size of its own: leave n_particles out, sizes says how many")
    if settings.get("normalizer", "self") != "self":
        raise ValueError(f"{estimator} needs all weights of a population at once: only normalizer='self' can be streamed")
    if settings.get("proposal") == "mixture" and settings["mixture_size"] is None:
        raise ValueError(f"{estimator} compares every particle with every other: give a mixture_size, for example 500")
    unit = settings.get("mixture_size") or 1
    odd = [size for size in sizes if size % unit]
    if odd:
        raise ValueError(f"sizes must be multiples of the mixture_size {unit}, got {', '.join(map(str, odd))}")
    return unit


def _units_per_block(n_units: int, unit: int) -> int:
    """Blocks as equal as they can be, of at most `_BLOCK` particles or one unit."""
    n_blocks = -(-n_units // max(1, _BLOCK // unit))
    return -(-n_units // n_blocks)


@functools.partial(jax.jit, static_argnames=("estimator", "unit", "per_block"))
def _repeat(
    key: Array,
    first: Array,
    count: Array,
    n_units: Array,
    rbm: RBM,
    target: RBM,
    data: Array,
    estimator: Estimator,
    unit: int,
    per_block: int,
) -> tuple[RBM, RBM, Array]:
    """Sums over populations of g - truth, of its squares, and of the effective sample size."""

    def one(number: Array, carry: Any) -> Any:
        total, squares, ess = carry
        found = streamed(fold_in(key, number), n_units, rbm, data, estimator, unit, per_block)
        gap = jax.tree.map(jnp.subtract, target, found.means)
        return jax.tree.map(jnp.add, total, gap), jax.tree.map(lambda s, g: s + g * g, squares, gap), ess + found.ess

    zeros = jax.tree.map(jnp.zeros_like, rbm)
    return jax.lax.fori_loop(first, first + count, one, (zeros, zeros, jnp.zeros((), rbm.dtype)))


class Running(NamedTuple):
    """Sums over particles so far, of weights divided by the largest one, `exp(top)`."""

    top: Array
    weights: Array
    squares: Array
    statistics: RBM

    @property
    def means(self) -> RBM:
        """`sum w f / sum w`."""
        return jax.tree.map(lambda leaf: leaf / self.weights, self.statistics)

    @property
    def ess(self) -> Array:
        """`(sum w)^2 / sum w^2`."""
        return self.weights**2 / self.squares

    def add(self, log_weights: Array, visible: Array, hidden: Array) -> "Running":
        """With these particles too."""
        top = jnp.maximum(self.top, log_weights.max())
        kept, weights = jnp.exp(self.top - top), jnp.exp(log_weights - top)
        new = weighted_statistics(weights, visible, hidden)
        return Running(
            top,
            kept * self.weights + weights.sum(),
            kept**2 * self.squares + (weights**2).sum(),
            jax.tree.map(lambda old, more: kept * old + more, self.statistics, new),
        )


def streamed(key: Array, n_units: Array, rbm: RBM, data: Array, estimator: Estimator, unit: int, per_block: int) -> Running:
    """The sums over a population of `n_units` units of `unit` particles, `per_block` units at a time.

    Each unit has keys of its own, so that no draw depends on the block it is in.
    """

    def draw(number: Array) -> Any:
        rows = jax.random.randint(fold_in(stream(key, "data"), number), (unit,), 0, len(data))
        return estimator.step(fold_in(stream(key, "chain"), number), None, rbm, data[rows])[1]

    def block(number: Array, running: Running) -> Running:
        units = number * per_block + jnp.arange(per_block)
        particles = jax.vmap(draw)(units)
        log_weights = jnp.where(units[:, None] < n_units, particles.log_weights, -jnp.inf)  # the last block may be short
        visible = particles.visible.reshape(-1, rbm.n_visible)
        return running.add(log_weights.ravel(), visible, jax.nn.sigmoid(rbm.hidden_logits(visible)))

    none = jnp.zeros((), rbm.dtype)
    start = Running(none - jnp.inf, none, none, jax.tree.map(jnp.zeros_like, rbm))
    return jax.lax.fori_loop(0, (n_units + per_block - 1) // per_block, block, start)
