"""Comparisons of learning curves: True, False, or None where the difference lies within its error."""

from collections.abc import Iterable

import numpy as np

from popcd.experiments.rows import Panel

_ALIKE = 0.02  # of what training gained, about the width of a line in the figures: "almost the same" in the paper's words


def gap(panel: Panel, a: str, b: str) -> tuple[float, float]:
    """How far `a` ends above `b`, and three standard errors of that over trials with the same seeds, plus the brackets."""
    one, two = panel.curves[a], panel.curves[b]
    n = min(len(one.log_likelihood), len(two.log_likelihood))
    ends = one.log_likelihood[:n, -1] - two.log_likelihood[:n, -1]
    error = float(ends.std(ddof=1) / np.sqrt(n)) if n > 1 and np.isfinite(ends).all() else 0.0
    return float(one.mean[-1] - two.mean[-1]), 3 * error + one.doubt(-1) + two.doubt(-1)


def beyond(difference: float, doubt: float, least: float) -> bool | None:
    """Whether a difference exceeds `least`, by more than its doubt."""
    return True if difference - doubt > least else False if difference + doubt < least else None


def within(difference: float, doubt: float, most: float) -> bool | None:
    """Whether a difference is at most `most` in size; False only where the doubt does not explain it."""
    return True if abs(difference) <= most else False if abs(difference) - doubt > most else None


def every(findings: Iterable[bool | None]) -> bool | None:
    """All of them; one that is False decides, one that is None leaves it open."""
    found = list(findings)
    return False if False in found else None if None in found else True


def tolerance(panel: Panel) -> float:
    """2 % of what training gained."""
    start = min(curve.mean[0] for curve in panel.curves.values())
    return float(_ALIKE * (max(curve.mean.max() for curve in panel.curves.values()) - start))
