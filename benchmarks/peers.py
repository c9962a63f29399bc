"""Updates of popcd beside those of its peers, as multiples of the five bare matrix products, all in one run.

    python -m venv peers
    peers/bin/pip install . -r benchmarks/requirements-peers.txt
    peers/bin/python benchmarks/peers.py [--rounds 7] [--json]

The peers have an environment of their own; popcd does not depend on them. Each gets its rows in the form it likes best,
float32 in memory, and takes what it does itself: scikit-learn one `_fit` per batch in the order of the rows, rbms a random
batch and a plain (not centred) gradient as in its training loop. Exact log Z, AIS and parallel tempering follow.
"""

import argparse
import json
import sys

import jax
import jax.numpy as jnp
import numpy as np
import torch
from rbms.bernoulli_bernoulli.classes import BBRBM
from rbms.training.pcd import fit_batch_pcd
from sklearn.neural_network import BernoulliRBM

import evaluation
import popcd
from popcd.benchmark import SIZES, Size, Work, bare_products, environment, interleaved, random_rows, ratios, table, updates

RATE = 0.01


def scikit_learn(rows: np.ndarray, size: Size) -> Work:
    machine = BernoulliRBM(size.hidden, batch_size=size.batch, learning_rate=RATE, n_iter=1, random_state=0)
    machine.fit(rows)
    rng, batches = np.random.RandomState(0), rows.reshape(-1, size.batch, size.visible)

    def work(n: int) -> None:
        for i in range(n):
            machine._fit(batches[i % len(batches)], rng)

    return work


def dsysdml(rows: np.ndarray, size: Size) -> Work:
    data, weights = torch.from_numpy(rows), torch.ones(len(rows))
    machine = BBRBM(0.01 * torch.randn(size.visible, size.hidden), torch.zeros(size.visible), torch.zeros(size.hidden))
    for parameter in machine.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer = torch.optim.SGD(machine.parameters(), lr=RATE, maximize=True)

    @torch.no_grad()
    def work(n: int) -> None:
        chains = machine.init_chains(size.batch)
        for _ in range(n):
            chosen = torch.randperm(len(data))[: size.batch]
            chains, _ = fit_batch_pcd((data[chosen], weights[chosen]), chains, machine, 1, 1.0, centered=False)
            optimizer.step()

    return work


def plain_torch(rows: np.ndarray, size: Size) -> Work:
    """CD-1 as one writes it in PyTorch."""
    batches = torch.from_numpy(rows).split(size.batch)
    w, b, c = 0.01 * torch.randn(size.visible, size.hidden), torch.zeros(size.visible), torch.zeros(size.hidden)

    @torch.no_grad()
    def work(n: int) -> None:
        for i in range(n):
            v = batches[i % len(batches)]
            h = torch.sigmoid(torch.addmm(c, v, w))
            v1 = torch.bernoulli(torch.sigmoid(torch.addmm(b, torch.bernoulli(h), w.T)))
            h1 = torch.sigmoid(torch.addmm(c, v1, w))
            rate = RATE / size.batch
            w.addmm_(v.T, h, alpha=rate).addmm_(v1.T, h1, alpha=-rate)
            b.add_(v.sum(0) - v1.sum(0), alpha=rate)
            c.add_(h.sum(0) - h1.sum(0), alpha=rate)

    return work


def plain_jax(rows: np.ndarray, size: Size) -> Work:
    """CD-1 as one writes it in JAX, with `jax.random` and the loop compiled."""
    data = jnp.asarray(rows).reshape(-1, size.batch, size.visible)
    start = 0.01 * jax.random.normal(jax.random.key(0), (size.visible, size.hidden)), *map(jnp.zeros, size[:2])

    def update(i, machine):
        w, b, c = machine
        first, second = jax.random.split(jax.random.fold_in(jax.random.key(1), i))
        v = data[i % len(data)]
        h = jax.nn.sigmoid(v @ w + c)
        states = jax.random.bernoulli(first, h).astype(v.dtype)
        v1 = jax.random.bernoulli(second, jax.nn.sigmoid(states @ w.T + b)).astype(v.dtype)
        h1 = jax.nn.sigmoid(v1 @ w + c)
        change = v.T @ h - v1.T @ h1, v.sum(0) - v1.sum(0), h.sum(0) - h1.sum(0)
        return jax.tree.map(lambda old, d: old + RATE / size.batch * d, machine, change)

    run = jax.jit(lambda n: jax.lax.fori_loop(0, n, update, start))
    return lambda n: jax.block_until_ready(run(n))


def compare(size: Size, rounds: int) -> dict:
    rows = random_rows(size)
    works = {"bare": bare_products(size)}
    ours = {"popcd CD-1": popcd.cd(), "popcd PCD-1": popcd.pcd(), "popcd pop-CD-1": popcd.pop_cd()}
    works |= {name: updates(estimator, rows, size) for name, estimator in ours.items()}
    makers = {
        "scikit-learn PCD-1": scikit_learn,
        "rbms PCD-1": dsysdml,
        "plain torch CD-1": plain_torch,
        "plain JAX CD-1": plain_jax,
    }
    works |= {name: make(rows.astype(np.float32), size) for name, make in makers.items()}
    return size._asdict() | ratios(interleaved(works, rounds))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    words = parser.parse_args()
    sizes = []
    for size in SIZES:
        print(size, file=sys.stderr)
        sizes.append(compare(size, words.rounds))
    result = {"rounds": words.rounds, "sizes": sizes} | environment("torch", "rbms", "scikit-learn")
    result["evaluation"] = evaluation.every_ratio()
    if words.json:
        print(json.dumps(result))
        return
    print(table(result) + "\n\nothers as multiples of their own bare products")
    for name, found in result["evaluation"].items():
        print(f"{name:<58}{found['ratio']:>6.2f} ({found['least']:.2f}-{found['largest']:.2f})")


if __name__ == "__main__":
    main()
