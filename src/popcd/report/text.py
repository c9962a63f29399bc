"""Result rows as lines of text for the terminal."""

from collections.abc import Sequence
from typing import Any

from popcd.experiments.paper import Algorithm
from popcd.experiments.rows import title


def with_error(value: float, error: float | None) -> str:
    """A number and its standard error.

    >>> with_error(-3.4161, 0.0021), with_error(-80.0, None)
    ('-3.416 (0.002)', '-80.000')
    """
    return f"{value:.3f}" if error is None else f"{value:.3f} ({error:.3f})"


def label_of(cell: dict[str, Any]) -> str:
    """The algorithm of a cell as in the figures."""
    name, mixture, _ = cell["estimator"].partition("-mixture")
    return Algorithm(name, cell["k"], "mixture" if mixture else "single").label


def panels_table(panels: Sequence[dict[str, Any]]) -> list[str]:
    """Log-likelihoods at the end and at their best."""
    lines = []
    for panel in panels:
        where = f"{title(panel['problem'])}, {panel['hidden']} hidden, learning rate {panel['learning_rate']}"
        lines += [f"{where}, {panel['iterations']:,} iterations: mean log-likelihood (standard error over trials)"]
        lines += [f"  {'':<20}{'trials':>6}{'at the end':>20}{'at its best':>20}   best after"]
        for row in panel["curves"]:
            end, best = (with_error(row[at], row[f"{at}_stderr"]) for at in ("final", "best"))
            note = f"  <- {row['diverged_trials']} of {row['trials']} diverged" if row["diverged_trials"] else ""
            if row["bracket_half_width"]:
                note += f"  ±{row['bracket_half_width']:.2f}" + ("" if row["trusted"] else ", not to be trusted")
            lines.append(f"  {row['estimator']:<20}{row['trials']:>6}{end:>20}{best:>20}{row['best_step']:>13,}{note}")
        if panel["optimum"] is not None:
            lines.append(f"  {'optimum':<26}{panel['optimum']:>20.3f}")
        lines.append("")
    return lines


def cells_table(cells: Sequence[dict[str, Any]]) -> list[str]:
    """Published and measured figures of Table 1 side by side."""
    numbers = "".join(f"{name:>11}" for name in ("published", "median", "low", "high"))
    lines = [f"{'problem':<17}{'hidden':>6}  {'algorithm':<19}{'quantity':<9}{numbers}{'ratio':>8}"]
    for cell in cells:
        stated = "" if cell["published"] is None else f"{cell['published']:.3g}"
        ratio = "" if cell["ratio"] is None else f"{cell['ratio']:.2f}"
        inside = {True: "  inside", False: "  outside", None: ""}[cell["inside"]]
        figures = "".join(f"{cell[name]:>11.3g}" for name in ("median", "low", "high"))
        place = f"{cell['problem']:<17}{cell['hidden']:>6}  {label_of(cell):<19}{cell['quantity']:<9}"
        lines.append(f"{place}{stated:>11}{figures}{ratio:>8}{inside}")
    if cells:
        lines += ["", f"low and high: over {cells[0]['machines']} trained machines; all per parameter, as in the paper"]
    return lines
