"""Training: gradient ascent on the mean log-likelihood in compiled chunks of updates."""

import functools
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jax.typing import ArrayLike

from popcd.checks import binary_matrix, instance_of, non_negative, positive_int
from popcd.epochs import Place
from popcd.estimators import Estimator
from popcd.evaluation.exact import exact_log_partition, log_unnormalised
from popcd.rbm import RBM, unchecked
from popcd.updates import Plan, TrainState, advance, init

_CHUNK, _LONGEST_CHUNK = 100, 1000
_LOW_ESS = 0.02
_EVALUATED_UNITS = 20


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


def train(
    rbm: RBM,
    data: ArrayLike,
    estimator: Estimator,
    *,
    iterations: int,
    batch_size: int,
    learning_rate: float | optax.Schedule | None = None,
    optimizer: optax.GradientTransformation | None = None,
    weight_decay: float = 0.0,
    centered: bool = False,
    seed: int = 0,
    evaluate_every: int | None = None,
    evaluate: Callable[[RBM], Mapping[str, float]] | None = None,
    resume: TrainState | None = None,
) -> Run:
    """Climb the mean log-likelihood of `data`: `theta <- theta + rate * gradient`, one batch per update.

    Rows are shuffled anew for every epoch. Batches follow each other through the epochs without a gap, so each is full and
    each row is seen once per epoch also where the size does not divide the number of rows.

    Parameters
    ----------
    rbm : where to start, see `RBM.create`.
    data : rows x visible of zeros and ones.
    estimator : `popcd.cd()`, `popcd.pcd()`, `popcd.pt()`, `popcd.pop_cd()` or `popcd.exact()`.
    iterations : number of updates in all (with `resume`: counted from the very first).
    batch_size : rows per update.
    learning_rate : a number or an Optax schedule, for plain gradient ascent; 0.1 where nothing is given.
    optimizer : any Optax transformation, in place of plain gradient ascent.
    weight_decay : this much of the weights is subtracted from their gradient; biases do not decay.
    centered : make the updates in the coordinates of the centred machine (Melchior, Fischer, Wiskott 2016).
    seed : the same seed gives the same run.
    evaluate_every : updates between two evaluations; None evaluates nothing.
    evaluate : returns named numbers for a machine; by default the exact mean log-likelihood of `data`.
    resume : the `state` of an earlier run with the same arguments; continues it bit for bit.

    Returns
    -------
    Run, whose history has `step`, means over the updates since the last row of `ess`, `largest_weight`,
    `gradient_norm` and what the estimator's kernel reports, and what `evaluate` returns (`log_likelihood` by default).

    Raises
    ------
    TrainingDivergedError
        When parameters become non-finite. The error holds the run up to the last good update.

    Examples
    --------
    >>> import popcd
    >>> data = popcd.datasets.load("bars-and-stripes").train
    >>> rbm = popcd.RBM.create(n_visible=16, n_hidden=8, seed=0)
    >>> run = popcd.train(rbm, data, popcd.pop_cd(), iterations=200, batch_size=32, evaluate_every=100)
    >>> run.history["step"].tolist(), run.history["log_likelihood"].shape
    ([100, 200], (2,))
    """
    instance_of("rbm", rbm, RBM)
    instance_of("estimator", estimator, Estimator)
    rows = binary_matrix("data", data, rbm.n_visible)
    iterations = positive_int("iterations", iterations)
    batch_size = positive_int("batch_size", batch_size)
    if batch_size > len(rows):
        raise ValueError(f"batch_size must be at most the number of rows, {len(rows)}, got {batch_size}")
    evaluate, interval = _evaluation(rbm, rows, evaluate, evaluate_every)
    plan = Plan(estimator, _optimizer(optimizer, learning_rate, weight_decay), batch_size, centered, len(rows))
    on_device = jnp.asarray(rows)
    root = jax.random.key(seed)
    state = init(root, rbm, on_device, plan)
    if resume is not None:
        state = _resumed(resume, state, iterations)

    history: dict[str, list[Any]] = {"step": []}
    watch = _EssWatch(str(estimator))
    place, since, sums = plan.place(state, root), int(state.step), dict[str, np.ndarray]()
    while (start := int(state.step)) < iterations:
        evaluation = min(start - start % interval + interval, iterations)
        stop = min(evaluation, start + _LONGEST_CHUNK)
        before = state, place
        state, place, found = advance(*before, stop, on_device, root, plan)
        if not _finite(state.rbm):
            step, good = _last_good(*before, stop, on_device, root, plan)
            raise TrainingDivergedError(step, Run(good.rbm, _arrays(history), good))
        if estimator.sampled:
            watch.see(stop - start, float(found["ess_fraction"]), float(found["ess"]), stop)
        sums = {name: np.asarray(value, np.float64) + sums.get(name, 0) for name, value in found.items()}
        if stop == evaluation:
            means = {name: value / (stop - since) for name, value in sums.items() if name != "ess_fraction"}
            for name, value in {"step": stop, **means, **evaluate(state.rbm)}.items():
                history.setdefault(name, []).append(value)
            since, sums = stop, {}
    return Run(state.rbm, _arrays(history), state)


def _optimizer(
    given: optax.GradientTransformation | None, learning_rate: float | optax.Schedule | None, weight_decay: float
) -> optax.GradientTransformation:
    if given is not None:
        instance_of("optimizer", given, optax.GradientTransformation)
    if given is not None and learning_rate is not None:
        raise ValueError("give either optimizer, which knows its own rate, or learning_rate, not both")
    if not callable(learning_rate):
        learning_rate = non_negative("learning_rate", 0.1 if learning_rate is None else learning_rate)
    return _rule(given, learning_rate, non_negative("weight_decay", weight_decay))


@functools.lru_cache
def _rule(
    given: optax.GradientTransformation | None, learning_rate: float | optax.Schedule, weight_decay: float
) -> optax.GradientTransformation:
    """Cached, because equal settings then share one compiled program."""
    rule = optax.sgd(learning_rate) if given is None else given
    if not weight_decay:
        return rule
    weights_only = unchecked(weights=True, visible_bias=False, hidden_bias=False)
    return optax.chain(optax.add_decayed_weights(weight_decay, mask=weights_only), rule)


def _evaluation(
    rbm: RBM, data: np.ndarray, evaluate: Callable[[RBM], Mapping[str, float]] | None, every: int | None
) -> tuple[Callable[[RBM], Mapping[str, float]], int]:
    if every is None:
        if evaluate is not None:
            raise ValueError("evaluate was given without evaluate_every: say how many updates lie between evaluations")
        return lambda _: {}, _CHUNK
    every = positive_int("evaluate_every", every)
    if evaluate is not None:
        return evaluate, every
    if min(rbm.n_visible, rbm.n_hidden) > _EVALUATED_UNITS:
        raise ValueError(
            f"evaluate_every={every} computes the exact log-likelihood by default, which a {rbm.n_visible} x {rbm.n_hidden} "
            f"machine does not allow (at most {_EVALUATED_UNITS} units on the smaller side): pass evaluate=, a function of "
            "the machine that returns named numbers, for example "
            'lambda rbm: {"pseudo": popcd.pseudo_log_likelihood(rbm, rows).value}'
        )
    distinct, counts = np.unique(data, axis=0, return_counts=True)
    share = counts / counts.sum()

    def exact(machine: RBM) -> dict[str, float]:
        return {"log_likelihood": float(share @ log_unnormalised(machine, distinct)) - exact_log_partition(machine)}

    return exact, every


def _resumed(given: TrainState, fresh: TrainState, iterations: int) -> TrainState:
    """The state to resume from, if it has the form of a state of this run and updates are left."""
    form, expected = ((jax.tree.structure(state), [leaf.shape for leaf in jax.tree.leaves(state)]) for state in (given, fresh))
    if form != expected:
        raise ValueError(f"resume is the state of a run with other settings: expected {expected}, got {form}")
    if int(given.step) >= iterations:
        raise ValueError(f"resume has {int(given.step)} updates behind it: iterations must be larger, got {iterations}")
    return given


def _finite(rbm: RBM) -> bool:
    return all(bool(jnp.isfinite(leaf).all()) for leaf in jax.tree.leaves(rbm))


def _last_good(good: TrainState, place: Place, stop: int, data: Array, root: Array, plan: Plan) -> tuple[int, TrainState]:
    """Replay a chunk that ended non-finite, halving it: the first bad update and the state before it."""
    while stop - int(good.step) > 1:
        middle = (int(good.step) + stop) // 2
        state, there, _ = advance(good, place, middle, data, root, plan)
        if _finite(state.rbm):
            good, place = state, there
        else:
            stop = middle
    return stop, good


def _arrays(history: dict[str, list[Any]]) -> dict[str, np.ndarray]:
    return {name: np.asarray(values) for name, values in history.items()}


class _EssWatch:
    """Warns once when the effective sample size stays below 2 % of the particles over at least 100 updates."""

    def __init__(self, label: str):
        self.label, self.updates, self.total, self.warned = label, 0, 0.0, False

    def see(self, updates: int, fractions: float, sizes: float, step: int) -> None:
        """`updates` updates up to `step`, with the sums of their effective sample sizes and of those per particle."""
        self.updates += updates
        self.total += fractions
        if self.updates < _CHUNK:
            return
        mean, self.updates, self.total = self.total / self.updates, 0, 0.0
        if mean < _LOW_ESS and not self.warned:
            self.warned = True
            warnings.warn(
                f"{self.label}: the effective sample size stayed at {mean:.2%} of the particles ("
                f"{sizes / updates:.1f} of them) up to update {step}, so the gradient rests on a few. What helps: "
                "pop_cd(proposal='mixture'), more particles (n_particles), or pcd() and pt(), which need no weights.",
                LowESSWarning,
                stacklevel=3,
            )
