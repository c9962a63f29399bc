"""One run in several processes: how they join, agree, follow process 0, and end when one of them is lost."""

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import jax
import numpy as np
from jax.errors import JaxRuntimeError
from jax.experimental import multihost_utils

from popcd.foreign import FileError

_HEARTBEAT = 30  # seconds after which a process that says nothing is given up; all others then end within a minute
_SHUTDOWN, _GRACE = 10, 60
T = TypeVar("T")


class DistributedError(RuntimeError):
    """Processes could not join, do not agree, or one of them was lost."""


def join(
    coordinator: str | None, num_processes: int | None, process_id: int | None, timeout: float, late: Callable[[str], None]
) -> None:
    """Join the other processes, found as `jax.distributed.initialize` finds them where nothing is given.

    JAX aborts the process when it has waited in vain. `late` is called before, in another thread, with what to tell the user.
    """
    where = f"the coordinator at {coordinator}" if coordinator else "the coordinator"
    words = (
        f"waited {timeout:g} s in vain for {where} and the other processes. Start every process, all with the same "
        "--num-processes and the --coordinator HOST:PORT of process 0, whose port must be open"
    )
    watch = threading.Timer(timeout, late, [words])
    watch.daemon = True
    watch.start()
    try:
        jax.distributed.initialize(
            coordinator,
            num_processes,
            process_id,
            initialization_timeout=int(timeout) + _GRACE,
            heartbeat_timeout_seconds=_HEARTBEAT,
            shutdown_timeout_seconds=_SHUTDOWN,
        )
        wait_for_all()
    except (RuntimeError, ValueError) as error:
        raise DistributedError(
            f"could not join {where}: {_first_line(error)}. Outside of SLURM, MPI and Kubernetes name --coordinator HOST:PORT, "
            "--num-processes and --process-id"
        ) from error
    finally:
        watch.cancel()


def leading() -> bool:
    """Whether this is process 0, which writes and reports."""
    return jax.process_index() == 0


def led(action: Callable[[], T]) -> T | None:
    """What `action` gives on process 0, which alone does it, and None elsewhere; where it fails, every process fails."""
    if jax.process_count() == 1:
        return action()
    found, failure = None, None
    if leading():
        try:
            found = action()
        except Exception as error:
            failure = error
    if int(from_leader(np.int32(failure is not None))):
        raise failure or FileError("process 0 refused the run; its message says why")
    return found


def from_leader(tree: Any) -> Any:
    """The arrays that process 0 has, on every process; the others give some of the same shapes."""
    return tree if jax.process_count() == 1 else multihost_utils.broadcast_one_to_all(tree)


def any_process(*flags: bool) -> list[bool]:
    """Which flags are set in at least one process."""
    if jax.process_count() == 1:
        return list(flags)
    every = np.asarray(multihost_utils.process_allgather(np.array(flags, np.int32)))
    return [bool(every[:, i].any()) for i in range(len(flags))]


def wait_for_all() -> None:
    """Return when every process has come here."""
    multihost_utils.sync_global_devices("popcd")


def agree(facts: dict[str, Any]) -> None:
    """Refuse to go on where processes differ in one of these facts, such as the hash of their data."""
    if jax.process_count() == 1:
        return
    digests = [hashlib.sha256(json.dumps(fact, sort_keys=True).encode()).digest()[:8] for fact in facts.values()]
    own = np.frombuffer(b"".join(digests), np.int32).reshape(len(facts), 2)
    every = np.asarray(multihost_utils.process_allgather(own))
    differ = (every != every[:1]).any(axis=2)
    if differ.any():
        words = [
            f"{name} in processes {np.flatnonzero(differ[:, i]).tolist()}" for i, name in enumerate(facts) if differ[:, i].any()
        ]
        raise DistributedError(f"processes do not agree with process 0: another {'; another '.join(words)}. Start all alike")


@contextmanager
def lost_processes(where: Any) -> Iterator[None]:
    """An error of a collective operation as one that says what to do."""
    try:
        yield
    except (JaxRuntimeError, ValueError) as error:
        if jax.process_count() == 1 or not (isinstance(error, JaxRuntimeError) or "Gloo" in str(error)):
            raise
        raise DistributedError(
            f"process {jax.process_index()} lost another process: {_first_line(error)}. Checkpoints in {where} are "
            f"whole; start all processes again with --resume {where}"
        ) from error


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0].strip().rstrip(".")[:200]
