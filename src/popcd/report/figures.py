"""Figures as pure functions of result rows."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from popcd.experiments.curves import Curves
from popcd.experiments.rows import Panel, optimum
from popcd.files import write_atomically

IMAGE = {"bars-and-stripes": (4, 4), "artificial-modes": (4, 4), "letters": (16, 8), "mnist": (28, 28)}

# Okabe and Ito's colours, told apart also by colour-blind readers; line styles tell them apart in print
_STYLES = {
    "CD-1": ("#D55E00", "-"),
    "CD-10": ("#D55E00", ":"),
    "PCD-1": ("#E69F00", "--"),
    "pop-CD-1": ("#0072B2", "-"),
    "pop-CD-10": ("#56B4E9", ":"),
    "PT-10": ("#000000", "--"),
    "mixture pop-CD-1": ("#009E73", "-."),
    "mixture pop-CD-10": ("#009E73", ":"),
}


def gap_to_optimum(curves: Sequence[Curves], optimum: float, title: str) -> Figure:
    """How far each estimator stays below the best possible log-likelihood: mean over trials, band from least to most."""
    figure = Figure(figsize=(7, 4.4), layout="constrained")
    axes = figure.add_subplot()
    for curve in curves:
        colour, style = _STYLES[curve.label]
        gap = optimum - curve.log_likelihood
        axes.fill_between(curve.steps, gap.min(axis=0), gap.max(axis=0), color=colour, alpha=0.2, linewidth=0)
        axes.plot(curve.steps, gap.mean(axis=0), color=colour, linestyle=style, label=curve.label)
    axes.set_yscale("log")
    ends = [optimum - curve.log_likelihood[:, -1].mean() for curve in curves]
    low, high = np.log10(axes.get_ylim())
    heights = 10 ** _apart(np.log10(ends), (high - low) * 0.06)
    for curve, height in zip(curves, heights, strict=True):
        axes.annotate(f" {curve.label}", (curve.steps[-1], height), color=_STYLES[curve.label][0], va="center", fontsize=9)
    axes.set_xlim(0, curves[0].steps[-1] * 1.28)
    axes.set_xticks(np.linspace(0, curves[0].steps[-1], 6))
    axes.set_xlabel("updates")
    axes.set_ylabel("nats below the optimum (log scale)")
    axes.set_title(title, fontsize=10)
    _tidy(axes)
    return figure


def learning_curves(panels: Sequence[Panel]) -> Figure:
    """The panels of one of the paper's figures: negative mean log-likelihood over iterations, mean and range of the trials."""
    rows = -(-len(panels) // 2)
    figure = Figure(figsize=(10, 0.7 + 3.5 * rows), layout="constrained")
    for number, panel in enumerate(panels):
        axes = figure.add_subplot(rows, min(2, len(panels)), number + 1)
        for label, curve in panel.curves.items():
            colour, style = _STYLES[label]
            nll = -curve.log_likelihood
            axes.fill_between(
                curve.steps, np.nanmin(nll, axis=0), np.nanmax(nll, axis=0), color=colour, alpha=0.15, linewidth=0
            )
            axes.plot(curve.steps, -curve.mean, color=colour, linestyle=style, linewidth=1.4, label=label)
        best = optimum(panel.problem)
        if best is not None:
            axes.axhline(-best, color="0.35", linewidth=0.9, linestyle=(0, (1, 3)), label="optimum")
        axes.set_ylim(*_range(panel, best))
        axes.set_xlim(0, panel.iterations)
        axes.set_title(f"({chr(97 + number)}) {panel.title}", fontsize=10)
        axes.set_xlabel("iterations")
        axes.set_ylabel("negative log-likelihood per row")
        _tidy(axes)
    entries = {label: line for axes in figure.axes for line, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    return figure


def _range(panel: Panel, best: float | None) -> tuple[float, float]:
    """From the best curve to what training starts with: a curve that gets worse than that leaves the panel at the top."""
    means = [-curve.mean for curve in panel.curves.values()]
    low = min(float(np.nanmin(mean)) for mean in means) if best is None else -best
    high = max(float(mean[0]) for mean in means)
    margin = 0.05 * (high - low) + 1e-3
    return low - margin, high + margin


_METRICS = {
    "log-likelihood per row": ("log_likelihood", "test_log_likelihood"),
    "pseudo-log-likelihood per row": ("pseudo_log_likelihood", "test_pseudo_log_likelihood"),
    "effective sample size": ("ess",),
    "norm of the gradient": ("gradient_norm",),
}


def metrics_curves(rows: Sequence[dict[str, Any]]) -> Figure:
    """The metrics of a run over its updates, one panel each; of likelihoods training and test rows."""
    shown = {words: [n for n in names if n in rows[0]] for words, names in _METRICS.items()}
    shown = {words: names for words, names in shown.items() if names}
    figure = Figure(figsize=(3.6 * len(shown), 3.2), layout="constrained")
    steps = [row["step"] for row in rows]
    for number, (words, names) in enumerate(shown.items()):
        axes = figure.add_subplot(1, len(shown), number + 1)
        for name, (colour, style) in zip(names, (("#0072B2", "-"), ("#D55E00", "--")), strict=False):
            part = "test" if name.startswith("test_") else "training"
            axes.plot(steps, [row[name] for row in rows], color=colour, linestyle=style, label=part)
        if len(names) > 1:
            axes.legend(frameon=False, fontsize=8)
        if min(row[name] for row in rows for name in names) >= 0:
            axes.set_ylim(bottom=0)  # sizes and norms: small wobbles stay small
        axes.set_title(words, fontsize=9)
        axes.set_xlabel("updates")
        axes.locator_params(axis="x", nbins=4)
        _tidy(axes)
    return figure


def tiles(rows: np.ndarray, shape: tuple[int, int], columns: int, title: str, symmetric: bool) -> Figure:
    """Images side by side: filters (one colour scale around zero) or samples (0 white, 1 black)."""
    height, width = shape
    n_rows = -(-len(rows) // columns)
    sheet = np.full((n_rows * (height + 1) + 1, columns * (width + 1) + 1), np.nan)
    for i, image in enumerate(rows):
        top, left = 1 + i // columns * (height + 1), 1 + i % columns * (width + 1)
        sheet[top : top + height, left : left + width] = image.reshape(shape)
    scale = float(np.nanmax(np.abs(rows))) or 1.0
    size = 4.6 / columns
    figure = Figure(figsize=(4.8, 0.45 + n_rows * size * (height + 1) / (width + 1)), layout="constrained")
    axes = figure.add_subplot()
    axes.set_facecolor("0.85")
    colours: dict[str, Any] = (
        {"cmap": "RdBu_r", "vmin": -scale, "vmax": scale} if symmetric else {"cmap": "Greys", "vmin": 0, "vmax": 1}
    )
    axes.imshow(sheet, interpolation="nearest", **colours)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_title(title, fontsize=9)
    return figure


def _tidy(axes: Any) -> None:
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def _apart(heights: np.ndarray, distance: float) -> np.ndarray:
    """The heights of labels, moved up where they would overlap the next lower one."""
    moved, floor = heights.copy(), -np.inf
    for i in np.argsort(heights):
        floor = moved[i] = max(heights[i], floor)
        floor += distance
    return moved


def image(figure: Figure, kind: str = "png") -> bytes:
    """A figure as the bytes of a file; the same figure gives the same bytes."""
    content = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "popcd"}):
        figure.savefig(content, format=kind, dpi=160, metadata={"Date": None} if kind == "svg" else None)
    return content.getvalue()


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure in the format that the file's ending names."""
    write_atomically(path, image(figure, path.suffix[1:]))
