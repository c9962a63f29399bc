"""Exact log Z and AIS as multiples of their bare matrix products, interleaved in one run: `python benchmarks/evaluation.py`.

Prints one JSON object; ratios are medians over the rounds with the least and the largest beside them.
"""

import json
import os
import platform
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

import popcd
from popcd.evaluation import ais

ROUNDS = 7
PAUSE = 0.15  # seconds: idle threads of NumPy's BLAS spin on for a while and would take a core from what is timed next


def machine(n_visible: int, n_hidden: int) -> popcd.RBM:
    rng = np.random.default_rng(0)
    return popcd.RBM(0.1 * rng.normal(size=(n_visible, n_hidden)), rng.normal(size=n_visible), rng.normal(size=n_hidden))


def seconds(work) -> float:
    time.sleep(PAUSE)
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


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


if __name__ == "__main__":
    result = {
        "exact log Z, 784 x 16": exact_log_partition(),
        "exact log Z, peak MB of a process by hidden units": {n: peak_megabytes(n) for n in (2, 12, 16, 20)},
        "AIS, 784 x 500, 512 chains, 20 steps": ais_step(steps=20),
        "AIS, 784 x 500, 512 chains, 100 steps": ais_step(steps=100),
        "machine": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "versions": {"jax": jax.__version__, "numpy": np.__version__, "popcd": popcd.__version__},
    }
    print(json.dumps(result, indent=2))
