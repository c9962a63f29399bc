"""`popcd train`."""

import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from popcd.commands.cluster import Processes, cluster, joined
from popcd.commands.options import as_json, print_result, readable_errors
from popcd.commands.progress import Progress, metrics_words, quiet, tell
from popcd.runs.configuration import (
    ESTIMATORS,
    NORMALIZERS,
    PROPOSALS,
    SCHEDULES,
    STARTS,
    Configuration,
    configuration,
    overridden,
    read_settings,
)
from popcd.runs.folder import RunFolder

_WHOLE = click.IntRange(min=1)
_SETTINGS: tuple[Callable[..., Any], ...] = (
    click.option("--data", help="A shipped set (bars-and-stripes, artificial-modes, letters, mnist) or a file."),
    click.option("--hidden", type=_WHOLE, help="Hidden units."),
    click.option("--estimator", type=click.Choice(ESTIMATORS), help="Of the gradient. Default: pop-cd."),
    click.option("--k", type=_WHOLE, help="Gibbs steps of cd, pcd, pop-cd. Default: 1."),
    click.option("--proposal", type=click.Choice(PROPOSALS), help="Of pop-cd. Default: single."),
    click.option("--normalizer", type=click.Choice(NORMALIZERS), help="Of pop-cd. Default: self."),
    click.option("--particles", "n_particles", type=_WHOLE, help="Of pop-cd. Default: the batch size."),
    click.option("--chains", "n_chains", type=_WHOLE, help="Of pcd. Default: the batch size."),
    click.option("--temperatures", "n_temperatures", type=_WHOLE, help="Of pt. Default: 10."),
    click.option("--ladders", "n_ladders", type=_WHOLE, help="Of pt. Default: the batch size."),
    click.option("--sweeps", type=_WHOLE, help="Of pt, per update. Default: 1."),
    click.option("--learning-rate", type=float, help="Default: 0.1."),
    click.option("--schedule", type=click.Choice(SCHEDULES), help="Of the learning rate; all but constant fall to 0."),
    click.option("--centered/--plain", "centered", default=None, help="Centred gradients. Default: plain."),
    click.option("--weight-decay", type=float, help="Of the weights. Default: 0."),
    click.option("--iterations", type=_WHOLE, help="Updates. Default: 10000."),
    click.option("--batch-size", type=_WHOLE, help="Rows per update. Default: 100."),
    click.option("--start", type=click.Choice(STARTS), help="Biases from data means, or all uniform in (-0.1, 0.1)."),
    click.option("--seed", type=click.IntRange(min=0), help="Default: 0."),
    click.option("--threshold", type=float, help="Grey data: values above it are 1."),
    click.option("--test-fold", type=click.IntRange(0, 9), help="Of letters. Default: 0."),
    click.option("--evaluate-every", type=_WHOLE, help="Updates between rows of metrics. Default: a twentieth of all."),
    click.option("--checkpoint-every", type=_WHOLE, help="Updates between checkpoints. Default: with every row."),
)


def _settings(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_SETTINGS):
        command = option(command)
    return command


@click.command()
@_settings
@click.option(
    "--config", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="TOML file of settings; flags win."
)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="New folder for the run.")
@click.option("--resume", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Folder of a run to continue.")
@click.option(
    "--log", "services", type=click.Choice(("tensorboard", "wandb", "mlflow")), multiple=True, help="Metrics go there too."
)
@click.option("--devices", type=_WHOLE, help="Spread batch and particles over so many devices. Default: all.")
@click.option("--hidden-shards", type=_WHOLE, default=1, help="So many devices share the hidden units. Default: 1.")
@cluster
@quiet
@as_json
def train(
    config: Path | None,
    out: Path | None,
    resume: Path | None,
    services: tuple[str, ...],
    devices: int | None,
    hidden_shards: int,
    processes: Processes | None,
    silent: bool,
    as_json: bool,
    **flags: Any,
) -> None:
    """Train a machine on binary data, with metrics and checkpoints in a folder.

    Ends with model.safetensors there. Stop it with Ctrl-C or SIGTERM and it writes a checkpoint; --resume continues it bit for
    bit, also after a power cut.

    \b
    Examples:
      popcd train --data letters --hidden 100 --estimator pop-cd --proposal mixture --iterations 20000 --out runs/a
      popcd train --data mine.csv --threshold 0.5 --hidden 64 --out runs/b
      popcd train --config runs/a/config.toml --seed 1 --out runs/c
      popcd train --resume runs/a
      srun popcd train --data letters --hidden 100 --distributed --out runs/d
    """
    with readable_errors(ValueError, OSError):
        folder, settings = _resolved(config, out, resume, flags)
    with joined(processes, folder.path) as leading, readable_errors(ValueError, TypeError, OSError):
        from popcd.devices import device_mesh

        mesh = device_mesh(devices, hidden_shards)
        result = _run(folder, settings, resume is not None, services, silent or not leading, leading, mesh)
        if leading:
            print_result(result, as_json, _table)
    if result["stopped"]:
        sys.exit(1)


def _resolved(
    config: Path | None, out: Path | None, resume: Path | None, flags: dict[str, Any]
) -> tuple[RunFolder, Configuration]:
    given = {name: value for name, value in flags.items() if value is not None}
    if resume is not None:
        if given or config or out:
            named = ", ".join([*given, *(["config"] if config else []), *(["out"] if out else [])])
            raise click.UsageError(f"--resume continues a run with the settings it has; leave out {named.replace('_', '-')}")
        folder = RunFolder(resume)
        return folder, folder.configuration()
    if out is None:
        raise click.UsageError("name a folder for the run with --out, or one to continue with --resume")
    try:
        return RunFolder(out), configuration(overridden(read_settings(config) if config else {}, given))
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _run(
    folder: RunFolder, config: Configuration, resume: bool, services: tuple[str, ...], silent: bool, leading: bool, mesh: Any
) -> dict[str, Any]:
    from dataclasses import asdict

    from popcd.chunks import TrainingDivergedError
    from popcd.runs.distributed import lost_processes
    from popcd.runs.run import load_data, run

    data = load_data(config)
    with _signals() as stopped, Progress("training", config.iterations, silent, "updates") as bar, _plain_warnings(bar.note):
        events = run(config, folder, data, resume=resume, services=services, stopped=stopped, tell=bar.note, mesh=mesh)
        step = 0
        try:
            with lost_processes(folder.path):
                for event in events:
                    step = event.step
                    bar.at(step, None if event.row is None else metrics_words(event.row))
        except TrainingDivergedError as error:
            raise click.ClickException(f"{error} Checkpoints and metrics before it are in {folder.path}") from error
    rows = folder.rows()
    finished = step in (0, config.iterations)  # 0: nothing was left to do
    if not finished and leading:
        name = signal.Signals(stopped[0]).name if stopped else "a signal to another process"
        tell(f"stopped by {name} after update {step:,}, a checkpoint is written; continue: popcd train --resume {folder.path}")
    return {
        "folder": str(folder.path),
        "model": str(folder.model) if finished else None,
        "step": config.iterations if finished else step,
        "stopped": not finished,
        "configuration": asdict(config),
        "metrics": rows[-1] if rows else None,
    }


@contextmanager
def _plain_warnings(tell: Callable[[str], None]) -> Iterator[None]:
    """Warnings as lines for people, without the place in the source."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: tell(f"warning: {message}")
        yield


@contextmanager
def _signals() -> Iterator[list[int]]:
    """The signals that came in; the first asks the run to stop, a second one ends it at once."""
    came: list[int] = []

    def note(number: int, _: Any) -> None:
        if came:
            raise KeyboardInterrupt
        came.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _table(result: dict[str, Any]) -> str:
    metrics = dict(result["metrics"] or {})
    measured = metrics.pop("step", result["step"])
    lines = [f"{name:<28}{value:>14.4f}" for name, value in metrics.items()]
    place = f"after update {result['step']:,}" + (f", measured after {measured:,}" if measured != result["step"] else "")
    end = [f"model: {result['model']}"] if result["model"] else []
    return "\n".join([f"{result['folder']}, {place}:", *lines, *end])
