"""What the paper ran, as data: every panel of Figures 1 to 3 and every row of Table 1, in three profiles.

`paper` has the published settings. `quick` has fewer trials and repeats, and of the large machines only the first part of
training; `smoke` checks that everything runs. Reference: Krause, Fischer, Igel (2016), section 4.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

ProfileName = Literal["smoke", "quick", "paper"]
EXPERIMENTS = ("figure1", "figure2", "figure3", "table1")
PROBLEMS = ("bars-and-stripes", "artificial-modes", "letters", "mnist")
VISIBLE = {"bars-and-stripes": 16, "artificial-modes": 16, "letters": 128, "mnist": 784}
BATCH = {"bars-and-stripes": 32, "artificial-modes": 500, "letters": 246, "mnist": 500}


@dataclass(frozen=True)
class Algorithm:
    """An estimator in words; "pop-cd" with the mixture proposal is ours, not the paper's."""

    estimator: str
    k: int = 1
    proposal: str = "single"

    @property
    def word(self) -> str:
        """cd, pcd, pt, pop-cd or pop-cd-mixture."""
        return f"{self.estimator}-mixture" if self.proposal == "mixture" else self.estimator

    @property
    def label(self) -> str:
        """As in the paper's figures."""
        if self.estimator == "pt":
            return "PT-10"
        name = self.estimator.replace("cd", "CD")
        return f"mixture {name}-{self.k}" if self.proposal == "mixture" else f"{name.replace('pCD', 'PCD')}-{self.k}"


CD_1, CD_10, PCD_1, PT = Algorithm("cd"), Algorithm("cd", 10), Algorithm("pcd"), Algorithm("pt")
POP_1, POP_10 = Algorithm("pop-cd"), Algorithm("pop-cd", 10)
MIXTURE_1, MIXTURE_10 = Algorithm("pop-cd", 1, "mixture"), Algorithm("pop-cd", 10, "mixture")
SMALL = (CD_1, CD_10, PCD_1, POP_1, POP_10, PT, MIXTURE_1)
LARGE = (CD_1, CD_10, POP_1, POP_10)
TABLE = (CD_1, POP_1, MIXTURE_1, CD_10, POP_10, MIXTURE_10)


@dataclass(frozen=True)
class Annealing:
    """How log Z of a large machine is estimated: AIS chains and steps each way, and the tempering behind the reverse way."""

    n_chains: int
    n_steps: int
    n_ladders: int
    sweeps: int


@dataclass(frozen=True)
class Training:
    """A machine, the data and how it is trained: what curves and cells share."""

    experiment: str
    problem: str
    hidden: int
    algorithm: Algorithm
    learning_rate: float
    iterations: int


@dataclass(frozen=True)
class Curve(Training):
    """One learning curve of a figure; a job is one trial of it."""

    evaluate_every: int
    trials: int
    annealing: Annealing | None = None  # None: exact

    @property
    def name(self) -> str:
        """Unique among the curves; the stem of its files."""
        return f"{self.problem}-{self.hidden}-{self.algorithm.word}-{self.algorithm.k}-rate-{self.learning_rate}"

    def cost(self) -> float:
        """Rough seconds of a trial, to weigh progress."""
        return self.iterations * update_cost(self.problem, self.hidden, self.algorithm)


@dataclass(frozen=True)
class Tempering:
    """How the true gradient of a large machine is found."""

    n_temperatures: int
    n_ladders: int
    sweeps: int


@dataclass(frozen=True)
class Cell(Training):
    """Bias and variance of one algorithm in one row of Table 1; a job is one machine, trained with CD-1."""

    repeats: int
    trials: int
    tempering: Tempering | None = None  # None: exact

    @property
    def name(self) -> str:
        """Unique among the cells; the stem of its files."""
        return f"{self.problem}-{self.hidden}-{self.algorithm.word}-{self.algorithm.k}"

    @property
    def machine(self) -> str:
        """The name of the trained machine, which all algorithms of a row share."""
        effort = "" if self.tempering is None else f"-tempered-{self.tempering.n_ladders}-{self.tempering.sweeps}"
        return f"{self.problem}-{self.hidden}-trained-{self.iterations}{effort}"

    def cost(self) -> float:
        """Rough seconds of a job, to weigh progress."""
        training = self.iterations * update_cost(self.problem, self.hidden, CD_1) / len(TABLE)
        return training + self.repeats * update_cost(self.problem, self.hidden, self.algorithm)


Specification = Curve | Cell


def settings(specification: Specification) -> dict[str, Any]:
    """What a result depends on: everything but the number of trials, which only says how many results there are."""
    found = asdict(specification) | {"batch_size": BATCH[specification.problem]}
    del found["trials"]
    return found


def update_cost(problem: str, hidden: int, algorithm: Algorithm) -> float:
    """Rough seconds of one update on one core."""
    visible, batch = VISIBLE[problem], BATCH[problem]
    if algorithm.estimator == "pt":
        return batch * (12e-6 + 10 * (visible + hidden) * 4e-9)
    sweep = batch * (visible * hidden * 4 / 6e10 + (visible + hidden) * 5e-9) + 4e-6
    return sweep * (1.5 + algorithm.k)


def _curves(profile: ProfileName) -> list[Curve]:
    """Figures 1 and 2 with exact likelihoods, Figure 3 with AIS."""
    small = [
        ("figure1", "bars-and-stripes", 0.1, 50_000),
        ("figure1", "bars-and-stripes", 0.01, 50_000),
        ("figure1", "artificial-modes", 0.1, 10_000),
        ("figure1", "artificial-modes", 0.01, 10_000),
        ("figure2", "mnist", 0.1, 5_000),
        ("figure2", "mnist", 0.01, 20_000),
        ("figure2", "letters", 0.1, 10_000),
        ("figure2", "letters", 0.01, 30_000),
    ]
    large = [
        ("letters", 100, 0.1, 500_000, 10),
        ("letters", 100, 0.01, 5_000_000, 10),
        ("mnist", 500, 0.01, 40_000, 1),
        ("mnist", 500, 0.001, 400_000, 1),
    ]
    exact = [Curve(f, p, 16, a, rate, n, 100, 25) for f, p, rate, n in small for a in SMALL]
    annealing = Annealing(n_chains=512, n_steps=50_000, n_ladders=64, sweeps=4_000)
    bracketed = [Curve("figure3", p, h, a, rate, n, n // 100, t, annealing) for p, h, rate, n, t in large for a in LARGE]
    cut: dict[ProfileName, Callable[[Curve], Curve]] = {"smoke": _smoke_curve, "quick": _quick_curve, "paper": lambda c: c}
    found = [cut[profile](curve) for curve in exact + bracketed]
    # The smaller rate shows the same only after ten times as many updates
    return [c for c in found if profile == "paper" or c.annealing is None or c.learning_rate == _larger_rate(c.problem)]


def _larger_rate(problem: str) -> float:
    return {"letters": 0.1, "mnist": 0.01}[problem]


def _quick_curve(curve: Curve) -> Curve:
    if curve.annealing is None:
        trials = {"letters": 3, "mnist": 2}.get(curve.problem, 5)
        return replace(curve, trials=trials, iterations=min(curve.iterations, 10_000 if curve.problem == "mnist" else 50_000))
    iterations = {"letters": 50_000, "mnist": 4_000}[curve.problem]
    return replace(
        curve, iterations=iterations, evaluate_every=iterations // 10, trials=1, annealing=Annealing(128, 2_000, 16, 300)
    )


def _smoke_curve(curve: Curve) -> Curve:
    return replace(curve, iterations=200, trials=2, evaluate_every=100, annealing=curve.annealing and Annealing(16, 50, 4, 20))


def _cells(profile: ProfileName) -> list[Cell]:
    """Table 1, at least five machines per row because its figures move a lot with the training seed."""
    rows = [
        ("bars-and-stripes", 16, 0.1, 10_000, None),
        ("artificial-modes", 16, 0.1, 10_000, None),
        ("letters", 16, 0.1, 10_000, None),
        ("mnist", 16, 0.1, 5_000, None),
        ("letters", 100, 0.1, 100_000, Tempering(100, 64, 8_000)),
        ("mnist", 500, 0.01, 15_000, Tempering(100, 64, 8_000)),
    ]  # 64 ladders side by side take as many samples as the paper's one, in a 30th of the sweeps
    cells = [Cell("table1", p, h, a, rate, n, 50_000, 5, t) for p, h, rate, n, t in rows for a in TABLE]
    if profile == "quick":
        repeats = {16: 50_000, 128: 4_000, 784: 1_500}
        return [
            replace(c, repeats=repeats[VISIBLE[c.problem]])
            if c.tempering is None
            else replace(c, repeats=1_000, iterations=50_000, tempering=Tempering(40, 32, 2_000))
            for c in cells
            if c.hidden < 500  # a machine of that row alone takes a quarter of an hour
        ]
    if profile == "smoke":
        return [replace(c, repeats=20, iterations=100, trials=2, tempering=c.tempering and Tempering(5, 4, 20)) for c in cells]
    return cells


def specifications(experiment: str, profile: ProfileName, problem: str | None = None) -> list[Specification]:
    """The specifications of an experiment, in the paper's order, of all its problems or of one.

    >>> [curve.algorithm.label for curve in specifications("figure1", "paper", "bars-and-stripes")][:4]
    ['CD-1', 'CD-10', 'PCD-1', 'pop-CD-1']
    """
    every: list[Specification] = [*_curves(profile), *_cells(profile)]
    found = [s for s in every if s.experiment == experiment]
    known = list(dict.fromkeys(s.problem for s in found))
    if problem is not None and problem not in known:
        raise ValueError(f"{experiment} has no problem {problem!r}: expected one of {', '.join(known)}")
    return [s for s in found if problem in (None, s.problem)]


def published_iterations(problem: str, hidden: int, learning_rate: float) -> int:
    """How long the paper trained for a panel.

    >>> published_iterations("mnist", 500, 0.001)
    400000
    """
    return next(
        c.iterations for c in _curves("paper") if (c.problem, c.hidden, c.learning_rate) == (problem, hidden, learning_rate)
    )
