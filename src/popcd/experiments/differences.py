"""In words, where results were made with other settings than the published ones."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from popcd.experiments.paper import Cell, Specification, Tempering, settings, specifications
from popcd.experiments.store import Job

_PUBLISHED_TRUTH = Tempering(n_temperatures=100, n_ladders=1, sweeps=250_000)


def differences(experiment: str, runs: Iterable[tuple[dict[str, Any], int]], problem: str | None = None) -> list[str]:
    """What differs from the paper: of every kind of run its settings, as results keep them, and its number of trials."""
    ours = {_key(found): (found, trials) for found, trials in runs}
    groups: dict[str, list[str]] = {}
    for spec in map(_published, specifications(experiment, "paper", problem)):
        theirs = settings(spec)
        if _key(theirs) not in ours:
            if spec.algorithm.proposal != "mixture":
                groups.setdefault("not run", []).append(_where(theirs))
            continue
        found, trials = ours[_key(theirs)]
        pairs: dict[str, tuple[Any, Any]] = {"machines" if isinstance(spec, Cell) else "trials": (trials, spec.trials)}
        pairs |= {name: (found.get(name), theirs.get(name)) for name in ("iterations", "repeats", "annealing", "tempering")}
        for name, (here, there) in pairs.items():
            if here != there:
                words = "true gradient" if name == "tempering" else "AIS" if name == "annealing" else name
                groups.setdefault(f"{words}: {_words(here)} instead of {_words(there)}", []).append(_where(theirs))
    return [f"{change} ({', '.join(dict.fromkeys(where))})" for change, where in groups.items()]


def of_jobs(jobs: Iterable[Job]) -> list[tuple[dict[str, Any], int]]:
    """Settings and number of trials of every kind of job."""
    counts: dict[Specification, int] = {}
    for job in jobs:
        counts[job.specification] = counts.get(job.specification, 0) + 1
    return [(settings(spec), n) for spec, n in counts.items()]


def of_records(records: Iterable[dict[str, Any]]) -> list[tuple[dict[str, Any], int]]:
    """Settings and number of results of every kind of result."""
    counts: dict[tuple[Any, ...], tuple[dict[str, Any], int]] = {}
    for record in records:
        key = _key(record["settings"])
        counts[key] = record["settings"], counts.get(key, (None, 0))[1] + 1
    return list(counts.values())


def _published(spec: Specification) -> Specification:
    """The paper took one machine per row of its table, and parallel tempering for the truth of all of them."""
    return replace(spec, trials=1, tempering=_PUBLISHED_TRUTH) if isinstance(spec, Cell) else spec


def _key(found: dict[str, Any]) -> tuple[Any, ...]:
    algorithm = found["algorithm"]
    place = (found["experiment"], found["problem"], found["hidden"])
    rate = None if found["experiment"] == "table1" else found["learning_rate"]
    return (*place, rate, algorithm["estimator"], algorithm["k"], algorithm["proposal"])


def _where(found: dict[str, Any]) -> str:
    rate = "" if found["experiment"] == "table1" else f" at rate {found['learning_rate']}"
    return f"{found['problem']} {found['hidden']} hidden{rate}"


def _words(value: Any) -> str:
    if value is None:
        return "exact"
    if isinstance(value, dict) and "n_chains" in value:
        return f"{value['n_chains']} chains of {value['n_steps']:,} steps"
    if isinstance(value, dict):
        ladders = "one ladder" if value["n_ladders"] == 1 else f"{value['n_ladders']} ladders"
        return f"{ladders} of {value['n_temperatures']} temperatures, {value['sweeps']:,} sweeps"
    return f"{value:,}"
