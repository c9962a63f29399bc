"""The exponent of a power law through measured points, and what it says.

    log y = a + s log N,   s by least squares with weights (y / s.e.)^2

The standard error of s is that of the given errors, times sqrt(chi^2 / degrees of freedom) where the points scatter more
around the line than these allow (Birge 1932): a curve that bends, or errors that were too small.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_ERRORS = 3  # standard errors that a slope may be off


@dataclass(frozen=True)
class Slope:
    """An exponent s with its standard error, and the exponent of the law that it is held against.

    >>> Slope(-1.02, 0.01, law=-1).verdict, Slope(-0.5, 0.1, law=-1).verdict, Slope(0.01, 0.02, law=-2).verdict
    ('falls as 1/N', 'falls slower than 1/N', 'does not fall')
    """

    value: float
    stderr: float
    law: int

    @property
    def verdict(self) -> str:
        """Which of the law and no change lies within three standard errors; where neither does, on which side of them s is."""
        law = f"1/N^{-self.law}" if self.law < -1 else "1/N"
        is_law, is_flat = (abs(self.value - s) <= _ERRORS * self.stderr for s in (self.law, 0))
        if is_law and is_flat:
            return "undecided"
        if is_law:
            return f"falls as {law}"
        if is_flat:
            return "does not fall"
        if self.value > 0:
            return "grows"
        return f"falls {'slower' if self.value > self.law else 'faster'} than {law}"


def fit_slope(sizes: Sequence[int], values: Sequence[float], errors: Sequence[float], law: int) -> Slope | None:
    """The slope of log values against log sizes; None with fewer than two points that have a logarithm and an error.

    Parameters
    ----------
    sizes, values, errors : N, y and the standard error of y, point by point.
    law : the exponent to hold it against.

    Examples
    --------
    >>> found = fit_slope([10, 100, 1000], [5.0, 0.5, 0.05], [0.5, 0.05, 0.005], law=-1)
    >>> round(found.value, 6), found.verdict
    (-1.0, 'falls as 1/N')
    """
    usable = [point for point in zip(sizes, values, errors, strict=True) if point[1] > 0 and point[2] > 0]
    if len(usable) < 2:
        return None
    size, value, error = np.array(usable, float).T
    x, y, precision = np.log(size), np.log(value), np.square(value / error)
    around = x - np.average(x, weights=precision)
    spread = (precision * around**2).sum()
    slope = (precision * around * y).sum() / spread
    residual = y - np.average(y, weights=precision) - slope * around
    scatter = (precision * residual**2).sum() / (len(x) - 2) if len(x) > 2 else 1.0
    return Slope(float(slope), float(np.sqrt(max(1.0, scatter) / spread)), law)
