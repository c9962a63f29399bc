"""A folder of results, one file per finished job, which any number of processes may fill together.

    DIR/reproduction.json               version and profile
    DIR/figure1/NAME-seed-3.json        one finished job: settings, versions, seed, data hash, result, times
    DIR/models/NAME-seed-0.safetensors  machines
    DIR/.claims                         byte i is locked by the process that works on the job of hash i

A file is whole or not there, and a lock ends with its process, so a run that was killed leaves at most a hidden temporary file.
"""

import functools
import hashlib
import json
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, BinaryIO

import popcd
from popcd.experiments.paper import EXPERIMENTS, Specification, settings
from popcd.files import write_atomically

try:
    import fcntl
except ImportError:  # Windows: one process at a time fills a folder
    fcntl = None  # type: ignore[assignment]

FORMAT = 1
MANIFEST = "reproduction.json"


class StoreError(Exception):
    """A folder that cannot take these results."""


@dataclass(frozen=True)
class Job:
    """One trial of a curve, or one machine of a cell of the table."""

    specification: Specification
    seed: int

    @property
    def name(self) -> str:
        """The path of its result below the folder, without the ending."""
        return f"{self.specification.experiment}/{self.specification.name}-seed-{self.seed}"


@dataclass(frozen=True)
class Store:
    """Results of one version and one profile."""

    directory: Path

    @classmethod
    def open(cls, directory: Path, profile: str) -> "Store":
        """The store in a folder, made if it is not there; refuses one of another version or profile."""
        manifest = directory / MANIFEST
        mine = {"format": FORMAT, "popcd": popcd.__version__, "profile": profile}
        if not manifest.exists():
            # Another process may be writing its manifest right now, or just have written it
            others = [p for p in directory.iterdir() if not p.name.startswith(".")] if directory.is_dir() else []
            if any(path.name not in (MANIFEST, "models", *EXPERIMENTS) for path in others) and not manifest.exists():
                raise StoreError(f"{directory} holds other files and no {MANIFEST}; name an empty or a new folder with --out")
            write_atomically(manifest, _canonical(mine) + b"\n")
        found = _parsed(manifest)
        if found is None:
            raise StoreError(
                f"{manifest} is damaged; remove it to go on with the results in {directory}, or name another --out"
            )
        if found != mine:
            raise StoreError(
                f"{directory} holds results of popcd {found.get('popcd')}, profile {found.get('profile')}; these would be of "
                f"popcd {popcd.__version__}, profile {profile}. Name another folder with --out"
            )
        return cls(directory)

    def path(self, job: Job) -> Path:
        """Where the result of a job is or will be."""
        return self.directory / f"{job.name}.json"

    def model(self, name: str) -> Path:
        """Where a machine is or will be."""
        return self.directory / "models" / f"{name}.safetensors"

    def read(self, job: Job) -> dict[str, Any] | None:
        """The result of a job, or None; a file of other settings is refused, a damaged one is ValueError."""
        path = self.path(job)
        if not path.exists():
            return None
        record = load_record(path)
        expected = json.loads(_canonical(settings(job.specification)))
        if record["settings"] != expected or record["seed"] != job.seed:
            changed = sorted(k for k in expected if record["settings"].get(k) != expected[k])
            raise StoreError(f"{path} was made with other settings ({', '.join(changed)}); name another folder with --out")
        return record

    def set_aside(self, job: Job) -> Path:
        """Rename a damaged result, so that it is kept and the job is done again."""
        path = self.path(job)
        target = next(t for i in range(1, 10_000) if not (t := path.with_suffix(f".corrupt-{i}")).exists())
        return path.rename(target)

    def write(self, job: Job, data: dict[str, Any], result: dict[str, Any], seconds: float) -> None:
        """Add the result of a job. Everything but `times` follows from the settings, the versions and the machine."""
        record = {
            "format": FORMAT,
            "experiment": job.specification.experiment,
            "settings": settings(job.specification),
            "seed": job.seed,
            "versions": versions(),
            "data": data,
            "result": result,
        }
        times = {"seconds": round(seconds, 2), "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
        content = record | {"checksum": _checksum(record), "times": times}
        write_atomically(self.path(job), json.dumps(content, separators=(",", ":")).encode() + b"\n")

    @contextmanager
    def claim(self, name: str) -> Iterator[bool]:
        """Work on `name` alone among all processes: True if this process has it, False if another one does."""
        if fcntl is None:
            yield True
            return
        file, byte = _claims(self.directory), int.from_bytes(hashlib.sha256(name.encode()).digest()[:6])
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
        except BlockingIOError:
            yield False
            return
        try:
            yield True
        finally:
            fcntl.lockf(file, fcntl.LOCK_UN, 1, byte)


@functools.cache
def _claims(directory: Path) -> BinaryIO:
    """The file of the locks, open as long as the process lives: closing it anywhere would end all of the process's locks."""
    return (directory / ".claims").open("ab")


def load_record(path: Path) -> dict[str, Any]:
    """A result file, if it is whole."""
    record = _parsed(path)
    if record is None or "result" not in record:
        raise ValueError(f"{path} is damaged")
    body = {key: value for key, value in record.items() if key not in ("checksum", "times")}
    if record.get("checksum") != _checksum(body) or record.get("format") != FORMAT:
        raise ValueError(f"{path} is damaged: its checksum does not fit its content")
    return record


def load_records(directory: Path) -> tuple[dict[str, Any], list[dict[str, Any]], list[Path]]:
    """The manifest of a folder, its whole results in order of their names, and the damaged ones."""
    manifest = _parsed(directory / MANIFEST)
    if manifest is None:
        raise StoreError(f"{directory} has no readable {MANIFEST}: expected the --out folder of popcd reproduce")
    records, damaged = [], []
    for path in sorted(directory.glob("*/*.json")):
        try:
            records.append(load_record(path))
        except ValueError:
            damaged.append(path)
    return manifest, records, damaged


def versions() -> dict[str, str]:
    """What a result may depend on beside its settings."""
    found = {name: metadata.version(name) for name in ("jax", "jaxlib", "numpy", "optax")}
    where = f"{platform.system()} {platform.machine()}"
    return {
        "popcd": popcd.__version__,
        **found,
        "python": platform.python_version(),
        "platform": where,
        "cores": str(os.cpu_count()),
    }


def _parsed(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _canonical(content: dict[str, Any]) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def _checksum(content: dict[str, Any]) -> str:
    return hashlib.sha256(_canonical(content)).hexdigest()
