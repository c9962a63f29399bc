"""`popcd diagnose --particles`: the error of estimators against the size of their population."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

MIXTURE = 500  # particles of a mixture: the same at every size, so that a curve is that of one estimator
_LEAST_REPEATS = 8


def _sizes(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    return None if value is None else tuple(_size(word) for word in value.split(","))


def _size(word: str) -> int:
    try:
        number = float(word)
    except ValueError:
        number = 0.5
    if not (number.is_integer() and 2 <= number < 2**31):
        raise click.BadParameter(f"{word!r} is not a whole number from 2 to 2**31 - 1: expected a list such as 1e3,1e4,1e5")
    return int(number)


particles = click.option(
    "--particles", metavar="N,N,...", callback=_sizes, help="Errors against so many particles instead, such as 1e3,1e4,1e5."
)
plot = click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="Of --particles: the curves as a .png picture."
)


def refuse(sizes: Sequence[int] | None, out: Path | None, batch_size: int | None, repeats: int, asked: Any) -> None:
    """Refuse options that do not go together, before anything is measured."""
    if sizes is None:
        if out is not None:
            raise click.UsageError("--out draws the curves of --particles: name these, or leave --out out")
        return
    if out is not None and out.suffix != ".png":
        raise click.BadParameter(f"{out} must end in .png", param_hint="--out")
    if batch_size is not None:
        raise click.UsageError("--batch-size has no use with --particles, which takes the mean over all rows: leave it out")
    if repeats < _LEAST_REPEATS:
        raise click.UsageError(f"--repeats must be at least {_LEAST_REPEATS} with --particles, got {repeats}")
    for about, _ in asked:
        if about["estimator"] not in ("cd", "pop-cd"):
            raise click.UsageError(
                f"--particles is for cd and pop-cd, whose particles start at data; {about['estimator']} has no such population"
            )
        odd = [size for size in sizes if size % MIXTURE] if about["proposal"] == "mixture" else []
        if odd:
            raise click.UsageError(
                f"mixtures are of {MIXTURE} particles, so --particles must be multiples of {MIXTURE}, got "
                f"{', '.join(map(str, odd))}; or name an --estimator without mixtures"
            )


def measure(rbm: Any, rows: Any, about: dict[str, Any], estimator: Any, **options: Any) -> dict[str, Any]:
    """The row of an estimator: a row for every size in it, and the exponents with what they say."""
    import popcd
    from popcd.evaluation import population_error

    if about["proposal"] == "mixture":
        estimator = popcd.pop_cd(about["k"], proposal="mixture", mixture_size=MIXTURE)
        about = about | {"label": f"{about['label']} of {MIXTURE}", "mixture_size": MIXTURE}
    error = population_error(rbm, rows, estimator, **options)
    by_size = zip(error.sizes, error.errors, strict=True)
    sizes = [{"particles": n, "ess_share": e.ess / n, "above_noise": e.above_noise} | asdict(e) for n, e in by_size]
    slopes = {"variance_slope": _slope(error.variance_slope), "bias_slope": _slope(error.bias_slope)}
    return about | {"sizes": sizes} | slopes


def _slope(slope: Any) -> dict[str, Any] | None:
    return None if slope is None else asdict(slope) | {"verdict": slope.verdict}


def draw(curves: list[dict[str, Any]], title: str, out: Path | None) -> list[str]:
    """The files that were written: the picture, where it was asked for."""
    if out is None:
        return []
    from popcd.report.figures import save_figure
    from popcd.report.population import population_curves

    save_figure(population_curves(curves, title), out)
    return [str(out)]


def table(result: dict[str, Any]) -> str:
    """The figures size by size, and what the exponents say."""
    truth = result["estimators"][0]["sizes"][0]["truth"]
    lines = [
        f"{result['model']} on {result['data']}, mean over all its rows, true gradient {truth}; per parameter:",
        f"{'':<26}{'particles':>11}{'estimates':>11}{'squared bias (s.e.)':>24}{'variance (s.e.)':>22}{'ESS/N':>9}",
    ]
    for row in result["estimators"]:
        for at in row["sizes"]:
            bias = f"{at['bias_corrected']:.3g} ({at['bias_stderr']:.1g})"
            variance = f"{at['variance']:.3g} ({at['variance_stderr']:.1g})"
            size = f"{at['particles']:>11,}{at['repeats']:>11,}"
            lines.append(f"{row['label']:<26}{size}{bias:>24}{variance:>22}{at['ess_share']:>9.2g}")
    lines.append("")
    for row in result["estimators"]:
        words = [_words("variance", row["variance_slope"]), _words("squared bias", row["bias_slope"]) or _unseen(row["sizes"])]
        lines.append(f"{row['label']}: {'; '.join(word for word in words if word)}")
    return "\n".join([*lines, *result["files"]])


def _words(name: str, slope: dict[str, Any] | None) -> str:
    if slope is None:
        return ""
    return f"{name} {slope['verdict']}, slope {round(slope['value'], 3) + 0.0:.3f} (s.e. {slope['stderr']:.2g})"  # no -0.000


def _unseen(sizes: Sequence[dict[str, Any]]) -> str:
    seen = [f"{at['particles']:,}" for at in sizes if at["above_noise"]]
    return f"squared bias above its noise {'at ' + seen[0] + ' particles only' if seen else 'at no size'}"
