"""Exact log Z, AIS and parallel tempering as multiples of their bare matrix products: `python benchmarks/evaluation.py`.

Both sides of a ratio take turns in one run.

Prints one JSON object; ratios are medians over the rounds with the least and the largest beside them.
"""

import json
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

import popcd
from popcd.benchmark import PAUSE, Size, clock, environment, random_rows, updates
from popcd.evaluation import ais
from popcd.evaluation.tempered import temper
from popcd.kernels.tempering import uniform_ladder

ROUNDS = 7


def machine(n_visible: int, n_hidden: int) -> popcd.RBM:
    rng = np.random.default_rng(0)
    return popcd.RBM(0.1 * rng.normal(size=(n_visible, n_hidden)), rng.normal(size=n_visible), rng.normal(size=n_hidden))


def seconds(work) -> float:
    time.sleep(PAUSE)
    start = clock()
    work()
    return clock() - start


def compare(bare, ours) -> dict[str, float]:
    """Both in turn, after one warm-up each."""
    bare(), ours()
    pairs = np.array([(seconds(bare), seconds(ours)) for _ in range(ROUNDS)])
    ratios = pairs[:, 1] / pairs[:, 0]
    bare_ms, ours_ms = 1e3 * np.median(pairs, axis=0)
    return {
        "bare_ms": round(bare_ms, 2),
        "ours_ms": round(ours_ms, 2),
        "ratio": round(float(np.median(ratios)), 2),
        "least": round(float(ratios.min()), 2),
        "largest": round(float(ratios.max()), 2),
    }


def exact_log_partition() -> dict[str, float]:
    """784 x 16 against the product of all 2**16 hidden states with the weights, in float32 NumPy."""
    rbm = machine(784, 16)
    states = (np.arange(2**16)[:, None] >> np.arange(16) & 1).astype(np.float32)
    weights = np.asarray(rbm.weights, np.float32).T.copy()
    return compare(lambda: states @ weights, lambda: popcd.log_partition(rbm))


def peak_megabytes(n_hidden: int) -> int:
    """The largest resident size of a process that does nothing else but 784 x n_hidden exactly."""
    code = (
        "import resource, popcd; popcd.log_partition(popcd.RBM.create(784, {}));"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)"
    )
    run = subprocess.run([sys.executable, "-c", code.format(n_hidden)], capture_output=True, text=True, check=True)
    return int(run.stdout)


def ais_step(n_visible: int = 784, n_hidden: int = 500, chains: int = 512, steps: int = 20) -> dict[str, float]:
    """Steps of AIS in one call against as many pairs of products in float32 NumPy."""
    rbm, base = machine(n_visible, n_hidden), np.zeros(n_visible)
    start = ais.base_samples(jax.random.key(0), rbm, base, chains)
    betas = ais.linear_schedule(10_000)[-steps - 1 :]
    visible, hidden = np.asarray(start), np.ones((chains, n_hidden), np.float32)
    weights = np.asarray(rbm.weights, np.float32)

    def bare() -> None:
        for _ in range(steps):
            visible @ weights
            hidden @ weights.T

    return compare(bare, lambda: ais.anneal(jax.random.key(0), rbm, jnp.asarray(start), betas, base))


def tempered_update(n_visible: int = 784, n_hidden: int = 500, batch: int = 50, temperatures: int = 10) -> dict[str, float]:
    """An update of `pt` against two products of all replicas and four of the batch, in float32 NumPy."""
    size, rng = Size(n_visible, n_hidden, batch), np.random.default_rng(0)
    visible, hidden = (rng.random((batch, n), np.float32) for n in (n_visible, n_hidden))
    all_visible, all_hidden = (np.tile(side, (temperatures, 1)) for side in (visible, hidden))
    weights = rng.random((n_visible, n_hidden), np.float32)
    train = updates(popcd.pt(temperatures), random_rows(size), size)

    def bare() -> None:
        for _ in range(20):
            all_visible @ weights
            all_hidden @ weights.T
            for _ in range(2):
                visible @ weights
                visible.T @ hidden

    return compare(bare, lambda: train(20))


def tempered_samples(n_visible: int = 784, n_hidden: int = 500) -> dict[str, float]:
    """Twenty sweeps of the ladders that `popcd.sample` runs against as many pairs of products in float32 NumPy."""
    rbm, ladder = machine(n_visible, n_hidden), uniform_ladder(40)
    visible, hidden = (np.ones((32 * len(ladder), n), np.float32) for n in (n_visible, n_hidden))
    weights = np.asarray(rbm.weights, np.float32)

    def bare() -> None:
        for _ in range(20):
            visible @ weights
            hidden @ weights.T

    return compare(bare, lambda: temper(jax.random.key(0), rbm, np.zeros(n_visible), ladder, 32, snapshots=1, spacing=10))


def every_ratio() -> dict[str, dict[str, float]]:
    return {
        "exact log Z, 784 x 16": exact_log_partition(),
        "AIS, 784 x 500, 512 chains, 20 steps": ais_step(steps=20),
        "AIS, 784 x 500, 512 chains, 100 steps": ais_step(steps=100),
        "pt, 784 x 500, batch 50, 10 temperatures": tempered_update(),
        "tempered samples, 784 x 500, 32 ladders of 40, 20 sweeps": tempered_samples(),
    }


if __name__ == "__main__":
    peaks = {"exact log Z, peak MB of a process by hidden units": {n: peak_megabytes(n) for n in (2, 12, 16, 20)}}
    print(json.dumps(every_ratio() | peaks | environment(), indent=2))
