"""Slow runs at the paper's settings: means over trials against intervals, never single floats. Print with -rP."""

import numpy as np
import pytest

import popcd

pytestmark = pytest.mark.slow
TRIALS = 5


def final_log_likelihoods(problem, estimator, iterations, batch_size):
    data = popcd.datasets.load(problem).train
    settings = {"iterations": iterations, "batch_size": batch_size, "learning_rate": 0.1, "evaluate_every": iterations}
    final = [
        popcd.train(popcd.RBM.create(16, 16, seed=trial), data, estimator, seed=trial, **settings).history["log_likelihood"][-1]
        for trial in range(TRIALS)
    ]
    mean, error = np.mean(final), np.std(final, ddof=1) / np.sqrt(TRIALS)
    print(f"{problem}, {estimator}, {iterations} updates: {mean:.4f} +- {error:.4f}")
    return mean, error


@pytest.mark.parametrize(
    ("estimator", "prototype", "spread"),
    [
        (popcd.pop_cd(1), -3.424, 0.02),
        (popcd.pop_cd(10), -3.421, 0.02),
        (popcd.pop_cd(1, proposal="mixture"), -3.409, 0.02),
        (popcd.pop_cd(10, proposal="mixture"), -3.398, 0.02),
        (popcd.cd(1), -7.17, 0.5),
        (popcd.cd(10), -4.69, 0.3),
        (popcd.pcd(1), -24.3, 4.0),
    ],
    ids=str,
)
def test_bars_and_stripes(estimator, prototype, spread):
    """Another implementation's means over five trials, give or take the noise of two such means."""
    mean, error = final_log_likelihoods("bars-and-stripes", estimator, 50_000, 32)
    assert abs(mean - prototype) < max(spread, 4 * np.sqrt(2) * error)


@pytest.mark.parametrize(
    ("estimator", "prototype", "spread"),
    [
        (popcd.pop_cd(1), -1.519, 0.01),
        (popcd.pop_cd(1, proposal="mixture"), -1.541, 0.02),
        (popcd.cd(1), -22.4, 3.0),
        (popcd.pcd(1), -3.8, 1.5),
    ],
    ids=str,
)
def test_artificial_modes(estimator, prototype, spread):
    mean, error = final_log_likelihoods("artificial-modes", estimator, 10_000, 500)
    assert abs(mean - prototype) < max(spread, 4 * np.sqrt(2) * error)


def test_exact_training_on_bars_and_stripes():
    data = popcd.datasets.load("bars-and-stripes").train
    settings = {"iterations": 50_000, "batch_size": 32, "learning_rate": 0.1, "evaluate_every": 5_000}
    history = popcd.train(popcd.RBM.create(16, 16, seed=0), data, popcd.exact(), **settings).history["log_likelihood"]
    print(history)
    assert history[-1] > -3.41
    assert (np.diff(history) > 0).all()
