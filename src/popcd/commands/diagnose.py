"""`popcd diagnose`."""

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import click

from popcd.commands import population
from popcd.commands.models import load_data, load_model, model, seed, threshold
from popcd.commands.options import as_json, print_result, readable_errors
from popcd.commands.progress import Progress, quiet

_ALL = (("cd", 1, None), ("cd", 10, None), ("pop-cd", 1, "single"), ("pop-cd", 1, "mixture"), ("pop-cd", 10, "mixture"))


@click.command()
@model
@click.option("--data", required=True, help="A shipped set or a file.")
@click.option(
    "--estimator", type=click.Choice(("cd", "pcd", "pt", "pop-cd", "exact")), help="One only. Default: cd and pop-cd."
)
@click.option("--k", type=click.IntRange(min=1), help="Gibbs steps of --estimator cd, pcd or pop-cd. Default: 1.")
@click.option("--proposal", type=click.Choice(("single", "joint", "mixture")), help="Of --estimator pop-cd. Default: single.")
@click.option("--batch-size", type=click.IntRange(min=1), help="Default: 500, or all rows.")
@click.option(
    "--repeats",
    type=click.IntRange(min=3),
    default=1_000,
    show_default=True,
    help="Gradient estimates each; with --particles of the smallest population, and fewer of larger ones.",
)
@population.particles
@population.plot
@threshold
@seed
@quiet
@as_json
def diagnose(
    model: Path,
    data: str,
    estimator: str | None,
    k: int | None,
    proposal: str | None,
    batch_size: int | None,
    repeats: int,
    particles: tuple[int, ...] | None,
    out: Path | None,
    threshold: float | None,
    seed: int,
    silent: bool,
    as_json: bool,
) -> None:
    """How good gradient estimates are at MODEL, how its chains mix, and what to use.

    Bias and variance per parameter against the exact gradient, or long parallel tempering beyond 20 units on the smaller side;
    the effective sample size of weighted estimates; the information between visible and hidden units, which bounds it.

    \b
    Examples:
      popcd diagnose runs/a --data letters
      popcd diagnose runs/a --data letters --estimator pop-cd --k 1 --repeats 5000 --json
      popcd diagnose runs/a --data letters --particles 1e3,1e4,1e5 --out population.png
    """
    with readable_errors(ValueError, TypeError, OSError):
        rbm = load_model(model)
        rows = load_data(data, threshold, rbm).train
        asked = _asked(rbm, estimator, k, proposal)
        population.refuse(particles, out, batch_size, repeats, asked)
        if particles is not None:
            with Progress("diagnosing", len(asked), silent) as bar:
                measure = partial(population.measure, sizes=particles, repeats=repeats)
                curves = _each(rbm, rows, asked, bar, measure, seed)
            files = population.draw(curves, f"{model} on {data}, {rbm.n_visible} x {rbm.n_hidden}", out)
            found = {"model": str(model), "data": data, "estimators": curves, "files": files}
            print_result(found, as_json, population.table)
            return
        batch_size = min(batch_size or 500, len(rows))
        with Progress("diagnosing", len(asked) + 1, silent) as bar:
            measured = _each(rbm, rows, asked, bar, partial(_measure, batch_size=batch_size, repeats=repeats), seed)
            mixing, information = _model(rbm, seed)
            bar.at(len(asked) + 1, "done")
    from popcd.advice import recommendation

    result = {
        "model": str(model),
        "data": data,
        "batch_size": batch_size,
        "repeats": repeats,
        "estimators": measured,
        "mixing": mixing,
        "information": information,
        "recommendation": recommendation(measured, mixing, batch_size),
    }
    if estimator is not None:
        result |= {name: measured[0][name] for name in ("bias", "bias_corrected", "variance", "ess")}
    print_result(result, as_json, _table)


def _asked(rbm: Any, estimator: str | None, k: int | None, proposal: str | None) -> list[tuple[dict[str, Any], Any]]:
    """What is said of each estimator, and the estimator."""
    from popcd.runs.configuration import KNOWN, Configuration
    from popcd.runs.run import build_estimator

    if estimator is None and (k is not None or proposal is not None):
        raise click.UsageError("--k and --proposal are settings of one --estimator: name it")
    found = []
    for word, steps, way in _ALL if estimator is None else ((estimator, k, proposal),):
        try:
            built = build_estimator(Configuration("-", rbm.n_hidden, word, steps, way))
        except ValueError as error:
            raise click.UsageError(str(error)) from error
        stepped = f"{word}-{steps or 1}" if "k" in KNOWN[word] else word
        label = stepped if way in (None, "single") else f"{stepped} {way}"
        found.append(({"label": label, "estimator": word, "k": steps or 1, "proposal": way}, built))
    return found


def _each(rbm: Any, rows: Any, asked: Any, bar: Progress, measure: Callable[..., dict[str, Any]], seed: int) -> list[Any]:
    """What `measure` finds of every estimator, held against one true gradient."""
    from popcd.evaluation import true_gradient

    bar.at(0, "the true gradient")
    truth = true_gradient(rbm, rows, seed=seed)
    found = []
    for number, (about, estimator) in enumerate(asked):

        def progress(done: int, of: int, number: int = number) -> None:
            bar.at(number + done / of)

        found.append(measure(rbm, rows, about, estimator, truth=truth, seed=seed, progress=progress))
        bar.at(number + 1, found[-1]["label"])
    return found


def _measure(rbm: Any, rows: Any, about: dict[str, Any], estimator: Any, **options: Any) -> dict[str, Any]:
    from popcd import gradient_error

    error = gradient_error(rbm, rows, estimator, **options)
    return about | {"ess_share": error.ess / options["batch_size"]} | asdict(error)


def _model(rbm: Any, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    import numpy as np

    from popcd import information, mixing
    from popcd.evaluation.tempered import temper
    from popcd.kernels.tempering import uniform_ladder
    from popcd.prng import root_key

    chains = asdict(mixing(rbm, seed=seed))
    ladders = temper(root_key(seed), rbm, np.zeros(rbm.n_visible), uniform_ladder(10), 32, 10, 20)
    chains["swap_rates"] = ladders.swap_rates.tolist()
    chains["least_swap_rate"] = float(ladders.swap_rates.min())
    return chains, asdict(information(rbm, seed=seed))


def _table(result: dict[str, Any]) -> str:
    truth = {row["truth"] for row in result["estimators"]}
    lines = [
        f"{result['model']} on {result['data']}, batch {result['batch_size']}, {result['repeats']:,} estimates each, "
        f"true gradient {', '.join(truth)}; per parameter:",
        f"{'':<18}{'bias (s.e.)':>24}{'corrected':>12}{'variance':>12}{'ESS':>8}",
    ]
    for row in result["estimators"]:
        bias = f"{row['bias']:.3g} ({row['bias_stderr']:.1g})"
        lines.append(f"{row['label']:<18}{bias:>24}{row['bias_corrected']:>12.3g}{row['variance']:>12.3g}{row['ess']:>8.1f}")
    m, i = result["mixing"], result["information"]
    at_least = "" if m["reached"] else "at least "
    lines += [
        "",
        f"Gibbs chains forget in {at_least}{m['autocorrelation_time']:.1f} sweeps (s.e. {m['stderr']:.1f}); "
        f"10 temperatures exchange in {m['least_swap_rate']:.0%} of sweeps or more",
        f"mutual + lautum information {i['total']:.3g} nat: with very many independent particles the effective sample size of "
        f"single-proposal pop-CD is at most {i['ess_bound']:.2g} of them; a small population does not see the rare weights",
        "",
    ]
    if not i["trustworthy"]:
        lines.append(f"log Z behind the information is not to be trusted: {i['reason']}")
    return "\n".join([*lines, *result["recommendation"]])
