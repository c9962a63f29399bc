"""Training as a stream of compiled chunks of updates, between which a caller evaluates, writes a checkpoint, or stops."""

import functools
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
import optax
from jax.sharding import Mesh
from jax.typing import ArrayLike

from popcd.checks import instance_of, non_negative, positive_int, training_matrix
from popcd.devices import check_sizes, on_host, placed
from popcd.estimators import Estimator
from popcd.rbm import RBM, unchecked
from popcd.sources import Source, source
from popcd.updates import Plan, TrainState

CHUNK, _LONGEST_CHUNK = 100, 1000
_LOW_ESS = 0.02


@dataclass(frozen=True)
class Run:
    """What training gives back: the machine, arrays by name (one row per evaluation), and the state to go on from."""

    rbm: RBM
    history: dict[str, np.ndarray]
    state: TrainState


class TrainingDivergedError(ArithmeticError):
    """Parameters became non-finite at update `step`; `run` ends with the last update before it."""

    def __init__(self, step: int, run: Run):
        super().__init__(
            f"parameters became non-finite at update {step}; the machine after update {step - 1} is kept in `.run` of this "
            "error. A smaller learning rate or gradient clipping usually helps."
        )
        self.step, self.run = step, run


class LowESSWarning(UserWarning):
    """Almost all weight lies on a few particles."""


class Chunk(NamedTuple):
    """Updates `start` to `stop`: the state after them and the sums of what was measured on the way."""

    start: int
    stop: int
    state: TrainState
    sums: dict[str, np.ndarray]


class Means:
    """Means of what chunks measured, since they were last taken; `updates` and `sums` are all there is to remember."""

    def __init__(self, updates: int = 0, sums: dict[str, Any] | None = None) -> None:
        self.updates, self.sums = updates, sums or {}

    def add(self, chunk: Chunk) -> None:
        self.updates += chunk.stop - chunk.start
        self.sums = {name: value + self.sums.get(name, 0) for name, value in chunk.sums.items() if name != "ess_fraction"}

    def take(self) -> dict[str, Any]:
        means = {name: value / self.updates for name, value in self.sums.items()}
        self.sums, self.updates = {}, 0
        return means


class Training(NamedTuple):
    """A run that can begin: its rows, the state before the first update, and its estimator."""

    rows: Source
    first: TrainState
    estimator: Estimator

    def check(self) -> None:
        """Let the estimator say what it cannot do with these sizes, before anything is computed or written."""
        self.rows.check(self.first)

    def chunks(self, iterations: int, stops: Sequence[int] = (CHUNK,), resume: TrainState | None = None) -> Iterator[Chunk]:
        """Chunks of updates up to `iterations` that end at multiples of each of `stops`, from the first state or another."""
        iterations = positive_int("iterations", iterations)
        state = self.first if resume is None else _resumed(resume, self.first, iterations)
        return _chunks(state, self.rows, iterations, tuple(stops), self.estimator)


def prepare(
    rbm: RBM,
    data: ArrayLike,
    estimator: Estimator,
    *,
    batch_size: int,
    learning_rate: float | optax.Schedule | None = None,
    optimizer: optax.GradientTransformation | None = None,
    weight_decay: float = 0.0,
    centered: bool = False,
    seed: int = 0,
    mesh: Mesh | None = None,
) -> Training:
    """What `train` trains, ready to begin; arguments as there, and the devices to use as a mesh."""
    instance_of("rbm", rbm, RBM)
    instance_of("estimator", estimator, Estimator)
    matrix = training_matrix("data", data, rbm.n_visible)
    batch_size = positive_int("batch_size", batch_size)
    rule = _optimizer(optimizer, learning_rate, weight_decay)
    if batch_size > len(matrix):
        raise ValueError(f"batch_size must be at most the number of rows, {len(matrix)}, got {batch_size}")
    if mesh is not None:
        check_sizes(mesh, rbm.n_hidden, batch_size, estimator.n_starts)
    return prepared(rbm, matrix, estimator, rule, batch_size, centered, seed, mesh)


def prepared(
    rbm: RBM,
    matrix: np.ndarray,
    estimator: Estimator,
    rule: optax.GradientTransformation,
    batch_size: int,
    centered: bool,
    seed: int,
    mesh: Mesh | None = None,
    brief: bool = False,
) -> Training:
    """As `prepare`, of rows that were checked; they may be grey, from 0 to 1, and then stand for means of units."""
    rows = source(matrix, Plan(estimator, rule, batch_size, centered, brief), seed, batch_size < len(matrix), mesh)
    return Training(rows, rows.begin(rbm), estimator)


def _chunks(state: TrainState, rows: Source, iterations: int, stops: tuple[int, ...], estimator: Estimator) -> Iterator[Chunk]:
    watch = _EssWatch(str(estimator))
    while (start := int(state.step)) < iterations:
        stop = min(iterations, start + _LONGEST_CHUNK, *(start - start % every + every for every in stops))
        before = state
        state, sums = rows.advance(before, stop, iterations)
        if not _finite(state.rbm):
            step, good = _last_good(before, stop, rows)
            raise TrainingDivergedError(step, Run(good.rbm, {}, good))
        if estimator.sampled:
            watch.see(stop - start, float(sums["ess_fraction"]), float(sums["ess"]), stop)
        yield Chunk(start, stop, state, sums)


def _optimizer(
    given: optax.GradientTransformation | None, learning_rate: float | optax.Schedule | None, weight_decay: float
) -> optax.GradientTransformation:
    if given is not None:
        instance_of("optimizer", given, optax.GradientTransformation)
    if given is not None and learning_rate is not None:
        raise ValueError("give either optimizer, which knows its own rate, or learning_rate, not both")
    if not callable(learning_rate):
        learning_rate = non_negative("learning_rate", 0.1 if learning_rate is None else learning_rate)
    return _ascent(given, learning_rate, non_negative("weight_decay", weight_decay))


@functools.lru_cache
def _ascent(
    given: optax.GradientTransformation | None, learning_rate: float | optax.Schedule, weight_decay: float
) -> optax.GradientTransformation:
    """Cached, because equal settings then share one compiled program."""
    rule = optax.sgd(learning_rate) if given is None else given
    if not weight_decay:
        return rule
    weights_only = unchecked(weights=True, visible_bias=False, hidden_bias=False)
    return optax.chain(optax.add_decayed_weights(weight_decay, mask=weights_only), rule)


def _resumed(given: TrainState, fresh: TrainState, iterations: int) -> TrainState:
    """The state to resume from, if it has the form of a state of this run and updates are left."""
    form, expected = ((jax.tree.structure(state), [leaf.shape for leaf in jax.tree.leaves(state)]) for state in (given, fresh))
    if form != expected:
        raise ValueError(f"resume is the state of a run with other settings: expected {expected}, got {form}")
    if int(given.step) >= iterations:
        raise ValueError(f"resume has {int(given.step)} updates behind it: iterations must be larger, got {iterations}")
    return jax.tree.map(placed, on_host(given), fresh)  # it may come from another number of devices


def _finite(rbm: RBM) -> bool:
    return all(bool(np.isfinite(leaf).all()) for leaf in jax.tree.leaves(on_host(rbm)))  # in NumPy: nothing to compile


def _last_good(good: TrainState, stop: int, rows: Source) -> tuple[int, TrainState]:
    """Replay a chunk that ended non-finite, halving it: the first bad update and the state before it."""
    while stop - int(good.step) > 1:
        middle = (int(good.step) + stop) // 2
        state, _ = rows.advance(good, middle)
        if _finite(state.rbm):
            good = state
        else:
            stop = middle
    return stop, good


class _EssWatch:
    """Warns once when the effective sample size stays below 2 % of the particles over at least 100 updates."""

    def __init__(self, label: str):
        self.label, self.updates, self.total, self.warned = label, 0, 0.0, False

    def see(self, updates: int, fractions: float, sizes: float, step: int) -> None:
        """`updates` updates up to `step`, with the sums of their effective sample sizes and of those per particle."""
        self.updates += updates
        self.total += fractions
        if self.updates < CHUNK:
            return
        mean, self.updates, self.total = self.total / self.updates, 0, 0.0
        if mean < _LOW_ESS and not self.warned:
            self.warned = True
            warnings.warn(
                f"{self.label}: the effective sample size stayed at {mean:.2%} of the particles ("
                f"{sizes / updates:.1f} of them) up to update {step}, so the gradient rests on a few. What helps: "
                "pop_cd(proposal='mixture'), more particles (n_particles), or pcd() and pt(), which need no weights.",
                LowESSWarning,
                stacklevel=6,
            )
