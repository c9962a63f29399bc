"""Where the time of an update goes: the kernels of the compiled program, as JAX's profiler saw them.

    NPROC=1 python benchmarks/kernels.py [--visible 784] [--hidden 16] [--batch 500] [--estimator cd] [--updates 200]

Median microseconds of every kernel that takes at least a hundredth of the update, with the shape of what it makes. One thread
(NPROC=1) gives times that add up; with more, a kernel runs on several and is counted on each.
"""

import argparse
import glob
import re
import tempfile
from collections import defaultdict

import jax
import numpy as np

import popcd
from popcd.benchmark import Size, random_rows
from popcd.chunks import prepare
from popcd.estimators import BUILDERS
from popcd.updates import advance


def durations(folder):
    """Microseconds of every run of every kernel that the profiler wrote down."""
    [found] = glob.glob(f"{folder}/**/*.xplane.pb", recursive=True)
    times = defaultdict(list)
    for plane in jax.profiler.ProfileData.from_file(found).planes:
        for line in plane.lines:
            if "XLA" in line.name:
                for event in line.events:
                    times[event.name].append(event.duration_ns / 1e3)
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("visible", 784), ("hidden", 16), ("batch", 500), ("updates", 200)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--estimator", choices=("cd", "pcd", "pop-cd"), default="cd")
    words = parser.parse_args()

    size, n = Size(words.visible, words.hidden, words.batch), words.updates
    machine = popcd.RBM.create(size.visible, size.hidden)
    training = prepare(machine, random_rows(size), BUILDERS[words.estimator](), batch_size=size.batch, learning_rate=0.01)
    rows, first = training.rows, training.first
    program = advance.lower(first, 2, 0, rows._read(0, 2), rows._keys(0, 2), rows._plan).compile().as_text()
    shapes = dict(re.findall(r"%([\w.-]+) = (\S+?)(?:\{\S*)? ", program))
    rows.advance(first, n)
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            jax.block_until_ready(rows.advance(first, n)[0].rbm)
        times = durations(folder)
    times = {name: found for name, found in times.items() if len(found) >= n and name in shapes}
    each = {name: float(np.median(found)) * len(found) / n for name, found in times.items()}
    total = sum(each.values())
    print(f"{words.estimator}, {size}: {len(each)} kernels of {total:,.1f} us in all")
    for name, microseconds in sorted(each.items(), key=lambda pair: -pair[1]):
        if microseconds >= total / 100:
            print(f"{microseconds:10.1f}  {name:32} {shapes[name]}")


if __name__ == "__main__":
    main()
