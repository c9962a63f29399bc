"""Training: gradient ascent on the mean log-likelihood in compiled chunks of updates."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import numpy as np
import optax
from jax.typing import ArrayLike

from popcd.checks import binary_matrix, positive_int
from popcd.chunks import CHUNK, Chunk, Means, Run, Training, TrainingDivergedError, prepare
from popcd.devices import device_mesh, on_host
from popcd.estimators import Estimator
from popcd.evaluation.exact import exact_log_partition, log_unnormalised
from popcd.rbm import RBM
from popcd.updates import TrainState

_EVALUATED_UNITS = 20
_AVERAGED = 32


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
    devices: int | None = None,
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
    devices : how many devices the batch and the particles are spread over, all that JAX sees by default. Their number changes
        the order of float sums, nothing else.

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
    evaluate, interval = _evaluation(rbm, data, evaluate, evaluate_every)
    training = prepare(
        rbm,
        data,
        estimator,
        batch_size=batch_size,
        learning_rate=learning_rate,
        optimizer=optimizer,
        weight_decay=weight_decay,
        centered=centered,
        seed=seed,
        mesh=device_mesh(devices),
    )
    return climb(training, iterations, interval, evaluate, resume)


def climb(
    training: Training,
    iterations: int,
    interval: int,
    evaluate: Callable[[RBM], Mapping[str, float]],
    resume: TrainState | None = None,
    tail: int = 0,
) -> Run:
    """Updates up to `iterations`, with a row of history every `interval` of them.

    The machine of the run is the last one, or the mean of those at about 32 places in the last `tail` updates (Polyak and
    Juditsky 1992): noise that a constant learning rate leaves in the last one is averaged out.
    """
    history: dict[str, list[Any]] = {"step": []}
    means, total, n = Means(), None, 0
    try:
        for chunk in _chunks(training, iterations, interval, resume, tail):
            means.add(chunk)
            if chunk.stop > iterations - tail:
                machine = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), on_host(chunk.state.rbm))
                total, n = machine if total is None else jax.tree.map(np.add, total, machine), n + 1
            if chunk.stop % interval == 0 or chunk.stop == iterations:
                for name, value in {"step": chunk.stop, **means.take(), **evaluate(on_host(chunk.state.rbm))}.items():
                    history.setdefault(name, []).append(value)
    except TrainingDivergedError as error:
        raise TrainingDivergedError(error.step, Run(on_host(error.run.rbm), _arrays(history), error.run.state)) from None
    last = on_host(chunk.state.rbm)
    mean = last if total is None else jax.tree.map(lambda leaf: (leaf / n).astype(last.dtype), total)
    return Run(mean, _arrays(history), chunk.state)


def _chunks(training: Training, iterations: int, interval: int, resume: TrainState | None, tail: int) -> Iterator[Chunk]:
    """Chunks of updates; those of the last `tail` are shorter, so that there are machines to average."""
    state, stops = resume, [interval]
    if tail:
        if iterations - tail > (0 if state is None else int(state.step)):
            for chunk in training.chunks(iterations - tail, stops, state):
                state = chunk.state
                yield chunk
        stops.append(max(1, tail // _AVERAGED))
    yield from training.chunks(iterations, stops, state)


def _evaluation(
    rbm: RBM, data: ArrayLike, evaluate: Callable[[RBM], Mapping[str, float]] | None, every: int | None
) -> tuple[Callable[[RBM], Mapping[str, float]], int]:
    if every is None:
        if evaluate is not None:
            raise ValueError("evaluate was given without evaluate_every: say how many updates lie between evaluations")
        return lambda _: {}, CHUNK
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
    distinct, counts = np.unique(binary_matrix("data", data, rbm.n_visible), axis=0, return_counts=True)
    share = counts / counts.sum()

    def exact(machine: RBM) -> dict[str, float]:
        return {"log_likelihood": float(share @ log_unnormalised(machine, distinct)) - exact_log_partition(machine)}

    return exact, every


def _arrays(history: dict[str, list[Any]]) -> dict[str, np.ndarray]:
    return {name: np.asarray(values) for name, values in history.items()}
