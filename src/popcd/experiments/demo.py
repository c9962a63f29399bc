"""The demo: four estimators on Bars-and-Stripes, where CD and PCD diverge and pop-CD does not."""

from collections.abc import Callable
from typing import Any

import numpy as np

from popcd.datasets import load
from popcd.estimators import Estimator, cd, pcd, pop_cd
from popcd.evaluation import log_likelihood
from popcd.experiments.curves import Curves
from popcd.experiments.rows import optimum
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


def result(curves: list[Curves], iterations: int, seed: int) -> dict[str, Any]:
    """Settings and figures of a finished demo."""
    return {
        "data": "bars-and-stripes",
        "hidden": N_HIDDEN,
        "learning_rate": LEARNING_RATE,
        "iterations": iterations,
        "trials": len(curves[0].log_likelihood),
        "seed": seed,
        "optimum": optimum("bars-and-stripes"),
        "results": [curve.summary() for curve in curves],
    }


def run(trials: int, iterations: int, seed: int, evaluated: Callable[[int, str], None]) -> list[Curves]:
    """Train every estimator `trials` times; `evaluated` hears the number of evaluations so far and the label."""
    data = load("bars-and-stripes").train
    every, done = interval(iterations), 0

    def one(label: str, estimator: Estimator, trial: int) -> dict[str, np.ndarray]:
        def evaluate(rbm: RBM) -> dict[str, float]:
            nonlocal done
            done += 1
            evaluated(done, label)
            return {"log_likelihood": log_likelihood(rbm, data).value}

        start = RBM.create(data.shape[1], N_HIDDEN, seed=seed + trial)
        return train(
            start,
            data,
            estimator,
            devices=1,
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
