"""What lies between the arguments of the scikit-learn estimator and training."""

import math
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import scipy.sparse
from jax import Array

from popcd.checks import one_of
from popcd.chunks import Training, prepared
from popcd.estimators import BUILDERS, Estimator
from popcd.gradient import Offsets
from popcd.rbm import RBM
from popcd.runs.configuration import KNOWN
from popcd.updates import TrainState

_CHAINS = {"pcd": "n_chains", "pt": "n_ladders", "pop-cd": "n_particles"}  # what n_chains is called in each
FLOATS = (np.float64, np.float32)  # what scikit-learn hands over
_BRIEF = 2.5e9  # multiplications of a chain's product over all updates: with fewer, compiling sooner saves more than it costs


def named_estimator(estimator: Any, k: int, n_chains: int | None, batch_size: int) -> Estimator:
    """The estimator of these words; chains that persist are as many as the batch size, whatever the batch of an update."""
    if isinstance(estimator, Estimator):
        if k != 1 or n_chains is not None:
            raise ValueError(f"k and n_chains are for an estimator given by name; {estimator} has settings of its own")
        return estimator
    name = one_of("estimator", estimator, tuple(BUILDERS))
    settings: dict[str, Any] = {}
    if "k" in KNOWN[name]:
        settings["k"] = k
    elif k != 1:
        raise ValueError(f"estimator {name!r} has no k, got {k}")
    if n_chains is not None and name not in _CHAINS:
        raise ValueError(f"estimator {name!r} has no n_chains, got {n_chains}")
    if n_chains is not None or name in ("pcd", "pt"):
        settings[_CHAINS[name]] = batch_size if n_chains is None else n_chains
    return BUILDERS[name](**settings)


def is_brief(estimator: Estimator, updates: int, batch_size: int, rbm: RBM) -> bool:
    """Whether so few updates lie ahead that they should compile soon, to a slower program; a `partial_fit` is one."""
    settings = dict(estimator.settings)
    sweeps = math.prod(settings.get(word) or 1 for word in ("k", "sweeps", "n_temperatures"))
    chains = sweeps * max(int(batch_size), estimator.n_starts or 0)
    return estimator.sampled and int(updates) * chains * rbm.n_visible * rbm.n_hidden <= _BRIEF


def _scaled(downhill: Any, rate: Array, _: Any = None) -> tuple[Any, Array]:
    return jax.tree.map(lambda leaf: -rate * leaf, downhill), rate


# Gradient ascent whose rate is its state: fits that differ in their rates share one compiled program
_ASCENT = optax.GradientTransformation(lambda rbm: jax.device_put(np.zeros((), rbm.dtype)), _scaled)


def rated_training(
    rbm: RBM, rows: np.ndarray, estimator: Estimator, rate: float, updates: int, batch_size: int, centered: bool, seed: int
) -> Training:
    """The training of checked rows by so many updates of gradient ascent at this rate."""
    brief = is_brief(estimator, updates, batch_size, rbm)
    training = prepared(rbm, rows, estimator, _ASCENT, batch_size, centered, seed, brief=brief)
    return training._replace(first=training.first._replace(optimizer=jax.device_put(np.asarray(rate, rbm.dtype))))


def dense(matrix: Any) -> np.ndarray:
    """A matrix, sparse or not, as an array."""
    return matrix.toarray() if scipy.sparse.issparse(matrix) else matrix


def checked_rows(matrix: Any) -> np.ndarray:
    """Rows to train on: `uint8` where all are 0 or 1, else `float32`, with a warning where they are no probabilities."""
    rows = dense(matrix)
    if bool(np.all((rows == 0) | (rows == 1))):
        return rows.astype(np.uint8)
    if rows.min() < 0 or rows.max() > 1:
        warnings.warn(
            f"X has values from {rows.min():g} to {rows.max():g}: an RBM takes them as probabilities, from 0 to 1. Scale them, "
            "for example with sklearn.preprocessing.MinMaxScaler, or binarise them",
            UserWarning,
            stacklevel=4,
        )
    return rows.astype(np.float32)


def drawn_seed(chance: np.random.RandomState) -> int:
    """A seed for JAX out of scikit-learn's source of randomness."""
    return int(chance.randint(np.iinfo(np.int32).max))


def plain_state(state: TrainState) -> dict[str, Any]:
    """What the next update needs beside the machine, as plain arrays; the learning rate is a setting."""
    chains = [np.asarray(leaf) for leaf in jax.tree.leaves(state.estimator)]
    return {"step": int(state.step), "chains": chains, "offsets": [np.asarray(leaf) for leaf in state.offsets]}


def continued(fresh: TrainState, kept: dict[str, Any], estimator: Estimator) -> TrainState:
    """A fresh state that goes on from a plain one; chains of another kind or another asked-for number begin anew."""
    begun, structure = jax.tree.flatten(fresh.estimator)
    first = 0 if estimator.n_starts else 1  # where no number is asked for, the chains stay as many as they were
    same = [leaf.shape[first:] for leaf in begun] == [leaf.shape[first:] for leaf in kept["chains"]]
    chains = jax.tree.unflatten(structure, map(jnp.asarray, kept["chains"])) if same else fresh.estimator
    offsets = Offsets(*map(jnp.asarray, kept["offsets"])) if kept["offsets"] else fresh.offsets
    return fresh._replace(step=jnp.int32(kept["step"]), estimator=chains, offsets=offsets)


def chain_states(state: TrainState, rows: np.ndarray) -> np.ndarray:
    """Visible states of the chains at beta = 1, or `rows` where there are no chains."""
    visible = np.asarray(getattr(state.estimator, "visible", rows), np.float32)
    return visible[:, -1] if visible.ndim == 3 else visible
