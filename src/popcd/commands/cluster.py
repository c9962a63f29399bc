"""Options of commands that several processes run together."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, NamedTuple

import click

_WORDS = ("coordinator", "num_processes", "process_id")


class Processes(NamedTuple):
    """How to find the others; nothing where the launcher says it."""

    coordinator: str | None
    num_processes: int | None
    process_id: int | None
    timeout: float


def cluster(command: Callable[..., Any]) -> Callable[..., Any]:
    """--distributed, or --coordinator, --num-processes and --process-id, as `processes`."""

    @click.option("--distributed", is_flag=True, help="One of several processes, as SLURM, MPI or Kubernetes started them.")
    @click.option("--coordinator", metavar="HOST:PORT", help="Without such a launcher: where process 0 listens.")
    @click.option("--num-processes", type=click.IntRange(min=1), help="Without such a launcher.")
    @click.option("--process-id", type=click.IntRange(min=0), help="Without such a launcher: 0, 1, ...")
    @click.option("--join-timeout", type=click.FloatRange(min=1), default=120.0, help="Seconds to wait for the others.")
    @wraps(command)
    def wrapped(*args: Any, distributed: bool, join_timeout: float, **options: Any) -> Any:
        given = {name: options.pop(name) for name in _WORDS}
        missing = [name for name, value in given.items() if value is None]
        if len(missing) not in (0, len(_WORDS)):
            raise click.UsageError(
                f"--coordinator, --num-processes and --process-id go together; missing: {', '.join(missing)}"
            )
        if not missing and given["process_id"] >= given["num_processes"]:
            raise click.UsageError(f"--process-id must be below --num-processes, {given['num_processes']}")
        together = distributed or not missing
        return command(*args, processes=Processes(**given, timeout=join_timeout) if together else None, **options)

    return wrapped


@contextmanager
def joined(processes: Processes | None, folder: Any) -> Iterator[bool]:
    """Inside, the processes are together; gives whether this is the one that reports."""
    if processes is None:
        yield True
        return
    import popcd.runs.distributed as distributed

    try:
        with _output_as_errors():
            distributed.join(*processes, late=_end)
        yield distributed.leading()
        with distributed.lost_processes(folder):
            distributed.wait_for_all()  # process 0 may still be writing
    except distributed.DistributedError as error:
        _end(str(error))
    except click.ClickException as error:
        _end(error.format_message(), error.exit_code)


@contextmanager
def _output_as_errors() -> Iterator[None]:
    """Collective operations on CPUs announce themselves on standard output, which is for results."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def _end(words: str, code: int = 1) -> None:
    """End at once: an orderly end would wait for processes that are no more, or that wait for this one."""
    click.echo(f"Error: {words}", err=True)
    sys.stdout.flush()
    os._exit(code)
