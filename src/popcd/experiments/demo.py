"""The demo: four estimators on Bars-and-Stripes, where CD and PCD diverge and pop-CD does not."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from popcd.datasets import load
from popcd.estimators import Estimator, cd, pcd, pop_cd
from popcd.evaluation import log_likelihood
from popcd.rbm import RBM
from popcd.training import train

N_HIDDEN, LEARNING_RATE = 16, 0.1
ESTIMATORS: dict[str, Estimator] = {
    "CD-1": cd(1),
    "PCD-1": pcd(1),
    "pop-CD-1": pop_cd(1),
    "mixture pop-CD-1": pop_cd(1, proposal="mixture"),
}


def interval(iterations: int) -> int:
    """Updates between two evaluations, of which there are about 100."""
    return max(1, iterations // 100)


class Curves(NamedTuple):
    """Exact mean log-likelihoods of one estimator: `steps` (n), `log_likelihood` (trials x n)."""

    label: str
    steps: np.ndarray
    log_likelihood: np.ndarray

    def summary(self) -> dict[str, Any]:
        """Mean and standard error at the end and at the best point of the mean curve; diverged: five errors below it."""
        mean = self.log_likelihood.mean(axis=0)
        error = self.log_likelihood.std(axis=0, ddof=1) / np.sqrt(len(self.log_likelihood))
        best = int(mean.argmax())
        lost = self.log_likelihood[:, best] - self.log_likelihood[:, -1]
        lost_error = lost.std(ddof=1) / np.sqrt(len(lost))
        return {
            "estimator": self.label,
            "final": float(mean[-1]),
            "final_stderr": float(error[-1]),
            "best": float(mean[best]),
            "best_stderr": float(error[best]),
            "best_step": int(self.steps[best]),
            "diverged": bool(lost.mean() > 5 * lost_error and lost.mean() > 0.1),
        }


def optimum() -> float:
    """The best mean log-likelihood any model can reach: minus the entropy of the data."""
    _, counts = np.unique(load("bars-and-stripes").train, axis=0, return_counts=True)
    p = counts / counts.sum()
    return float((p * np.log(p)).sum())


def result(curves: list[Curves], iterations: int, seed: int) -> dict[str, Any]:
    """Settings and figures of a finished demo."""
    return {
        "data": "bars-and-stripes",
        "hidden": N_HIDDEN,
        "learning_rate": LEARNING_RATE,
        "iterations": iterations,
        "trials": len(curves[0].log_likelihood),
        "seed": seed,
        "optimum": optimum(),
        "results": [curve.summary() for curve in curves],
    }


def run(trials: int, iterations: int, seed: int, evaluated: Callable[[str], None]) -> list[Curves]:
    """Train every estimator `trials` times; `evaluated` hears the label after each evaluation of a trial."""
    data = load("bars-and-stripes").train
    every = interval(iterations)

    def one(label: str, estimator: Estimator, trial: int) -> dict[str, np.ndarray]:
        def evaluate(rbm: RBM) -> dict[str, float]:
            evaluated(label)
            return {"log_likelihood": log_likelihood(rbm, data).value}

        start = RBM.create(data.shape[1], N_HIDDEN, seed=seed + trial)
        return train(
            start,
            data,
            estimator,
            iterations=iterations,
            batch_size=len(data),
            learning_rate=LEARNING_RATE,
            seed=seed + trial,
            evaluate_every=every,
            evaluate=evaluate,
        ).history

    curves = []
    for label, estimator in ESTIMATORS.items():
        histories = [one(label, estimator, trial) for trial in range(trials)]
        curves.append(Curves(label, histories[0]["step"], np.stack([h["log_likelihood"] for h in histories])))
    return curves
