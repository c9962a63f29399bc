"""Tests of distributions: p-values, and the level at which a hypothesis is rejected."""

import numpy as np
from scipy import stats

SEEDS = 100  # the contract: every test passes for every seed from 0 to 99
ALPHA = 1e-4 / SEEDS  # so that over all its seeds a right program fails a test with probability 1e-4


def pearson(found, probabilities):
    """p-value of Pearson's chi-square test that state numbers `found` have these probabilities; rare states are pooled."""
    expected = probabilities * len(found)
    counts = np.bincount(found, minlength=len(probabilities))
    order = np.argsort(expected)
    pooled = np.searchsorted(np.cumsum(expected[order]) >= 10, True) + 1
    head, tail = order[:pooled], order[pooled:]
    expected = np.append(expected[tail], expected[head].sum())
    counts = np.append(counts[tail], counts[head].sum())
    return stats.chi2.sf(((counts - expected) ** 2 / expected).sum(), len(expected) - 1)


def wald(samples, mean):
    """p-value of the hypothesis that independent rows have this mean, by their empirical covariance."""
    gap = samples.mean(axis=0) - mean
    covariance = np.cov(samples, rowvar=False) / len(samples)
    return stats.chi2.sf(gap @ np.linalg.solve(covariance, gap), len(mean))
