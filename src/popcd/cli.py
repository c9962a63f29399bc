"""The command line. JAX loads inside the commands, so that help appears at once."""

import json
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import click

import popcd


def _version(context: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked:
        click.echo(f"popcd {popcd.__version__} (jax {metadata.version('jax')}, Python {sys.version.split()[0]})")
        context.exit()


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show versions and exit.")
def main() -> None:
    """Restricted Boltzmann Machines with gradients and log-likelihoods that can be trusted."""


@main.command()
@click.option("--trials", type=click.IntRange(min=2), default=5, show_default=True, help="Runs of each estimator.")
@click.option("--iterations", type=click.IntRange(min=1), default=50_000, show_default=True, help="Updates of each run.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the first trial.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("popcd-demo"),
    show_default=True,
    help="Folder for the figure and the numbers.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the table.")
def demo(trials: int, iterations: int, seed: int, out: Path, as_json: bool) -> None:
    """Watch CD and PCD diverge on Bars-and-Stripes while pop-CD does not.

    Trains CD-1, PCD-1, pop-CD-1 and mixture pop-CD-1 with 16 hidden units at learning rate 0.1, prints exact mean
    log-likelihoods and draws the learning curves.

    \b
    Examples:
      popcd demo
      popcd demo --trials 2 --iterations 5000 --out quick
    """
    from popcd.experiments import demo as experiment
    from popcd.report.figures import gap_to_optimum
    from popcd.report.files import save_figure

    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.ClickException(f"cannot create the folder {out}: {error.strerror}; name another with --out") from error
    evaluations = len(experiment.ESTIMATORS) * trials * -(-iterations // experiment.interval(iterations))
    with click.progressbar(
        length=evaluations, label="training", file=sys.stderr, item_show_func=lambda label: label, show_pos=True
    ) as bar:
        curves = experiment.run(trials, iterations, seed, evaluated=lambda label: bar.update(1, label))
    result = experiment.result(curves, iterations, seed)
    title = f"{_problem(result)}: mean and range of {trials} trials"
    figure = gap_to_optimum(curves, result["optimum"], title)
    files = [out / "learning-curves.png", out / "learning-curves.svg"]
    for file in files:
        save_figure(figure, file)
    result["files"] = [str(file) for file in files]
    click.echo(json.dumps(result) if as_json else _table(result))


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
