"""The folder of a training run.

config.toml         the resolved configuration
run.json            format, name for loggers, versions, data set with hash
metrics.jsonl       one row per evaluation
checkpoints/        the last two
model.safetensors   the finished machine
.lock               held by the process that trains
"""

import json
import os
import platform
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import popcd
from popcd.files import locked, write_atomically
from popcd.foreign import FileError
from popcd.runs.configuration import Configuration, configuration, read_settings

FORMAT = 3  # 2, 3: other random bits; 2: a name for loggers


@dataclass(frozen=True)
class RunFolder:
    """Paths, and what is read from and written to them."""

    path: Path

    @property
    def model(self) -> Path:
        return self.path / "model.safetensors"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    def check_free(self) -> None:
        """Refuse a folder that holds a run or other files; what a run left that was killed while it began does not count."""
        names = {path.name for path in self.path.iterdir()} if self.path.is_dir() else set()
        if "run.json" in names:
            raise FileError(f"{self.path} holds a run: continue it with --resume, or name another folder with --out")
        begun = {".lock", "checkpoints", *(path.name for path in self._unfinished())}
        others = names - begun - ({"config.toml"} if ".lock" in names else set())
        if any(not name.startswith(".") for name in others):
            raise FileError(f"{self.path} holds other files: name another folder with --out")

    def _unfinished(self) -> list[Path]:
        """Temporaries of files of a run, left by a process that was killed."""
        names = ("config.toml", "run.json", "metrics.jsonl", "model.safetensors")
        found = [path for name in names for path in self.path.glob(f".{name}.*")]
        return [path for path in (*found, *self.checkpoints.glob(".step-*.safetensors.*")) if path.is_file()]

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other processes away from the run, and remove what one that was killed had begun to write."""
        self.checkpoints.mkdir(parents=True, exist_ok=True)
        with locked(self.path / ".lock") as mine:
            if not mine:
                raise FileError(f"another process is training in {self.path}: wait for it, or stop it")
            for unfinished in self._unfinished():
                unfinished.unlink(missing_ok=True)
            yield

    def begin(self, config: Configuration, data: dict[str, Any], services: Sequence[str]) -> None:
        """Write down what a new run is."""
        write_atomically(self.path / "config.toml", config.to_toml().encode())
        content = {"format": FORMAT, "id": uuid.uuid4().hex[:12], "log": list(services), "data": data} | _versions()
        write_atomically(self.path / "run.json", json.dumps(content, indent=1).encode())

    def about(self) -> dict[str, Any]:
        """What was written down when the run began."""
        try:
            content = json.loads((self.path / "run.json").read_bytes())
            began = content["format"]
            if began == FORMAT:
                return content | {"id": str(content["id"]), "log": [str(name) for name in content["log"]]}
        except (ValueError, KeyError, TypeError) as error:
            raise FileError(f"{self.path / 'run.json'} is damaged") from error
        raise FileError(f"{self.path} is a run of format {began!s:.20}, this version continues format {FORMAT}")

    def changed_versions(self) -> str:
        """What is not as it was when the run began, in words; bits are only promised on the same software and machine."""
        about = self.about()
        return ", ".join(f"{n} {about.get(n)} then, {v} now" for n, v in _versions().items() if about.get(n) != v)

    def configuration(self) -> Configuration:
        """As it was resolved when the run began."""
        if not (self.path / "run.json").exists():
            raise FileError(f"{self.path} holds no run: expected the --out folder of popcd train")
        return configuration(read_settings(self.path / "config.toml"))

    def check_data(self, data: dict[str, Any]) -> None:
        """Refuse data that changed since the run began."""
        began = self.about()["data"]
        if began != data:
            raise FileError(
                f"the data changed since the run in {self.path} began: {_data_words(began)} then, {_data_words(data)} now. "
                "Put the old data back to resume, or begin a new run with another --out"
            )

    def rows(self) -> list[dict[str, Any]]:
        """The metrics so far; a last line that was cut off does not count."""
        if not self.metrics.exists():
            return []
        rows = []
        for line in self.metrics.read_text().splitlines():
            try:
                rows.append(json.loads(line))
            except ValueError:
                break
        return rows

    def forget_rows_after(self, step: int) -> None:
        """Drop metrics of updates that a checkpoint does not know; they come again."""
        kept = [row for row in self.rows() if row["step"] <= step]
        write_atomically(self.metrics, "".join(json.dumps(row) + "\n" for row in kept).encode())

    def add_row(self, row: dict[str, Any]) -> None:
        """Synced, so that no checkpoint outlives the rows before it."""
        with self.metrics.open("a") as file:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def add_evaluation(self, result: dict[str, Any]) -> None:
        """Keep an evaluation, in place of an earlier one of the same rows."""
        kept = [e for e in self.evaluations() if (e["data"], e["part"]) != (result["data"], result["part"])]
        write_atomically(self.path / "evaluation.json", json.dumps([*kept, result], indent=1).encode())

    def evaluations(self) -> list[dict[str, Any]]:
        """What `popcd evaluate` found."""
        path = self.path / "evaluation.json"
        try:
            return json.loads(path.read_bytes()) if path.exists() else []
        except ValueError as error:
            raise FileError(f"{path} is damaged: remove it and evaluate again") from error


def _versions() -> dict[str, str]:
    return {
        "popcd": popcd.__version__,
        "jax": metadata.version("jax"),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
    }


def _data_words(data: dict[str, Any]) -> str:
    return f"{data.get('rows')} x {data.get('visible')} rows, hash {str(data.get('sha256'))[:12]}"
