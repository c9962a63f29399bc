"""The error of gradient estimates against the number of particles, drawn."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

# Okabe and Ito's colours, told apart also by colour-blind readers; markers tell them apart in print
_COLOURS = ("#D55E00", "#E69F00", "#0072B2", "#009E73", "#CC79A7")
_MARKERS = "osD^v"
_PANELS = (
    ("squared bias per parameter", "bias_corrected", "bias_stderr", -2),
    ("variance per parameter", "variance", "variance_stderr", -1),
)


def population_curves(rows: Sequence[dict[str, Any]], title: str) -> Figure:
    """Squared bias and variance against N, on logarithmic axes, with guides of the laws 1/N^2 and 1/N.

    Rows are those of `popcd diagnose --particles`, one per estimator. A bias that is not above its noise has an open marker
    at the most that it can be, three standard errors above what was found, and an arrow downwards.
    """
    figure = Figure(figsize=(10, 4.6), layout="constrained")
    figure.suptitle(title, fontsize=11)
    for place, (words, name, error, law) in enumerate(_PANELS):
        axes = figure.add_subplot(1, 2, place + 1)
        axes.set_xscale("log")
        axes.set_yscale("log")
        for number, row in enumerate(rows):
            _curve(axes, row, name, error, number)
        _guide(axes, rows, name, law)
        axes.set_xlabel("particles N")
        axes.set_title(words, fontsize=10)
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    handles, labels = figure.axes[1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure


def _curve(axes: Any, row: dict[str, Any], name: str, error: str, number: int) -> None:
    size, value, bar = (np.array([at[key] for at in row["sizes"]], float) for key in ("particles", name, error))
    size *= 1.04**number  # side by side, where estimators have the same error
    seen = np.array([name == "variance" or at["above_noise"] for at in row["sizes"]])
    style = {"color": _COLOURS[number % 5], "marker": _MARKERS[number % 5], "markersize": 5, "capsize": 2.5, "linewidth": 1.3}
    below = np.minimum(bar, 0.9 * value)  # an error bar that reaches zero has no end on a logarithmic axis
    axes.errorbar(size[seen], value[seen], yerr=[below[seen], bar[seen]], label=row["label"], **style)
    most = (np.maximum(value, 0) + 3 * bar)[~seen]
    style |= {"linestyle": "none", "markerfacecolor": "white"}
    axes.errorbar(size[~seen], most, yerr=most / 2, uplims=True, **style)


def _guide(axes: Any, rows: Sequence[dict[str, Any]], name: str, law: int) -> None:
    """A dashed line of the law through the middle of what was found at the smallest size, cut where the data end."""
    size = np.array([at["particles"] for at in rows[0]["sizes"]], float)
    first = [row["sizes"][0][name] for row in rows if row["sizes"][0][name] > 0]
    if not first or len(size) < 2:
        return
    axes.set_ylim(axes.get_ylim())
    at = size[0] * (size[-1] / size[0]) ** np.linspace(0, 1, 100)
    height = np.exp(np.mean(np.log(first))) * (at / size[0]) ** law
    axes.plot(at, height, color="0.45", linestyle="--", linewidth=1, zorder=0)
    words = "1/N" if law == -1 else "1/N²"
    axes.annotate(words, (at[5], height[5]), xytext=(7, 3), textcoords="offset points", color="0.35", fontsize=9)
