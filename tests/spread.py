"""A few updates with every estimator, and AIS, over all devices that JAX sees; for processes of their own.

python tests/spread.py OUT [--coordinator HOST:PORT --processes N --number I] [--hidden-shards M]
"""

import argparse
import json
import re
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

import popcd
import popcd.runs.distributed as distributed
from popcd.chunks import prepare
from popcd.devices import device_mesh, on_host, spread, using
from popcd.evaluation.ais import anneal, base_samples, linear_schedule
from popcd.updates import advance

VISIBLE, HIDDEN, BATCH, UPDATES, RATE, STEPS = 24, 12, 64, 3, 0.1, 100
ESTIMATORS = {
    "cd": popcd.cd(),
    "cd-3": popcd.cd(3),
    "pcd": popcd.pcd(),
    "pcd, 128 chains": popcd.pcd(n_chains=128),
    "pt": popcd.pt(n_temperatures=4),
    "pop-cd": popcd.pop_cd(),
    "pop-cd, 128 particles": popcd.pop_cd(n_particles=128),
    "joint": popcd.pop_cd(proposal="joint"),
    "leave-one-out": popcd.pop_cd(normalizer="leave-one-out"),
    "mixture": popcd.pop_cd(proposal="mixture"),
    "exact": popcd.exact(),
}
NEEDED = ("cd", "pcd", "pt", "pop-cd", "mixture")


def rows() -> np.ndarray:
    return (np.random.default_rng(0).random((200, VISIBLE)) < 0.4).astype(np.uint8)


def trained(name: str, mesh: Mesh | None, updates: int = UPDATES) -> dict[str, np.ndarray]:
    """Parameters after a few updates, the chains after the first, and what was measured; both chunks share a window."""
    start = popcd.RBM.create(VISIBLE, HIDDEN, seed=1)
    training = prepare(start, rows(), ESTIMATORS[name], batch_size=BATCH, learning_rate=RATE, mesh=mesh)
    first, _ = training.rows.advance(training.first, 1, updates)
    last, sums = training.rows.advance(first, updates, updates)
    chains = [np.asarray(leaf) for leaf in jax.tree.leaves(on_host(first.estimator))]
    found = {"weights": last.rbm.weights, "visible": last.rbm.visible_bias, "hidden": last.rbm.hidden_bias}
    found = {k: np.asarray(v) for k, v in on_host(found).items()} | {"norm": sums["gradient_norm"]}
    return found | {f"chains {i}": leaf for i, leaf in enumerate(chains)}


def resumed(first: int, then: int) -> np.ndarray:
    """Weights after twice as many updates, the second half on another number of devices."""
    start, words = popcd.RBM.create(VISIBLE, HIDDEN, seed=1), {"batch_size": BATCH, "learning_rate": RATE}
    half = popcd.train(start, rows(), popcd.pcd(), iterations=UPDATES, devices=first, **words)
    return popcd.train(start, rows(), popcd.pcd(), iterations=2 * UPDATES, devices=then, resume=half.state, **words).rbm.weights


def annealed(mesh: Mesh | None) -> np.ndarray:
    """Log-weights of AIS chains."""
    rbm, base = popcd.RBM.create(VISIBLE, HIDDEN, seed=1), np.zeros(VISIBLE)
    with using(mesh):
        start = base_samples(jax.random.key(0), rbm, base, BATCH)
        return anneal(jax.random.key(1), rbm, start, linear_schedule(STEPS), base)


def places(mesh: Mesh) -> dict[str, int]:
    """Over how many devices chains and ladders lie."""
    training = prepare(popcd.RBM.create(VISIBLE, HIDDEN), rows(), popcd.pcd(), batch_size=BATCH, mesh=mesh)
    chains = {"begun": training.first, "trained": training.rows.advance(training.first, 2)[0]}
    found = {name: state.estimator.visible for name, state in chains.items()}
    found |= {f"{n} rows": spread(jnp.zeros((n, VISIBLE))) for n in (BATCH, 12)}
    return {name: len({str(shard.index) for shard in array.addressable_shards}) for name, array in found.items()}


def collectives(name: str, mesh: Mesh) -> list[tuple[str, list[int]]]:
    """The operations between devices in the compiled loop of updates, with the sizes of what they move."""
    start = popcd.RBM.create(VISIBLE, HIDDEN)
    training = prepare(start, rows(), ESTIMATORS[name], batch_size=BATCH, learning_rate=RATE, mesh=mesh)
    source = training.rows
    with using(mesh):
        program = advance.lower(
            training.first, UPDATES, 0, source._read(0, UPDATES), source._keys(0, UPDATES), source._plan
        ).compile()
    words = r"= (.*?) (all-reduce|all-gather|all-to-all|collective-permute|reduce-scatter)(?:-start)?\("
    found = []
    for moved, operation in re.findall(words, program.as_text()):
        shapes = re.findall(r"\w+\[([\d,]*)\]", moved)
        found.append((operation, [int(np.prod([int(n) for n in shape.split(",") if n])) for shape in shapes]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--coordinator")
    parser.add_argument("--processes", type=int)
    parser.add_argument("--number", type=int)
    parser.add_argument("--hidden-shards", type=int, default=1)
    words = parser.parse_args()
    if words.coordinator:
        distributed.join(words.coordinator, words.processes, words.number, 60, late=sys.exit)
        every = {None: device_mesh()}
    else:
        every = {f"{n} {parts}": device_mesh(n, parts) for n, parts in ((2, 1), (4, 1), (8, 1), (8, 4))}
    result = {}
    for label, mesh in every.items():
        names = ESTIMATORS if label == "8 1" else NEEDED
        result |= {f"{label}/{name}/{part}": array for name in names for part, array in trained(name, mesh).items()}
        result[f"{label}/ais"] = annealed(mesh)
    if not words.coordinator:
        result["8 to 2"], result["1 to 4"] = resumed(8, 2), resumed(1, 4)
    if distributed.leading():
        np.savez(words.out, **result)
    if not words.coordinator:
        found = {name: collectives(name, every["8 1"]) for name in ESTIMATORS}
        words.out.with_suffix(".json").write_text(json.dumps({"sent": found, "places": places(every["8 1"])}))


if __name__ == "__main__":
    main()
