"""A number and what is known of its error."""

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, eq=False)
class Estimate:
    """A value, its standard error, a bracket, how it was made, and whether it can be trusted.

    value, stderr : the estimate and its standard error; 0 where exact.
    lower, upper : a bracket; for AIS two standard errors below the forward and above the reverse estimate.
    method : "exact" or "ais".
    ess : effective number of independent chains behind it, None where exact.
    trustworthy, reason : False with the reason in words where something speaks against the value.
    details : further figures by name, such as the estimates that the bracket is made of.
    rows, rows_stderr : for a mean over data, the value of every row and the standard error over rows.
    """

    value: float
    stderr: float
    lower: float
    upper: float
    method: str
    ess: float | None
    trustworthy: bool = True
    reason: str = ""
    details: dict[str, float] | None = None
    rows: np.ndarray | None = field(default=None, repr=False)
    rows_stderr: float | None = None
