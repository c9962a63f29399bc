"""`popcd evaluate`."""

from pathlib import Path
from typing import Any

import click

from popcd.commands.models import load_data, load_model, model, seed, threshold
from popcd.commands.options import as_json, print_result, readable_errors
from popcd.commands.progress import Progress, quiet, tell
from popcd.runs.folder import RunFolder


@click.command()
@model
@click.option("--data", required=True, help="A shipped set or a file.")
@click.option("--part", type=click.Choice(("train", "test")), help="Rows to evaluate. Default: test where there is one.")
@click.option("--method", type=click.Choice(("auto", "exact", "ais")), default="auto", show_default=True)
@click.option("--chains", type=click.IntRange(min=2), default=256, show_default=True, help="AIS chains each way.")
@click.option("--steps", type=click.IntRange(min=1), default=10_000, show_default=True, help="AIS steps each way.")
@click.option("--sweeps", type=click.IntRange(min=1), default=1_000, show_default=True, help="Tempering behind reverse AIS.")
@threshold
@seed
@quiet
@as_json
def evaluate(
    model: Path,
    data: str,
    part: str | None,
    method: str,
    chains: int,
    steps: int,
    sweeps: int,
    threshold: float | None,
    seed: int,
    silent: bool,
    as_json: bool,
) -> None:
    """Mean log-likelihood of data under MODEL, a file or the folder of a run.

    Exact up to 20 units on the smaller side. Beyond, AIS from both ends gives a value with a bracket, and a word on
    whether it can be trusted. The evaluation of a run is kept in its folder, for `popcd report`.

    \b
    Examples:
      popcd evaluate runs/a --data letters
      popcd evaluate model.npz --data mine.npz --method ais --steps 20000 --json
    """
    with readable_errors(ValueError, TypeError, OSError):
        rbm = load_model(model)
        sets = load_data(data, threshold, rbm)
        part = part or ("train" if sets.test is None else "test")
        if part == "test" and sets.test is None:
            raise ValueError(f"{data} has no test rows; use --part train")
        rows = getattr(sets, part)
        with Progress("evaluating", 1, silent) as bar:
            found = _estimate(rbm, rows, sets.train, method, chains, steps, sweeps, seed, bar)
        result = {"model": str(model), "data": data, "part": part, **found}
    print_result(result, as_json, _table)
    if model.is_dir():
        try:
            RunFolder(model).add_evaluation(result)
        except (OSError, ValueError) as error:
            tell(f"not kept for `popcd report`: {error}")


def _estimate(
    rbm: Any, rows: Any, train: Any, method: Any, chains: int, steps: int, sweeps: int, seed: int, bar: Progress
) -> dict[str, Any]:
    from popcd import log_likelihood, pseudo_log_likelihood
    from popcd.evaluation.bracket import base_rate
    from popcd.evaluation.exact import log_unnormalised

    options = {"n_chains": chains, "n_steps": steps, "sweeps": sweeps, "seed": seed, "base_bias": base_rate(train)}
    found: Any = log_likelihood(rbm, rows, method, progress=lambda done, of: bar.at(done / of), **options)
    pseudo = pseudo_log_likelihood(rbm, rows[:1_000])
    log_z = float(log_unnormalised(rbm, rows[:1])[0] - found.rows[0])
    return {
        "rows": len(rows),
        "log_likelihood": found.value,
        "stderr": found.stderr,
        "lower": found.lower,
        "upper": found.upper,
        "rows_stderr": found.rows_stderr,
        "method": found.method,
        "ess": found.ess,
        "trustworthy": found.trustworthy,
        "reason": found.reason,
        "details": found.details,
        "pseudo_log_likelihood": pseudo.value,
        "log_partition": log_z,
    }


def _table(result: dict[str, Any]) -> str:
    lines = [f"{result['model']} on {result['rows']:,} rows of {result['data']} ({result['part']})"]
    lines += [f"mean log-likelihood      {result['log_likelihood']:.4f}  ({result['method']})"]
    if result["method"] != "exact":
        lines += [
            f"  bracket                {result['lower']:.4f} to {result['upper']:.4f}, standard error {result['stderr']:.4f}"
        ]
    if result["rows_stderr"] is not None:
        lines += [f"  standard error, rows   {result['rows_stderr']:.4f}"]
    lines += [f"log Z                    {result['log_partition']:.4f}"]
    lines += [f"mean pseudo-likelihood   {result['pseudo_log_likelihood']:.4f}  (log; at most 1,000 rows)"]
    return "\n".join(lines + ([] if result["trustworthy"] else [f"NOT TO BE TRUSTED: {result['reason']}"]))
