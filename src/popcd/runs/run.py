"""Training in a folder: metrics, checkpoints, and a run that continues bit for bit wherever it was stopped."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any, NamedTuple

import jax
import numpy as np
import optax

import popcd
import popcd.io as io
import popcd.runs.checkpoint as checkpoint
from popcd.chunks import Chunk, Means, Training, prepare
from popcd.datasets import Dataset, fingerprint, load
from popcd.estimators import Estimator, cd, exact, pcd, pop_cd, pt
from popcd.evaluation import log_likelihood, pseudo_log_likelihood
from popcd.evaluation.likelihood import AUTO_UNITS
from popcd.foreign import FileError
from popcd.rbm import RBM
from popcd.runs.configuration import Configuration
from popcd.runs.folder import RunFolder
from popcd.runs.loggers import Log, no_loggers
from popcd.updates import TrainState

_EVALUATED_ROWS = 1_000
_BUILDERS: dict[str, Callable[..., Estimator]] = {"cd": cd, "pcd": pcd, "pt": pt, "pop-cd": pop_cd, "exact": exact}
_CHUNK_WORK = 1e10  # multiply-adds between two moments at which a run can be stopped, about a second


class Event(NamedTuple):
    """Where a run is: updates done, the last row of metrics if there is a new one, whether a checkpoint was written."""

    step: int
    row: dict[str, Any] | None
    saved: bool


def build_estimator(config: Configuration) -> Estimator:
    """The estimator that a configuration names."""
    return _BUILDERS[config.estimator](**config.estimator_settings)


def learning_rate(config: Configuration) -> float | optax.Schedule:
    """A number, or a schedule that falls to zero at the last update."""
    if config.schedule == "linear":
        return optax.linear_schedule(config.learning_rate, 0.0, config.iterations)
    if config.schedule == "cosine":
        return optax.cosine_decay_schedule(config.learning_rate, config.iterations)
    return config.learning_rate


def load_data(config: Configuration) -> Dataset:
    """The data set that a configuration names."""
    options = {name: value for name in ("threshold", "test_fold") if (value := getattr(config, name)) is not None}
    return load(config.data, **options)


def describe(data: Dataset) -> dict[str, Any]:
    """What a run remembers of its data."""
    test = None if data.test is None else fingerprint(data.test)
    size = {"name": data.name, "rows": len(data.train), "visible": data.train.shape[1]}
    return size | {"sha256": fingerprint(data.train), "test_sha256": test}


def run(
    config: Configuration,
    folder: RunFolder,
    data: Dataset,
    *,
    resume: bool,
    stopped: Callable[[], bool],
    tell: Callable[[str], None],
    loggers: Callable[[ExitStack], Sequence[Log]] = no_loggers,
) -> Iterator[Event]:
    """Train, begin or continue; ends after a checkpoint when `stopped()` is true, and with the machine written otherwise."""
    what = describe(data)
    if resume:
        folder.check_data(what)
    else:
        folder.check_free()
    header = {"configuration": asdict(config), "seed": config.seed, "data": what["sha256"], "popcd": popcd.__version__}
    training = _prepared(config, data)
    if not resume:  # only now: settings that cannot be trained leave no folder behind
        folder.begin(config, what)
    state, means = _last(training, config, folder, tell) if resume else (training.first, Means())
    folder.forget_rows_after(int(state.step))
    record = _recorder(folder, evaluation(config.hidden, data))
    with ExitStack() as stack:
        logs = loggers(stack)
        for chunk in _chunks(training, config, state):
            means.add(chunk)
            state, last, stop = chunk.state, chunk.stop == config.iterations, stopped()
            row = record(chunk.stop, means, state.rbm, logs) if last or chunk.stop % config.evaluation_interval == 0 else None
            save = last or stop or chunk.stop % config.checkpoint_interval == 0
            if save:
                since = {"updates": means.updates, "sums": {n: np.asarray(v).tolist() for n, v in means.sums.items()}}
                checkpoint.write(folder.checkpoints, state, header | {"since_last_row": since})
            yield Event(chunk.stop, row, save)
            if stop and not last:
                return
    io.save(state.rbm, folder.model)


def _chunks(training: Training, config: Configuration, state: TrainState) -> Iterator[Chunk]:
    """Chunks that end at rows of metrics and at checkpoints, and about every second, so that a run can be stopped."""
    if int(state.step) >= config.iterations:
        return iter(())
    size = state.rbm.n_visible * config.hidden * config.batch_size
    stops = (config.evaluation_interval, config.checkpoint_interval, int(np.clip(_CHUNK_WORK / size, 10, 1000)))
    return training.chunks(config.iterations, stops, state)


def _recorder(folder: RunFolder, evaluate: Callable[[RBM], dict[str, float]]) -> Callable[..., dict[str, Any]]:
    """Makes a row of metrics, adds it to the run's file and tells the loggers."""
    rows = folder.rows()
    began = time.monotonic() - (rows[-1]["seconds"] if rows else 0.0)

    def record(step: int, means: Means, rbm: RBM, logs: Sequence[Log]) -> dict[str, Any]:
        seconds = round(time.monotonic() - began, 3)
        row = {"step": step, "seconds": seconds} | plain(means.take()) | evaluate(rbm)
        folder.add_row(row)
        for log in logs:
            log(step, {n: v for n, v in row.items() if isinstance(v, float)})
        return row

    return record


def _prepared(config: Configuration, data: Dataset) -> Training:
    start = RBM.create(data.train.shape[1], config.hidden, config.seed, data.train if config.start == "data" else None)
    return prepare(
        start,
        data.train,
        build_estimator(config),
        batch_size=config.batch_size,
        learning_rate=learning_rate(config),
        weight_decay=config.weight_decay,
        centered=config.centered,
        seed=config.seed,
    )


def _last(
    training: Training, config: Configuration, folder: RunFolder, tell: Callable[[str], None]
) -> tuple[TrainState, Means]:
    """The newest checkpoint that is whole, with the metrics since the last row; the first state where there never was one."""
    paths = checkpoint.found(folder.checkpoints)
    for path in reversed(paths):
        try:
            state, header = checkpoint.read(path, training.first)
        except FileError as error:
            tell(f"{error}; the checkpoint before it is used, this one is kept as {path.name}.damaged")
            path.rename(path.with_name(f"{path.name}.damaged"))
            continue
        if header["configuration"] != asdict(config):
            raise FileError(f"config.toml in {folder.path} was changed since the run began: put it back, or begin a new run")
        since = header["since_last_row"]
        return state, Means(since["updates"], {n: np.asarray(v) for n, v in since["sums"].items()})
    if paths:
        raise FileError(f"no checkpoint in {folder.checkpoints} can be used: begin a new run with another --out")
    return training.first, Means()


def evaluation(hidden: int, data: Dataset) -> Callable[[RBM], dict[str, float]]:
    """Log-likelihoods of at most 1,000 rows of each part: exact where that is possible, pseudo-likelihoods elsewhere."""
    parts = {"": data.train[:_EVALUATED_ROWS]} | ({} if data.test is None else {"test_": data.test[:_EVALUATED_ROWS]})
    exactly = min(hidden, data.train.shape[1]) <= AUTO_UNITS
    name, measure = ("log_likelihood", log_likelihood) if exactly else ("pseudo_log_likelihood", pseudo_log_likelihood)
    return lambda rbm: {f"{prefix}{name}": measure(rbm, rows).value for prefix, rows in parts.items()}


def plain(metrics: dict[str, Any]) -> dict[str, Any]:
    """Numbers as Python has them; a vector, such as swap rates, as its least value."""
    host = {name: np.asarray(value, np.float64) for name, value in jax.device_get(metrics).items()}
    return {name if value.ndim == 0 else f"least_{name}": float(value.min()) for name, value in host.items() if value.size}
