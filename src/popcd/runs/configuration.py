"""The settings of a training run, as flags, as a TOML file, and as the file that a run keeps. No JAX in here."""

import tomllib
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

ESTIMATORS = ("cd", "pcd", "pt", "pop-cd", "exact")
SCHEDULES = ("constant", "linear", "cosine")
STARTS = ("data", "uniform")
PROPOSALS = ("single", "joint", "mixture")
NORMALIZERS = ("self", "leave-one-out")

# Which settings each estimator knows; a setting that it does not know is refused rather than ignored
KNOWN = {
    "cd": ("k",),
    "pcd": ("k", "n_chains"),
    "pt": ("n_temperatures", "n_ladders", "sweeps"),
    "pop-cd": ("k", "normalizer", "proposal", "n_particles"),
    "exact": (),
}
_OF_ESTIMATORS = ("k", "n_chains", "n_temperatures", "n_ladders", "sweeps", "normalizer", "proposal", "n_particles")

_COUNTS = {"hidden", "iterations", "batch_size", "evaluate_every", "checkpoint_every", *_OF_ESTIMATORS[:5], "n_particles"}


@dataclass(frozen=True)
class Configuration:
    """Everything that a run's result depends on, besides the data themselves."""

    data: str
    hidden: int
    estimator: str = "pop-cd"
    k: int | None = None
    proposal: str | None = None
    normalizer: str | None = None
    n_particles: int | None = None
    n_chains: int | None = None
    n_temperatures: int | None = None
    n_ladders: int | None = None
    sweeps: int | None = None
    learning_rate: float = 0.1
    schedule: str = "constant"
    centered: bool = False
    weight_decay: float = 0.0
    iterations: int = 10_000
    batch_size: int = 100
    start: str = "data"
    seed: int = 0
    threshold: float | None = None
    test_fold: int | None = None
    evaluate_every: int | None = None
    checkpoint_every: int | None = None

    def __post_init__(self) -> None:
        kinds = get_type_hints(Configuration)
        for name, value in asdict(self).items():
            _check_kind(name, value, kinds[name])
        _one_of("estimator", self.estimator, ESTIMATORS)
        _one_of("schedule", self.schedule, SCHEDULES)
        _one_of("start", self.start, STARTS)
        if self.proposal is not None:
            _one_of("proposal", self.proposal, PROPOSALS)
        if self.normalizer is not None:
            _one_of("normalizer", self.normalizer, NORMALIZERS)
        for name, value in asdict(self).items():
            if name in _COUNTS and value is not None and value < 1:
                raise ValueError(f"{name} must be a whole number of at least 1, got {value}")
        if self.iterations >= 2**31 or not 0 <= self.seed < 2**63:
            raise ValueError(
                f"iterations must be below 2**31 and seed from 0 to 2**63 - 1, got {self.iterations} and {self.seed}"
            )
        for name, value in (("learning_rate", self.learning_rate), ("weight_decay", self.weight_decay)):
            if not 0 <= value < float("inf"):
                raise ValueError(f"{name} must be a finite number of at least 0, got {value}")
        unknown = [n for n in _OF_ESTIMATORS if getattr(self, n) is not None and n not in KNOWN[self.estimator]]
        if unknown:
            knows = ", ".join(KNOWN[self.estimator]) or "no settings"
            raise ValueError(f"the estimator {self.estimator} has no setting {', '.join(unknown)}: it knows {knows}")

    @property
    def estimator_settings(self) -> dict[str, Any]:
        """What was said to the estimator."""
        return {n: getattr(self, n) for n in KNOWN[self.estimator] if getattr(self, n) is not None}

    @property
    def evaluation_interval(self) -> int:
        """Updates between two rows of metrics; 20 rows where nothing was said."""
        return self.evaluate_every or max(1, self.iterations // 20)

    @property
    def checkpoint_interval(self) -> int:
        """Updates between two checkpoints; at every row of metrics where nothing was said."""
        return self.checkpoint_every or self.evaluation_interval

    def to_toml(self) -> str:
        """The settings as a TOML file; those that were left open are left out.

        >>> print(Configuration("letters", 100).to_toml().splitlines()[0])
        data = "letters"
        """
        lines = [f"{name} = {_toml(value)}" for name, value in asdict(self).items() if value is not None]
        return "\n".join(lines) + "\n"


def read_settings(path: Path) -> dict[str, Any]:
    """The settings of a TOML file, with every name known."""
    try:
        found = tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a TOML file: {error}") from error
    names = [f.name for f in fields(Configuration)]
    found = {name.replace("-", "_"): value for name, value in found.items()}
    unknown = [name for name in found if name not in names]
    if unknown:
        raise ValueError(f"{path} has unknown settings {', '.join(unknown)}: expected some of {', '.join(names)}")
    return found


def overridden(file: dict[str, Any], flags: dict[str, Any]) -> dict[str, Any]:
    """The settings of a file with flags that win; another estimator does not inherit settings that it does not know.

    >>> overridden({"estimator": "pt", "sweeps": 4, "seed": 1}, {"estimator": "cd"})
    {'estimator': 'cd', 'seed': 1}
    """
    known = KNOWN.get(flags.get("estimator", ""), _OF_ESTIMATORS)
    return {name: value for name, value in file.items() if name not in _OF_ESTIMATORS or name in known} | flags


def configuration(settings: dict[str, Any]) -> Configuration:
    """The configuration of these settings; TOML has whole numbers where floats are meant."""
    missing = [name for name in ("data", "hidden") if settings.get(name) is None]
    if missing:
        raise ValueError(f"{' and '.join(missing)} must be said, as a flag or in the configuration file")
    floats = {name for name, kind in get_type_hints(Configuration).items() if float in (get_args(kind) or (kind,))}
    whole: dict[str, Any] = {n: float(v) if n in floats and type(v) is int else v for n, v in settings.items() if v is not None}
    return Configuration(**whole)


def _check_kind(name: str, value: Any, kind: Any) -> None:
    allowed = get_args(kind) or (kind,)
    if type(value) not in allowed:
        raise ValueError(f"{name} must be of kind {allowed[0].__name__}, got {value!r}")


def _one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}")


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return '"' + "".join(_escaped(c) for c in value) + '"'
    return repr(value)


def _escaped(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    return character if character.isprintable() else f"\\U{ord(character):08x}"
