"""Result records gathered into the panels of the figures and the cells of Table 1."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from popcd.experiments.curves import Curves
from popcd.experiments.paper import EXPERIMENTS, PROBLEMS, SMALL, TABLE, Algorithm
from popcd.experiments.published import published

Record = dict[str, Any]
_ORDER = {algorithm: i for i, algorithm in enumerate(dict.fromkeys((*SMALL, *TABLE)))}


@dataclass(frozen=True, eq=False)
class Panel:
    """One panel of a figure: the curves of all algorithms on one problem at one learning rate."""

    experiment: str
    problem: str
    hidden: int
    learning_rate: float
    iterations: int
    curves: dict[str, Curves]

    @property
    def title(self) -> str:
        """As under the paper's panels."""
        return f"{title(self.problem)}, {self.hidden} hidden, learning rate {self.learning_rate}"


def title(problem: str) -> str:
    """A problem's name for people.

    >>> title("bars-and-stripes"), title("mnist")
    ('Bars-and-Stripes', 'MNIST')
    """
    return "MNIST" if problem == "mnist" else problem.title().replace("-And-", "-and-").replace("Artificial-", "Artificial ")


def algorithm_of(record: Record) -> Algorithm:
    """The algorithm that a record is about."""
    return Algorithm(**record["settings"]["algorithm"])


def optimum(problem: str) -> float | None:
    """The best mean log-likelihood any model can reach, where it is known: minus the entropy of the source.

    >>> round(optimum("bars-and-stripes"), 4), round(optimum("artificial-modes"), 4)
    (-3.3791, -1.5128)
    """
    if problem == "bars-and-stripes":  # 28 patterns of probability 1/32 and two of 1/16
        return float(-28 / 32 * np.log(32) - 2 / 16 * np.log(16))
    if problem == "artificial-modes":  # four modes, 16 pixels flipped with probability 0.001
        p = 0.001
        return float(-np.log(4) + 16 * (p * np.log(p) + (1 - p) * np.log(1 - p)))
    return None


def panels(records: Iterable[Record]) -> list[Panel]:
    """The panels of all figures, in the paper's order; trials of a curve side by side."""
    found: dict[tuple[Any, ...], dict[Algorithm, list[Record]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        s = record["settings"]
        if record["experiment"] != "table1":
            place = (s["experiment"], s["problem"], s["hidden"], s["learning_rate"], s["iterations"])
            found[place][algorithm_of(record)].append(record)

    def order(place: tuple[Any, ...]) -> tuple[Any, ...]:
        experiment, problem, hidden, rate, _ = place
        second = {"figure2": ("mnist", "letters")}.get(experiment, PROBLEMS)
        return EXPERIMENTS.index(experiment), second.index(problem), hidden, -rate

    result = []
    for place in sorted(found, key=order):
        algorithms = sorted(found[place], key=_ORDER.__getitem__)
        experiment, problem, hidden, rate, iterations = place
        curves = {a.label: _curves(a.label, found[place][a]) for a in algorithms}
        result.append(Panel(experiment, problem, hidden, rate, iterations, curves))
    return result


def _curves(label: str, records: Sequence[Record]) -> Curves:
    records = sorted(records, key=lambda r: r["seed"])
    settings = records[0]["settings"]
    last, every = settings["iterations"], settings["evaluate_every"]
    steps = [*range(every, last, every), last]
    shape = (len(records), len(steps))
    values, sides, trusted = np.full(shape, np.nan), np.zeros(shape), np.ones(shape, bool)
    for i, record in enumerate(records):
        curve = {name: np.array(column, float) for name, column in record["result"]["curve"].items()}
        n = len(curve.get("log_likelihood", ()))
        if n:
            values[i, :n] = curve["log_likelihood"]
        if "lower" in curve:  # a value outside its bracket counts with its distance, too
            sides[i, :n] = np.maximum(np.abs(values[i, :n] - curve["lower"]), np.abs(curve["upper"] - values[i, :n]))
            trusted[i, :n] = curve["trustworthy"] > 0
    return Curves(label, np.array(steps), values, sides.max(axis=0), trusted.min(axis=0))


def cells(records: Iterable[Record]) -> list[dict[str, Any]]:
    """Table 1: for each row, algorithm and quantity the published figure beside ours over the trained machines."""
    found: dict[tuple[Any, ...], list[Record]] = defaultdict(list)
    for record in records:
        if record["experiment"] == "table1":
            s = record["settings"]
            found[(PROBLEMS.index(s["problem"]), s["hidden"], algorithm_of(record))].append(record)
    ordered = sorted(found, key=lambda place: (place[0], place[1], place[2].k, _ORDER[place[2]]))
    return [_cell(found[place], quantity) for place in ordered for quantity in ("variance", "bias")]


def _cell(records: list[Record], quantity: str) -> dict[str, Any]:
    records = sorted(records, key=lambda r: r["seed"])
    problem, hidden = records[0]["settings"]["problem"], records[0]["settings"]["hidden"]
    algorithm = algorithm_of(records[0])
    values = np.array([r["result"][quantity] for r in records])
    stated = published(problem, hidden, algorithm.k, algorithm.word, quantity)
    median, low, high = float(np.median(values)), float(values.min()), float(values.max())
    cell = {
        "problem": problem,
        "hidden": hidden,
        "k": algorithm.k,
        "estimator": algorithm.word,
        "quantity": quantity,
        "published": stated,
        "median": median,
        "low": low,
        "high": high,
        "ratio": None if stated is None else median / stated,
        "inside": None if stated is None else bool(low <= stated <= high),
        "machines": len(values),
        "values": values.tolist(),
        "stderr": [r["result"][f"{quantity}_stderr"] for r in records],
        "repeats": records[0]["settings"]["repeats"],
        "ess": float(np.median([r["result"]["ess"] for r in records])),
        "truth": records[0]["result"]["truth"],
    }
    if quantity == "bias":
        cell["median_corrected"] = float(np.median([r["result"]["bias_corrected"] for r in records]))
    return cell
