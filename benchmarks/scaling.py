"""Weak scaling: particles per second of one process against two or more, each computing with one thread.

    python benchmarks/scaling.py [--visible 784] [--hidden 500] [--batch 500] [--processes 2] [--rounds 3]

Every process brings `--batch` rows and particles. Rounds of one and of several processes alternate; a figure is the median over
chunks of updates after the first, the ratio is the median over rounds. All-reduces between processes are those of JAX's CPU
backend over TCP on this machine.
"""

import argparse
import json
import os
import socket
import subprocess
import sys

import numpy as np

from popcd.processor import ONE_THREAD

WORKER = """
import os, sys, time
number, n, port, visible, hidden, batch = map(int, sys.argv[1:7])
import numpy as np, popcd
import popcd.runs.distributed as distributed
if n > 1:
    distributed.join(f"127.0.0.1:{port}", n, number, 60, late=sys.exit)
from popcd.chunks import prepare
from popcd.devices import device_mesh
rows = np.random.default_rng(0).integers(0, 2, (4 * batch * n, visible)).astype(np.uint8)
estimator = {"cd": popcd.cd, "pop-cd": popcd.pop_cd}[sys.argv[7]]()
words = {"batch_size": batch * n, "learning_rate": 0.01, "mesh": device_mesh()}
training = prepare(popcd.RBM.create(visible, hidden), rows, estimator, **words)
state, updates, times = training.first, 5, []
for chunk in range(1, 9):
    start = time.perf_counter()
    state, _ = training.rows.advance(state, chunk * updates)
    np.asarray(state.rbm.weights)
    times.append(time.perf_counter() - start)
if number == 0:
    print("rate", batch * n * updates / float(np.median(times[1:])))
"""


def rate(n: int, words: argparse.Namespace, estimator: str) -> float:
    """Particles per second of all processes together."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    sizes = [str(x) for x in (n, port, words.visible, words.hidden, words.batch)]
    started = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(number), *sizes, estimator],
            env=os.environ | ONE_THREAD | {"JAX_PLATFORMS": "cpu"},
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(n)
    ]
    said = [process.communicate()[0] for process in started]
    return float(next(line.split()[1] for line in said[0].splitlines() if line.startswith("rate")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("visible", 784), ("hidden", 500), ("batch", 500), ("processes", 2), ("rounds", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    words = parser.parse_args()
    for estimator in ("cd", "pop-cd"):
        pairs = [(rate(1, words, estimator), rate(words.processes, words, estimator)) for _ in range(words.rounds)]
        ratios = [many / one for one, many in pairs]
        result = {"estimator": estimator, "visible": words.visible, "hidden": words.hidden, "batch per process": words.batch}
        result |= {"processes": words.processes, "particles per second": [[round(x) for x in pair] for pair in pairs]}
        print(json.dumps(result | {"ratio": float(np.median(ratios)), "range": [min(ratios), max(ratios)]}), flush=True)


if __name__ == "__main__":
    main()
