"""scikit-learn's BernoulliRBM and ours side by side: fit time, log-likelihood after as many updates, and the first fit.

    python benchmarks/scikit.py [example] [digits] [mnist] [--rows 60000] [--epochs 3] [--rounds 3]

Times are interleaved in one run, medians of ratios, every fit in a process of its own: "popcd" compiles, "popcd, kept" finds
the program that an earlier process compiled and kept. Both classes get the same words: PCD-1, learning rate, batch of 10,
epochs, float32 rows; "popcd, last machine" does not average over the last updates. Log-likelihoods are those of the last
round's machines. "example" is scikit-learn's documented one, whose digits are grey, in three times as many rounds; its test
digits are binarised.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

FIT = """
import sys, time, numpy as np
sys.path.insert(0, {path!r})
from scikit import data
from {module} import BernoulliRBM
X, _ = data({name!r}, {rows})
rbm = BernoulliRBM({hidden}, learning_rate={rate}, batch_size=10, n_iter={epochs}, random_state={seed}{further})
start = time.perf_counter()
rbm.fit(X)
print(time.perf_counter() - start)
np.savez({out!r}, W=rbm.components_.T, b=rbm.intercept_visible_, c=rbm.intercept_hidden_)
"""
KINDS = {
    "scikit-learn": ("sklearn.neural_network", ""),
    "popcd": ("popcd", ""),
    "popcd, kept": ("popcd", ""),
    "popcd, last machine": ("popcd", ", average=False"),
}


def data(name, rows):
    """Training and test rows: digits, 8 x 8, with four shifted copies, grey as in scikit-learn's example or binary; MNIST."""
    if name == "mnist":
        import popcd

        sets = popcd.datasets.load("mnist")
        return sets.train[:rows].astype(np.float32), sets.test
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    digits = (load_digits().images / 16).astype(np.float32)
    digits = digits if name == "example" else (digits > 0.5).astype(np.float32)
    shifted = [np.roll(digits, shift, axis) for shift, axis in ((1, 1), (-1, 1), (1, 2), (-1, 2))]
    every = np.concatenate([digits, *shifted]).reshape(-1, 64)
    return train_test_split(every, test_size=0.2, random_state=0)


def fit(kind, name, rows, hidden, rate, epochs, seed, folder):
    """Seconds of a fit in a process of its own, with compiled programs in `folder`, where the machine is written to."""
    module, further = KINDS[kind]
    words = {"module": module, "further": further, "name": name, "rows": rows, "hidden": hidden, "rate": rate, "epochs": epochs}
    code = FIT.format(**words, seed=seed, out=f"{folder}/{kind}.npz", path=sys.path[0])
    environment = os.environ | {"XDG_CACHE_HOME": folder}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return float(done.stdout)


def compare(name, rows, hidden, rate, epochs, rounds):
    """Interleaved first fits of all kinds, and the log-likelihood of test rows under the last machines."""
    import popcd

    seconds = {kind: [] for kind in KINDS}
    for number in range(rounds):
        with tempfile.TemporaryDirectory() as folder:  # nothing was compiled before
            for kind in KINDS:
                seconds[kind].append(fit(kind, name, rows, hidden, rate, epochs, number, folder))
            machines = {kind: popcd.load(f"{folder}/{kind}.npz") for kind in KINDS if kind != "popcd, kept"}
    result = {"data": name, "hidden": hidden, "epochs": epochs, "rows": rows}
    result["seconds"] = {kind: float(np.median(times)) for kind, times in seconds.items()}
    ratios = {kind: np.divide(seconds["scikit-learn"], times) for kind, times in seconds.items() if kind != "scikit-learn"}
    result["ratio"] = {kind: [float(np.median(r)), float(r.min()), float(r.max())] for kind, r in ratios.items()}
    test = data(name, rows)[1] > 0.5
    found = {kind: popcd.log_likelihood(machine, test) for kind, machine in machines.items()}
    result["log-likelihood"] = {kind: [e.value, e.lower, e.upper, e.trustworthy] for kind, e in found.items()}
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="*", default=["example", "digits", "mnist"])
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    words = parser.parse_args()
    began = time.perf_counter()
    for name, hidden, rate, epochs, rounds in (
        ("example", 100, 0.06, 10, 3 * words.rounds),
        ("digits", 100, 0.06, 10, words.rounds),
        ("digits", 500, 0.06, 10, words.rounds),
        ("mnist", 100, 0.05, words.epochs, words.rounds),
        ("mnist", 500, 0.05, words.epochs, words.rounds),
    ):
        if name in words.data:
            print(json.dumps(compare(name, words.rows, hidden, rate, epochs, rounds)), flush=True)
    print(f"{time.perf_counter() - began:.0f} s in all", file=sys.stderr)


if __name__ == "__main__":
    main()
