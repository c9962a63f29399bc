"""`popcd reproduce`."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import click

from popcd.commands.options import as_json, out_folder, print_result, readable_errors
from popcd.commands.progress import Progress, quiet, tell
from popcd.experiments.paper import EXPERIMENTS, PROBLEMS, ProfileName, specifications
from popcd.experiments.runner import Event, JobError, jobs_of, run, shard
from popcd.experiments.store import Job, Store, StoreError


def _part(context: click.Context, parameter: click.Parameter, value: str) -> tuple[int, int]:
    """I/N as two numbers with 1 <= I <= N."""
    index, _, of = value.partition("/")
    if not (index.isdecimal() and of.isdecimal() and 1 <= int(index) <= int(of)):
        raise click.BadParameter(f"{value!r} is not a part: expected I/N with I from 1 to N, for example 1/4")
    return int(index), int(of)


@click.command()
@click.argument("experiment", type=click.Choice(EXPERIMENTS))
@click.option("--problem", type=click.Choice(PROBLEMS), help="One problem only.")
@click.option("--trials", type=click.IntRange(min=1), help="Trials (machines in table1) in place of the profile's number.")
@click.option(
    "--profile",
    type=click.Choice(get_args(ProfileName)),
    default="quick",
    show_default=True,
    help="smoke: seconds; quick: fewer trials; paper: the published settings.",
)
@click.option(
    "--shard", "part", metavar="I/N", callback=_part, default="1/1", help="Do part I of N; run all N into one folder."
)
@click.option(
    "--jobs", type=click.IntRange(min=1), default=os.cpu_count() or 1, help="Processes, one thread each. Default: cores."
)
@out_folder(words="Folder for the results; one that holds some is continued. Default: popcd-reproduction-PROFILE.")
@quiet
@as_json
def reproduce(
    experiment: str,
    problem: str | None,
    trials: int | None,
    profile: ProfileName,
    part: tuple[int, int],
    jobs: int,
    out: Path | None,
    silent: bool,
    as_json: bool,
) -> None:
    """Rerun an experiment of the paper: figure1, figure2, figure3 or table1.

    Figure 1 is Bars-and-Stripes and Artificial Modes, Figure 2 MNIST and Letters with 16 hidden units, Figure 3 Letters with
    100 and MNIST with 500; Table 1 is the bias and variance of the gradient estimates. Every finished trial is one file in
    the folder, so the same command continues a run that was stopped.

    \b
    Examples:
      popcd reproduce figure1
      popcd reproduce table1 --problem bars-and-stripes --json
      popcd reproduce figure2 --profile paper --shard 3/50 --out /data/paper
    """
    folder = Path(f"popcd-reproduction-{profile}") if out is None else out
    with readable_errors(ValueError, StoreError, JobError, OSError):
        every = jobs_of(specifications(experiment, profile, problem), trials)
        store = Store.open(folder, profile)
        _do(shard(every, *part), store, jobs, silent)
        found, missing = _gather(every, store)
        result = _result(experiment, profile, problem, every, found, missing)
        result["files"] = _draw(experiment, folder)
    print_result(result, as_json, _table)


def _do(jobs: Sequence[Job], store: Store, processes: int, silent: bool) -> None:
    """All jobs, with a bar whose unit is a rough second of work."""
    cost = {job.name: job.specification.cost() for job in jobs}
    part = dict.fromkeys(cost, 0.0)
    with Progress("reproducing", sum(cost.values()), silent) as bar:

        def hear(event: Event) -> None:
            if event.kind == "note":
                bar.note(event.text)
                return
            part[event.job] = max(part[event.job], event.part)
            finished = sum(p >= 1 for p in part.values())
            words = f"{finished} of {len(part)} done, {event.job}" if event.kind == "done" else None
            bar.at(sum(cost[name] * p for name, p in part.items()), words)

        run(jobs, store, min(processes, len(jobs)), hear)


def _gather(jobs: Sequence[Job], store: Store) -> tuple[list[dict[str, Any]], int]:
    """The results that are there, and how many jobs (of other shards) are not."""
    found = []
    for job in jobs:
        try:
            found.append(store.read(job))
        except ValueError as error:  # of another shard, which will set it aside
            tell(f"{error}; it is left out")
            found.append(None)
    return [record for record in found if record is not None], sum(record is None for record in found)


def _result(
    experiment: str,
    profile: ProfileName,
    problem: str | None,
    jobs: Sequence[Job],
    records: list[dict[str, Any]],
    missing: int,
) -> dict[str, Any]:
    from popcd.experiments.differences import differences, of_jobs
    from popcd.experiments.rows import cells, optimum, panels

    result: dict[str, Any] = {
        "experiment": experiment,
        "profile": profile,
        "jobs": len(jobs),
        "missing": missing,
        "differences": differences(experiment, of_jobs(jobs), problem),
    }
    if experiment == "table1":
        return result | {"cells": cells(records)}
    return result | {
        "panels": [
            {
                "problem": panel.problem,
                "hidden": panel.hidden,
                "learning_rate": panel.learning_rate,
                "iterations": panel.iterations,
                "optimum": optimum(panel.problem),
                "curves": [
                    curve.summary() | {"steps": curve.steps.tolist(), "mean": curve.mean.tolist()}
                    for curve in panel.curves.values()
                ],
            }
            for panel in panels(records)
        ]
    }


def _draw(experiment: str, folder: Path) -> list[str]:
    """The figure of all results in the folder, also of other problems."""
    from popcd.experiments.rows import panels
    from popcd.experiments.store import load_records

    records = [record for record in load_records(folder)[1] if record["experiment"] == experiment]
    if experiment == "table1" or not records:
        return []
    from popcd.report.figures import learning_curves, save_figure

    figure = learning_curves(panels(records))
    files = [folder / f"{experiment}.png", folder / f"{experiment}.svg"]
    for file in files:
        save_figure(figure, file)
    return [str(file) for file in files]


def _table(result: dict[str, Any]) -> str:
    """The numbers for people."""
    from popcd.report.text import cells_table, panels_table

    head = [
        f"{result['experiment']}, profile {result['profile']}: {result['jobs'] - result['missing']} of {result['jobs']} results"
    ]
    head += [f"  other than in the paper: {words}" for words in result["differences"]]
    body = cells_table(result["cells"]) if "cells" in result else panels_table(result["panels"])
    return "\n".join([*head, "", *body, *(f"written: {file}" for file in result["files"])])
