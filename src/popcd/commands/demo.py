"""`popcd demo`."""

from pathlib import Path
from typing import Any

import click

from popcd.commands.options import as_json, make_folder, out_folder, print_result
from popcd.commands.progress import Progress, quiet


@click.command()
@click.option("--trials", type=click.IntRange(min=2), default=5, show_default=True, help="Runs of each estimator.")
@click.option("--iterations", type=click.IntRange(min=1), default=50_000, show_default=True, help="Updates of each run.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the first trial.")
@out_folder("popcd-demo", "Folder for the figure and the numbers.")
@quiet
@as_json
def demo(trials: int, iterations: int, seed: int, out: Path, silent: bool, as_json: bool) -> None:
    """Watch CD and PCD diverge on Bars-and-Stripes while pop-CD does not.

    Trains CD-1, PCD-1, pop-CD-1 and mixture pop-CD-1 with 16 hidden units at learning rate 0.1, prints exact mean
    log-likelihoods and draws the learning curves.

    \b
    Examples:
      popcd demo
      popcd demo --trials 2 --iterations 5000 --out quick
    """
    from popcd.experiments import demo as experiment
    from popcd.report.figures import gap_to_optimum, save_figure

    make_folder(out)
    evaluations = len(experiment.ESTIMATORS) * trials * -(-iterations // experiment.interval(iterations))
    with Progress("training", evaluations, silent) as bar:
        curves = experiment.run(trials, iterations, seed, evaluated=bar.at)
    result = experiment.result(curves, iterations, seed)
    title = f"{_problem(result)}: mean and range of {trials} trials"
    figure = gap_to_optimum(curves, result["optimum"], title)
    files = [out / "learning-curves.png", out / "learning-curves.svg"]
    for file in files:
        save_figure(figure, file)
    print_result(result | {"files": [str(file) for file in files]}, as_json, _table)


def _problem(result: dict[str, Any]) -> str:
    return f"Bars-and-Stripes, {result['hidden']} hidden units, learning rate {result['learning_rate']}"


def _table(result: dict[str, Any]) -> str:
    """The demo's numbers for people."""
    lines = [
        f"{_problem(result)}, {result['iterations']:,} updates, {result['trials']} trials",
        "Exact mean log-likelihood per image (standard error over trials):",
        "",
        f"{'estimator':<18}{'at the end':>20}{'at its best':>20}   best after",
    ]
    for row in result["results"]:
        end, best = (f"{row[at]:.3f} ({row[at + '_stderr']:.3f})" for at in ("final", "best"))
        note = "  <- diverged" if row["diverged"] else ""
        lines.append(f"{row['estimator']:<18}{end:>20}{best:>20}{row['best_step']:>13,}{note}")
    lines += [f"{'optimum':<18}{result['optimum']:>12.4f}", "", "Learning curves:"]
    return "\n".join(lines + [f"  {file}" for file in result["files"]])
