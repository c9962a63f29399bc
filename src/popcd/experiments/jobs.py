"""Doing one job: training for a curve, bias and variance for a cell of the table."""

import functools
import json
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

import popcd.io as io
from popcd.chunks import LowESSWarning, Run, TrainingDivergedError
from popcd.datasets import fingerprint, load
from popcd.estimators import BUILDERS, Estimator
from popcd.evaluation import gradient_error, linear_schedule, log_likelihood, schedule_2008
from popcd.evaluation.true_gradient import TrueGradient, true_gradient
from popcd.experiments.paper import BATCH, CD_1, Algorithm, Annealing, Cell, Curve, Training
from popcd.experiments.store import Job, Store
from popcd.files import write_atomically
from popcd.foreign import FileError
from popcd.rbm import RBM
from popcd.training import train

Report = Callable[[float], None]


class TakenError(Exception):
    """Another process is making what this job needs; do another job first."""


def do(job: Job, store: Store, report: Report) -> None:
    """Do a job and write its result; `report` hears which part of it is done."""
    start = time.monotonic()
    data = training_rows(job.specification.problem)
    if isinstance(job.specification, Curve):
        result, rbm = _curve(job.specification, job.seed, data, report)
        if job.seed == 0:
            io.save(rbm, store.model(f"{job.specification.name}-seed-0"))
    else:
        result = _cell(job.specification, job.seed, data, store, report)
    store.write(job, {"rows": len(data), "sha256": fingerprint(data)}, result, time.monotonic() - start)


@functools.lru_cache(maxsize=2)
def training_rows(problem: str) -> np.ndarray:
    """The rows that the paper trains on."""
    return load(problem, **({"test_fold": None} if problem == "letters" else {})).train


def estimator_of(algorithm: Algorithm, batch_size: int) -> Estimator:
    """The estimator behind the words; parallel tempering in the paper's form, one ladder and a sweep per row of the batch."""
    settings: dict[str, Any] = {"k": algorithm.k}
    if algorithm.estimator == "pt":
        settings = {"n_temperatures": 10, "n_ladders": 1, "sweeps": batch_size}
    elif algorithm.estimator == "pop-cd":
        settings["proposal"] = algorithm.proposal
    return BUILDERS[algorithm.estimator](**settings)


def _train(
    spec: Training,
    algorithm: Algorithm,
    seed: int,
    data: np.ndarray,
    every: int,
    evaluate: Callable[[RBM], Mapping[str, float]],
) -> Run:
    batch_size = BATCH[spec.problem]
    return train(
        RBM.create(data.shape[1], spec.hidden, seed=seed),
        data,
        estimator_of(algorithm, batch_size),
        devices=1,
        iterations=spec.iterations,
        batch_size=batch_size,
        learning_rate=spec.learning_rate,
        seed=seed,
        evaluate_every=every,
        evaluate=evaluate,
    )


def _curve(curve: Curve, seed: int, data: np.ndarray, report: Report) -> tuple[dict[str, Any], RBM]:
    """Log-likelihoods along training. A run that diverges to non-finite parameters ends there, and its result says so."""
    done = 0

    def evaluate(rbm: RBM) -> dict[str, float]:
        nonlocal done
        done += curve.evaluate_every
        found = _exact(rbm, curve.problem) if curve.annealing is None else _bracketed(rbm, data, curve.annealing, seed)
        report(min(done / curve.iterations, 1.0))
        return found

    diverged = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LowESSWarning)
        try:
            run = _train(curve, curve.algorithm, seed, data, curve.evaluate_every, evaluate)
        except TrainingDivergedError as error:
            run, diverged = error.run, error.step
    kept = ("step", "log_likelihood", "lower", "upper", "trustworthy", "ess")
    rows = {name: _rounded(run.history[name]) for name in kept if name in run.history}
    warned = [str(w.message) for w in caught if issubclass(w.category, LowESSWarning)]
    return {"curve": rows, "non_finite_at": diverged, "warnings": warned}, run.rbm


def _exact(rbm: RBM, problem: str) -> dict[str, float]:
    rows, share = _distinct(problem)
    return {"log_likelihood": float(share @ log_likelihood(rbm, rows).rows)}


@functools.lru_cache(maxsize=2)
def _distinct(problem: str) -> tuple[np.ndarray, np.ndarray]:
    rows, counts = np.unique(training_rows(problem), axis=0, return_counts=True)
    return rows, counts / counts.sum()


def _bracketed(rbm: RBM, data: np.ndarray, effort: Annealing, seed: int) -> dict[str, float]:
    # The paper's 50,000 equal steps; with few steps most of them must lie near beta = 1
    betas = linear_schedule(effort.n_steps) if effort.n_steps >= 20_000 else schedule_2008(effort.n_steps)
    found = log_likelihood(
        rbm, data, "ais", n_chains=effort.n_chains, betas=betas, n_ladders=effort.n_ladders, sweeps=effort.sweeps, seed=seed
    )
    return {"log_likelihood": found.value, "lower": found.lower, "upper": found.upper, "trustworthy": float(found.trustworthy)}


def _cell(cell: Cell, seed: int, data: np.ndarray, store: Store, report: Report) -> dict[str, Any]:
    rbm = _machine(cell, seed, data, store, report)
    truth = _truth(cell, seed, rbm, data, store)
    batch_size = BATCH[cell.problem]
    found = gradient_error(
        rbm,
        data,
        estimator_of(cell.algorithm, batch_size),
        batch_size=batch_size,
        repeats=cell.repeats,
        seed=seed,
        truth=truth,
        progress=lambda done, of: report(0.5 + 0.5 * done / of),
    )
    names = ("bias", "bias_stderr", "bias_corrected", "variance", "variance_stderr", "noise_floor", "ess", "truth")
    return {name: getattr(found, name) for name in names} | {"truth_swap_rate": found.truth_swap_rate}


def _machine(cell: Cell, seed: int, data: np.ndarray, store: Store, report: Report) -> RBM:
    """The machine of a row, trained with CD-1 by whoever needs it first."""
    path = store.model(f"{cell.machine}-seed-{seed}")

    def make() -> None:
        every, done = max(1, cell.iterations // 20), 0

        def evaluate(_: RBM) -> dict[str, float]:
            nonlocal done
            done += every
            report(0.5 * min(done / cell.iterations, 1.0))
            return {}

        io.save(_train(cell, CD_1, seed, data, every, evaluate).rbm, path)

    return _kept(path, store, make)


def _kept(path: Path, store: Store, make: Callable[[], None]) -> RBM:
    """What jobs share: read if it is there and whole, otherwise made by this process alone."""
    with store.claim(path.name) as mine:
        if not mine:
            raise TakenError
        try:
            return io.load(path)
        except (FileNotFoundError, FileError):
            make()
    return io.load(path)


def _truth(cell: Cell, seed: int, rbm: RBM, data: np.ndarray, store: Store) -> TrueGradient:
    """The true gradient of a row's machine; a sampled one is kept, because it takes long."""
    effort = cell.tempering
    if effort is None:
        return true_gradient(rbm, data)
    path = store.model(f"{cell.machine}-seed-{seed}-gradient")

    def make() -> None:
        found = true_gradient(
            rbm, data, n_temperatures=effort.n_temperatures, n_ladders=effort.n_ladders, sweeps=effort.sweeps, seed=seed
        )
        write_atomically(path.with_suffix(".noise"), json.dumps([found.noise, found.swap_rate]).encode())
        io.save(found.gradient, path)  # last: it says that both are there

    gradient = _kept(path, store, make)
    return TrueGradient(gradient, "tempered", *json.loads(path.with_suffix(".noise").read_bytes()))


def _rounded(values: np.ndarray) -> list[float]:
    """Six decimals are far below any error bar and keep files small."""
    return [int(v) if float(v).is_integer() else round(float(v), 6) for v in jax.device_get(values)]
