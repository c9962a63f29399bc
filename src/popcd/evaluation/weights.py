"""What importance weights say of themselves: their mean, its error, and whether that error can be believed."""

from typing import NamedTuple

import numpy as np

_RESAMPLES = 1000


class LogMean(NamedTuple):
    """log of the mean weight, its standard errors (delta method, bootstrap), effective sample size, Pareto k and its limit."""

    value: float
    stderr: float
    bootstrap: float
    ess: float
    pareto_k: float
    pareto_limit: float


def log_mean(log_weights: np.ndarray, seed: int = 0) -> LogMean:
    """The logarithm of the mean of weights given in logs, with its errors.

    The delta method gives `sd(w) / (mean(w) sqrt(N))`; the bootstrap draws the weights again 1,000 times. Columns of a matrix
    are groups of weights that depend on each other: both errors are then those of the groups' means.

    >>> found = log_mean(np.log([1.0, 2.0, 3.0, 2.0]))
    >>> round(float(np.exp(found.value)), 6), round(found.ess, 4)
    (2.0, 3.5556)
    """
    top = log_weights.max()
    weights = np.exp(log_weights - top)
    groups = weights if weights.ndim == 1 else weights.mean(axis=0)
    n, mean = len(groups), weights.mean()
    rng = np.random.default_rng(seed)
    resampled = np.stack([groups[rng.integers(0, n, n)].mean() for _ in range(_RESAMPLES)])
    return LogMean(
        value=float(np.log(mean) + top),
        stderr=float(groups.std(ddof=1) / mean / np.sqrt(n)),
        bootstrap=float(np.log(resampled).std(ddof=1)),
        ess=float(weights.sum() ** 2 / np.square(weights).sum()),
        pareto_k=pareto_k(log_weights.ravel()),
        pareto_limit=float(min(1 - 1 / np.log10(max(weights.size, 11)), 0.7)),
    )


def pareto_k(log_weights: np.ndarray) -> float:
    """The shape of a generalised Pareto distribution fitted to the largest weights.

    Above `min(1 - 1 / log10(n), 0.7)` the mean of n weights cannot be believed (Vehtari, Simpson, Gelman, Yao, Gabry 2024).
    The fit is the approximate Bayesian one of Zhang and Stephens (2009). NaN for fewer than 25 weights; minus infinity where
    the largest are all equal.

    >>> rng = np.random.default_rng(0)
    >>> bool(abs(pareto_k(0.5 * rng.exponential(size=100_000)) - 0.5) < 0.1)  # exp(x/2), x exponential: k = 1/2
    True
    """
    n = len(log_weights)
    if n < 25:
        return float("nan")
    tail = int(min(n / 5, 3 * np.sqrt(n)))
    ordered = np.exp(np.sort(log_weights) - log_weights.max())
    excess = ordered[-tail:] - ordered[-tail - 1]
    if excess[-1] <= 0:
        return float("-inf")
    grid = 30 + int(np.sqrt(tail))
    quartile = excess[int(tail / 4 + 0.5) - 1]
    quartile = quartile if quartile > 0 else excess[-1]
    theta = 1 / excess[-1] + (1 - np.sqrt(grid / (np.arange(1, grid + 1) - 0.5))) / (3 * quartile)
    shape = -np.log1p(-theta[:, None] * excess[None, :]).mean(axis=1)
    log_likelihood = tail * (np.log(theta / shape) + shape - 1)
    posterior = np.exp(log_likelihood - log_likelihood.max())
    best = (theta * posterior).sum() / posterior.sum()
    return float(np.log1p(-best * excess).mean())
