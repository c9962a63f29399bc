"""Figures of learning curves."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from popcd.experiments.demo import Curves

# Okabe and Ito's colours, told apart also by colour-blind readers; line styles tell them apart in print
_STYLES = (("#D55E00", "-"), ("#E69F00", "--"), ("#0072B2", "-"), ("#009E73", "-."))


def gap_to_optimum(curves: Sequence[Curves], optimum: float, title: str) -> Figure:
    """How far each estimator stays below the best possible log-likelihood: mean over trials, band from least to most."""
    figure = Figure(figsize=(7, 4.4), layout="constrained")
    axes = figure.add_subplot()
    for curve, (colour, style) in zip(curves, _STYLES, strict=True):
        gap = optimum - curve.log_likelihood
        axes.fill_between(curve.steps, gap.min(axis=0), gap.max(axis=0), color=colour, alpha=0.2, linewidth=0)
        axes.plot(curve.steps, gap.mean(axis=0), color=colour, linestyle=style, label=curve.label)
    axes.set_yscale("log")
    ends = [optimum - curve.log_likelihood[:, -1].mean() for curve in curves]
    low, high = np.log10(axes.get_ylim())
    heights = 10 ** _apart(np.log10(ends), (high - low) * 0.06)
    for curve, height, (colour, _) in zip(curves, heights, _STYLES, strict=True):
        axes.annotate(f" {curve.label}", (curve.steps[-1], height), color=colour, va="center", fontsize=9)
    axes.set_xlim(0, curves[0].steps[-1] * 1.28)
    axes.set_xticks(np.linspace(0, curves[0].steps[-1], 6))
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    axes.set_xlabel("updates")
    axes.set_ylabel("nats below the optimum (log scale)")
    axes.set_title(title, fontsize=10)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _apart(heights: np.ndarray, distance: float) -> np.ndarray:
    """The heights of labels, moved up where they would overlap the next lower one."""
    moved, floor = heights.copy(), -np.inf
    for i in np.argsort(heights):
        floor = moved[i] = max(heights[i], floor)
        floor += distance
    return moved
