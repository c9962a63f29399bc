"""Trials of the paper's small machines: single-threaded processes against one process with all cores against `vmap`.

`python benchmarks/trials.py` prints one JSON object: microseconds per update and trial on this machine as a whole, medians of
rounds in which the ways take turns.
"""

import argparse
import json
import os
import subprocess
import sys
import time

import numpy as np

from popcd.processor import ONE_THREAD

ROUNDS = 5
CASES = {
    "bars-and-stripes, CD-1": ("bars-and-stripes", "cd", 2_000),
    "bars-and-stripes, PT": ("bars-and-stripes", "pt", 200),
    "artificial-modes, CD-1": ("artificial-modes", "cd", 500),
    "artificial-modes, PT": ("artificial-modes", "pt", 20),
    "mnist, 16 hidden, CD-1": ("mnist", "cd", 50),
}


def worker(case: str, trials: int) -> None:
    """Times `trials` trials side by side whenever a line comes in; one line with the seconds goes out."""
    import jax
    import jax.numpy as jnp
    import optax

    from popcd.epochs import Epochs
    from popcd.experiments.jobs import estimator_of, training_rows
    from popcd.experiments.paper import BATCH, Algorithm
    from popcd.gradient import Offsets
    from popcd.prng import host_keys, host_stream
    from popcd.rbm import RBM
    from popcd.updates import Gathered, Plan, TrainState, advance, init

    problem, word, updates = CASES[case]
    batch, data = BATCH[problem], jnp.asarray(training_rows(problem))
    plan = Plan(estimator_of(Algorithm(word), batch), optax.sgd(0.1), batch, False)

    def trial(seed: int):
        rbm, line = (
            RBM.create(data.shape[1], 16, seed=seed),
            Epochs(seed, len(data), batch < len(data)).rows(0, updates * batch),
        )
        start = init(host_stream(seed, "init"), rbm, data[: plan.n_starts], Offsets(data.mean(axis=0), np.full(16, 0.5)), plan)
        return start, jnp.asarray(line), jnp.asarray(host_keys(seed, "chain", np.arange(updates)))

    def many(state: TrainState, numbers, keys):
        return advance(state, updates, 0, Gathered(numbers, data), keys, plan)

    if trials == 1:
        parts = trial(0)
    else:
        # Step and visible offsets are the same in all trials: left out of the batching, the loop stays a plain one
        state, numbers, keys = jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(trial, range(trials)))
        state = state._replace(step=jnp.int32(0), offsets=Offsets(state.offsets.visible[0], state.offsets.hidden))
        form = TrainState(None, 0, 0, 0, Offsets(None, 0))
        parts, many = (state, numbers, keys), jax.jit(jax.vmap(many, (form, 0, 0), (form, 0)))

    def run():
        return many(*parts)

    jax.block_until_ready(run())
    print("ready", flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        jax.block_until_ready(run())
        print(time.perf_counter() - start, flush=True)


def start(case: str, trials: int, environment: dict[str, str]) -> subprocess.Popen:
    command = [sys.executable, __file__, "--case", case, "--trials", str(trials)]
    process = subprocess.Popen(
        command, env=os.environ | environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    assert process.stdout.readline() == "ready\n"
    return process


def measure(group: list[subprocess.Popen]) -> float:
    """Seconds until all processes of a group, started together, are through."""
    for process in group:
        process.stdin.write("go\n")
    return max(float(process.stdout.readline()) for process in group)


def compare(case: str) -> dict[str, float]:
    cores, updates = os.cpu_count() or 1, CASES[case][2]
    ways = {
        f"{cores} processes of one thread": ([start(case, 1, ONE_THREAD) for _ in range(cores)], cores),
        "one process, all threads": ([start(case, 1, {})], 1),
        "vmap of 5, all threads": ([start(case, 5, {})], 5),
        f"{cores} processes of one thread, vmap of 5 in each": ([start(case, 5, ONE_THREAD) for _ in range(cores)], 5 * cores),
    }
    times = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, (group, trials) in ways.items():
            times[name].append(1e6 * measure(group) / updates / trials)
    for group, _ in ways.values():
        for process in group:
            process.stdin.close()
            process.wait()
    return {name: round(float(np.median(seconds)), 1) for name, seconds in times.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", choices=CASES)
    parser.add_argument("--trials", type=int, default=1)
    given = parser.parse_args()
    if given.case:
        worker(given.case, given.trials)
    else:
        print(json.dumps({"microseconds per update and trial": {case: compare(case) for case in CASES}}, indent=2))
