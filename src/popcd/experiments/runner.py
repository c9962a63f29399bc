"""Running jobs in single-threaded processes that claim one after the other from a shared folder.

One thread each: at these sizes two processes with one thread do more than one process with two (`benchmarks/trials.py`), and
a result must not depend on how many threads happened to share a sum.
"""

import multiprocessing
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from popcd.experiments.paper import Specification
from popcd.experiments.store import Job, Store
from popcd.processor import ONE_THREAD

_WORKER = ONE_THREAD | {"JAX_PLATFORMS": "cpu"}
_POLL = 0.2


class JobError(Exception):
    """A job failed; results finished before it are kept."""


@dataclass(frozen=True)
class Event:
    """What a worker tells: progress of a job (part of it done), a note for people, or a failure."""

    kind: str
    job: str
    part: float = 0.0
    text: str = ""


def jobs_of(specifications: Sequence[Specification], trials: int | None = None) -> list[Job]:
    """All jobs, trial by trial, so that what is done when a run is stopped is spread over the algorithms."""
    counts = [s.trials if trials is None else trials for s in specifications]
    return [Job(s, seed) for seed in range(max(counts)) for s, n in zip(specifications, counts, strict=True) if seed < n]


def shard(jobs: Sequence[Job], index: int, of: int) -> list[Job]:
    """Part `index` (from 1) of `of` parts; every job is in exactly one.

    >>> shard(["a", "b", "c"], 2, 2)
    ['b']
    """
    return list(jobs[index - 1 :: of])


def run(jobs: Sequence[Job], store: Store, processes: int, hear: Callable[[Event], None]) -> None:
    """Do all jobs that are not done; `hear` is called with the events of the workers.

    Raises
    ------
    JobError
        When a job fails or a worker is killed.
    """
    if not jobs:
        return
    context = multiprocessing.get_context("spawn")
    events: Any = context.Queue()
    with _environment(_WORKER):
        workers = [
            context.Process(target=_worker, args=(list(jobs), store, events, os.getpid()), daemon=True)
            for _ in range(processes)
        ]
        for worker in workers:
            worker.start()
    try:
        failures: list[str] = []
        while any(worker.is_alive() for worker in workers):
            failures += _listen(events, hear)
        failures += _listen(events, hear)
        killed = [worker.exitcode for worker in workers if worker.exitcode]
        if failures:
            raise JobError("\n".join([*dict.fromkeys(failures), "Other results are kept: the same command continues"]))
        if killed and any(store.read(job) is None for job in jobs):
            raise JobError(
                f"{len(killed)} of {len(workers)} worker processes ended with code {killed[0]} (a negative code is a signal; "
                "-9 often means that memory ran out). Finished results are kept: the same command continues"
            )
    finally:
        for worker in workers:
            worker.terminate()


def _listen(events: Any, hear: Callable[[Event], None]) -> list[str]:
    """Pass on what workers told; returns the failures among it."""
    failures: list[str] = []
    while True:
        try:
            event = events.get(timeout=_POLL)
        except queue.Empty:
            return failures
        if event.kind == "failed":
            failures.append(event.text)
        else:
            hear(event)


def _worker(jobs: list[Job], store: Store, events: Any, parent: int) -> None:
    """What a worker process does."""
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    _work(jobs, store, events)


def _work(jobs: list[Job], store: Store, events: Any) -> None:
    """Take what nobody else works on until everything is done; a job that fails does not keep it from the others."""
    while jobs:
        taken = [job for job in jobs if not _try(job, store, events)]
        if len(taken) == len(jobs):
            time.sleep(_POLL)
        jobs = taken


def _try(job: Job, store: Store, events: Any) -> bool:
    """Do a job unless another process is at it; False if one is."""
    try:
        with store.claim(job.name) as mine:
            if not mine:
                return False
            if _finished(job, store, events):
                events.put(Event("there", job.name, 1.0))
                return True
            from popcd.experiments.jobs import TakenError, do

            events.put(Event("part", job.name, 0.0))
            try:
                do(job, store, lambda part: events.put(Event("part", job.name, part)))
            except TakenError:
                return False
            events.put(Event("done", job.name, 1.0))
    except OSError as error:
        events.put(Event("failed", job.name, text=f"cannot write into {store.directory}: {error.strerror or error}."))
    except Exception as error:  # whatever it is, people must hear which job it was
        events.put(Event("failed", job.name, text=f"{job.name}: {type(error).__name__}: {error}"))
    return True


def _finished(job: Job, store: Store, events: Any) -> bool:
    try:
        return store.read(job) is not None
    except ValueError:
        aside = store.set_aside(job)
        events.put(Event("note", job.name, text=f"{store.path(job)} was damaged: set aside as {aside.name}, computed again"))
        return False


def _end_with(parent: int) -> None:
    """End with the process that started us; one killed outright cannot tell its workers."""
    while os.getppid() == parent:
        time.sleep(_POLL)
    os._exit(1)


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
