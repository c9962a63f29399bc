"""A number and what is known of its error."""

from typing import NamedTuple


class Estimate(NamedTuple):
    """A value with its standard error, a bracket, the method, and the effective sample size behind it (None where exact)."""

    value: float
    stderr: float
    lower: float
    upper: float
    method: str
    ess: float | None
