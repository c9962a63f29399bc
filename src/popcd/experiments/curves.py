"""Learning curves of several trials, and what is said of them in numbers."""

from dataclasses import dataclass
from typing import Any

import numpy as np

_NOTICED = 0.1  # nats: less than this is not called a divergence


@dataclass(frozen=True, eq=False)
class Curves:
    """Mean log-likelihoods of one estimator over training.

    label, steps : the estimator and the n updates after which it was evaluated.
    log_likelihood : trials x n; NaN from where the parameters of a trial became non-finite.
    half_width : n, the larger side of the widest AIS bracket at each evaluation; zeros where exact.
    trusted : n, False where an evaluation of a trial is not to be trusted.
    """

    label: str
    steps: np.ndarray
    log_likelihood: np.ndarray
    half_width: np.ndarray | None = None
    trusted: np.ndarray | None = None

    @property
    def mean(self) -> np.ndarray:
        """Over trials; minus infinity where one became non-finite."""
        return np.where(np.isnan(self.log_likelihood), -np.inf, self.log_likelihood).mean(axis=0)

    def doubt(self, *places: int) -> float:
        """The sum of the brackets' half widths at these evaluations."""
        return 0.0 if self.half_width is None else float(self.half_width[list(places)].sum())

    def diverged(self) -> np.ndarray:
        """Which trials ended below their best by more than 0.1 nat, ten times their own noise, and the brackets.

        Best and end are means over 20th parts of the curve; the noise is that of such a mean, from the scatter of the curve
        from its best part on. Ten, because the best is the largest of many noisy means.
        """
        window = max(1, len(self.steps) // 20)
        return np.array([np.isnan(trial).any() or self._fell(trial, window) for trial in self.log_likelihood])

    def _fell(self, trial: np.ndarray, window: int) -> bool:
        smooth = np.convolve(trial, np.ones(window) / window, mode="valid")
        best = int(smooth.argmax())
        after = trial[best : best + 4 * window]  # not before: the rise to the best is no noise
        noise = np.diff(after).std() / np.sqrt(2 * window) if window > 1 else 0.0
        doubt = max(_NOTICED, 10 * noise, self.doubt(best, -1))
        return bool(smooth.max() - smooth[-1] > doubt)

    def summary(self) -> dict[str, Any]:
        """Mean and standard error at the end and at the best point of the mean curve, and how many trials diverged."""
        mean, best = self.mean, int(self.mean.argmax())
        diverged = int(self.diverged().sum())
        return {
            "estimator": self.label,
            "trials": len(self.log_likelihood),
            "final": float(mean[-1]),
            "final_stderr": standard_error(self.log_likelihood[:, -1]),
            "best": float(mean[best]),
            "best_stderr": standard_error(self.log_likelihood[:, best]),
            "best_step": int(self.steps[best]),
            "diverged_trials": diverged,
            "diverged": diverged > len(self.log_likelihood) / 2,
            "bracket_half_width": self.doubt(-1),
            "trusted": bool(self.trusted is None or self.trusted[-1]),
        }


def standard_error(values: np.ndarray) -> float | None:
    """Of the mean over trials; None for fewer than two finite ones.

    >>> standard_error(np.array([1.0, 2.0, 3.0])) == 1 / 3**0.5
    True
    """
    finite = values[np.isfinite(values)]
    return float(finite.std(ddof=1) / np.sqrt(len(finite))) if len(finite) > 1 else None
