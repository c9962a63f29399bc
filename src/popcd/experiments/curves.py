"""Learning curves of several trials, and what is said of them in numbers."""

from dataclasses import dataclass
from typing import Any

import numpy as np

_NOTICED = 0.1  # nats: less than this is not called a divergence


@dataclass(frozen=True, eq=False)
class Curves:
    """Mean log-likelihoods of one estimator: `steps` (n), `log_likelihood` (trials x n), half the width of an AIS bracket.

    A trial whose parameters became non-finite has NaN from there on.
    """

    label: str
    steps: np.ndarray
    log_likelihood: np.ndarray
    half_width: float = 0.0

    @property
    def mean(self) -> np.ndarray:
        """Over the trials that are still finite."""
        return np.nanmean(self.log_likelihood, axis=0)

    def summary(self) -> dict[str, Any]:
        """Mean and standard error at the end and at the best point of the mean curve.

        Diverged: the mean loss from the best point to the end is more than 0.1 nat, five standard errors, and the bracket.
        """
        mean, best = self.mean, int(self.mean.argmax())
        lost = self.log_likelihood[:, best] - self.log_likelihood[:, -1]
        beyond_doubt = max(_NOTICED, 5 * (standard_error(lost) or 0.0), 2 * self.half_width)
        return {
            "estimator": self.label,
            "trials": len(self.log_likelihood),
            "final": float(mean[-1]),
            "final_stderr": standard_error(self.log_likelihood[:, -1]),
            "best": float(mean[best]),
            "best_stderr": standard_error(self.log_likelihood[:, best]),
            "best_step": int(self.steps[best]),
            "diverged": bool(np.nanmean(lost) > beyond_doubt or np.isnan(self.log_likelihood).any()),
        }


def standard_error(values: np.ndarray) -> float | None:
    """Of the mean over trials; None for fewer than two.

    >>> standard_error(np.array([1.0, 2.0, 3.0])) == 1 / 3**0.5
    True
    """
    finite = values[np.isfinite(values)]
    return float(finite.std(ddof=1) / np.sqrt(len(finite))) if len(finite) > 1 else None
