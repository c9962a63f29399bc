"""Training in a folder: metrics, checkpoints, and a run that continues bit for bit wherever it was stopped."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import optax
from jax.sharding import Mesh

import popcd
import popcd.io as io
import popcd.runs.checkpoint as checkpoint
import popcd.runs.distributed as distributed
from popcd.chunks import Chunk, Means, Training, prepare
from popcd.datasets import Dataset, fingerprint, load
from popcd.devices import on_host, placed
from popcd.estimators import BUILDERS, Estimator
from popcd.evaluation import log_likelihood, pseudo_log_likelihood
from popcd.evaluation.likelihood import AUTO_UNITS
from popcd.foreign import FileError
from popcd.rbm import RBM
from popcd.runs.configuration import Configuration
from popcd.runs.folder import RunFolder
from popcd.runs.loggers import Log, loggers
from popcd.updates import TrainState

_EVALUATED_ROWS = 1_000
_CHUNK_WORK = 5e10  # multiply-adds between two moments at which a run can be stopped, about a second
_SAVED_EVERY = 300.0  # seconds after which a checkpoint is written, whatever the settings say


class Event(NamedTuple):
    """Where a run is: updates done, and the row of metrics if there is a new one."""

    step: int
    row: dict[str, Any] | None


def build_estimator(config: Configuration) -> Estimator:
    """The estimator that a configuration names."""
    return BUILDERS[config.estimator](**config.estimator_settings)


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
    services: Sequence[str],
    stopped: Sequence[int],
    tell: Callable[[str], None],
    mesh: Mesh | None = None,
) -> Iterator[Event]:
    """Train, begin or continue; ends with the machine written, or with a checkpoint once a signal is in `stopped`.

    Where several processes run it, all compute and process 0 reads and writes the folder.
    """
    what = describe(data)
    distributed.agree({"configuration": asdict(config), "data": what, "popcd": popcd.__version__, "jax": jax.__version__})
    connect = loggers(services or (folder.about()["log"] if resume else ()), folder.path, asdict(config))
    distributed.led(lambda: _check(folder, what, resume, tell))
    training = _prepared(config, data, mesh)  # first: settings that cannot be trained leave no folder behind
    training.check()
    with ExitStack() as stack:
        distributed.led(lambda: _open(stack, folder, config, what, None if resume else services))
        state, means = _last(training, config, folder, tell) if resume else (training.first, Means())
        keeper = _Keeper(folder, config, data, what["sha256"], int(state.step)) if distributed.leading() else None
        logs = connect(stack, folder.about()["id"]) if keeper else []
        saved = time.monotonic()
        for chunk in _chunks(training, config, state):
            means.add(chunk)
            state, last, row = chunk.state, chunk.stop == config.iterations, None
            stop, late = distributed.any_process(bool(stopped), time.monotonic() - saved > _SAVED_EVERY)
            if last or chunk.stop % config.evaluation_interval == 0:
                rbm, measured = on_host(state.rbm), means.take()
                row = keeper.add_row(chunk.stop, measured, rbm, logs) if keeper else None
            if last or stop or late or chunk.stop % config.checkpoint_interval == 0:
                saved, whole = time.monotonic(), on_host(state)
                if keeper:
                    keeper.write_checkpoint(whole, means)
            yield Event(chunk.stop, row)
            if stop and not last:
                return
        rbm = on_host(state.rbm)
        if keeper:
            io.save(rbm, folder.model)


def _open(
    stack: ExitStack, folder: RunFolder, config: Configuration, what: dict[str, Any], services: Sequence[str] | None
) -> None:
    """Take the folder; `services` are those of a new run, None is a run that goes on."""
    stack.enter_context(folder.alone())
    if services is not None:
        folder.check_free()
        folder.begin(config, what, services)


class _Keeper:
    """What process 0 writes on the way: rows of metrics and checkpoints."""

    def __init__(self, folder: RunFolder, config: Configuration, data: Dataset, data_hash: str, step: int):
        folder.forget_rows_after(step)
        rows = folder.rows()
        self._folder, self._evaluate = folder, evaluation(config.hidden, data)
        self._began = time.monotonic() - (rows[-1]["seconds"] if rows else 0.0)
        self._header = {"configuration": asdict(config), "seed": config.seed, "data": data_hash, "popcd": popcd.__version__}

    def add_row(self, step: int, measured: dict[str, Any], rbm: RBM, logs: Sequence[Log]) -> dict[str, Any]:
        """A row of metrics, in the run's file and in the loggers."""
        seconds = round(time.monotonic() - self._began, 3)
        row = {"step": step, "seconds": seconds} | plain(measured) | self._evaluate(rbm)
        self._folder.add_row(row)
        for log in logs:
            log(step, {n: v for n, v in row.items() if isinstance(v, float)})
        return row

    def write_checkpoint(self, state: TrainState, means: Means) -> None:
        """The state, with the sums since the last row."""
        since = {"updates": means.updates, "sums": {name: np.asarray(value).tolist() for name, value in means.sums.items()}}
        checkpoint.write(self._folder.checkpoints, state, self._header | {"since_last_row": since})


def _check(folder: RunFolder, what: dict[str, Any], resume: bool, tell: Callable[[str], None]) -> None:
    """Refuse a folder that is not free, or data that changed."""
    if not resume:
        folder.check_free()
        return
    folder.check_data(what)
    if changed := folder.changed_versions():
        tell(f"continued with other versions, so the last bits may differ from an uninterrupted run: {changed}")


def _chunks(training: Training, config: Configuration, state: TrainState) -> Iterator[Chunk]:
    """Chunks that end at rows of metrics and at checkpoints, and about every second, so that a run can be stopped."""
    if int(state.step) >= config.iterations:
        return iter(())
    work = update_work(config, state.rbm.n_visible)
    stops = (config.evaluation_interval, config.checkpoint_interval, int(np.clip(_CHUNK_WORK / work, 1, 1000)))
    return training.chunks(config.iterations, stops, state)


def update_work(config: Configuration, n_visible: int) -> float:
    """Multiply-adds of an update, roughly: two products per row of the batch, two per Gibbs step of a particle."""
    particles = (config.n_particles or config.n_chains or config.batch_size) * (config.k or 1)
    if config.estimator == "pt":
        particles = (config.n_temperatures or 10) * (config.n_ladders or config.batch_size) * (config.sweeps or 1)
    elif config.estimator == "exact":
        particles = 2 ** min(n_visible, config.hidden)
    return 2.0 * (config.batch_size + particles) * n_visible * config.hidden


def _prepared(config: Configuration, data: Dataset, mesh: Mesh | None) -> Training:
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
        mesh=mesh,
    )


def _last(
    training: Training, config: Configuration, folder: RunFolder, tell: Callable[[str], None]
) -> tuple[TrainState, Means]:
    """Where the run was when it was stopped: what process 0 reads, on every process."""
    found = distributed.led(lambda: _newest(training.first, config, folder, tell))
    first = distributed.from_leader(np.int32(found is None and distributed.leading()))
    if int(first):
        return training.first, Means()
    state, means = found or (jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), training.first), Means())
    return jax.tree.map(placed, distributed.from_leader(state), training.first), means


def _newest(
    like: TrainState, config: Configuration, folder: RunFolder, tell: Callable[[str], None]
) -> tuple[TrainState, Means] | None:
    """The newest checkpoint that is whole, with the metrics since the last row; None where there never was one."""
    damaged: list[Path] = []
    for path in reversed(checkpoint.found(folder.checkpoints)):
        try:
            state, header = checkpoint.read(path, like)
        except FileError as error:
            tell(f"{error}; the checkpoint before it is used, this one is kept as {path.name}.damaged")
            damaged.append(path)
            continue
        for other in damaged:
            other.rename(other.with_name(f"{other.name}.damaged"))
        if header["configuration"] != asdict(config):
            raise FileError(f"config.toml in {folder.path} was changed since the run began: put it back, or begin a new run")
        since = header["since_last_row"]
        return state, Means(since["updates"], {name: np.asarray(value) for name, value in since["sums"].items()})
    if damaged or any(folder.checkpoints.glob("*.damaged")):
        raise FileError(f"no checkpoint in {folder.checkpoints} can be used: begin a new run with another --out")
    return None


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
