"""One population over many devices: rows and particles are spread over them, parameters are everywhere.

The program is the one of a single device; XLA divides it. Random bits depend on the place of a particle in the whole
population, and weights are normalised over all of it, so a run does not depend on the number of devices beyond the order of
float sums.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax
import numpy as np
from jax import Array
from jax.experimental import multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from popcd.checks import positive_int

PARTICLES, HIDDEN = "particles", "hidden"


def device_mesh(devices: int | None = None, hidden_shards: int = 1) -> Mesh | None:
    """The first `devices` devices, or all, of all processes; None where that is one.

    `hidden_shards` of them share one copy of the parameters, each with its part of the hidden units.

    >>> device_mesh(devices=1) is None
    True
    """
    every = jax.devices()
    n = len(every) if devices is None else positive_int("devices", devices)
    if n > len(every):
        raise ValueError(f"devices={n}, but JAX sees {len(every)}")
    if n % positive_int("hidden_shards", hidden_shards):
        raise ValueError(f"hidden_shards={hidden_shards} must divide the number of devices, {n}")
    if n == 1:
        return None
    shape, names = (n // hidden_shards, hidden_shards), (PARTICLES, HIDDEN)
    return jax.make_mesh(shape, names, axis_types=(AxisType.Auto,) * 2, devices=every[:n])


def using(mesh: Mesh | None) -> AbstractContextManager[Any]:
    """Programs that are compiled inside know of the mesh."""
    return nullcontext() if mesh is None else jax.set_mesh(mesh)


def shards() -> int:
    """Over how many devices particles are spread in the program that is being compiled."""
    return dict(jax.sharding.get_abstract_mesh().shape).get(PARTICLES, 1)


def check_sizes(mesh: Mesh, n_hidden: int, batch_size: int, n_starts: int | None) -> None:
    """Refuse what cannot be spread evenly; rows are drawn in pairs, so each device takes an even number of them."""
    n, parts = mesh.shape[PARTICLES], mesh.shape[HIDDEN]
    for name, size in (("batch_size", batch_size), ("the number of particles, chains or ladders", n_starts)):
        if size is not None and size % (2 * n):
            below = size - size % (2 * n)
            near = f"{below} or {below + 2 * n}" if below else f"{2 * n}"
            raise ValueError(
                f"{name} cannot be spread over {n} devices: {size} is no multiple of {2 * n}; take {near}, or fewer devices"
            )
    if n_hidden % parts:
        raise ValueError(f"{n_hidden} hidden units cannot be divided into hidden_shards={parts} equal parts")


def placed(value: np.ndarray | Array, like: Any) -> Array:
    """A value that every process has, laid out as `like` is."""
    sharding = getattr(like, "sharding", None)
    if not isinstance(sharding, NamedSharding):
        return jax.numpy.asarray(value)
    return _divided(value, sharding)


def _divided(value: np.ndarray | Array, sharding: NamedSharding) -> Array:
    whole = np.asarray(value)
    return jax.make_array_from_callback(whole.shape, sharding, lambda index: whole[index])


def constrained(tree: Any, spec: Callable[[Any], PartitionSpec]) -> Any:
    """`tree` with the layout that `spec` gives each leaf, where a mesh is in use."""
    if jax.sharding.get_abstract_mesh().empty:
        return tree
    return jax.tree.map(lambda leaf: jax.lax.with_sharding_constraint(leaf, spec(leaf)), tree)


def on_host(tree: Any) -> Any:
    """NumPy arrays of what lies on several devices; every process must ask. What lies on one stays as it is."""

    def fetch(leaf: Any) -> Any:
        if not isinstance(leaf, Array) or len(leaf.sharding.device_set) == 1:
            return leaf
        if leaf.is_fully_addressable or leaf.is_fully_replicated:
            return np.asarray(leaf)
        return np.asarray(multihost_utils.process_allgather(leaf, tiled=True))

    return jax.tree.map(fetch, tree)


def spread(rows: Array) -> Array:
    """Rows over the devices of the mesh in use, or over as many of this process as they can be divided between, in pairs."""
    mesh, every = jax.sharding.get_mesh(), jax.local_devices()
    if mesh.empty:
        n = max((d for d in range(1, len(every) + 1) if len(rows) % (2 * d) == 0), default=1)
        mesh = jax.make_mesh((n,), (PARTICLES,), axis_types=(AxisType.Auto,), devices=every[:n])
    if mesh.size == 1 or len(rows) % (2 * mesh.shape[PARTICLES]):
        return rows
    return _divided(rows, NamedSharding(mesh, PartitionSpec(PARTICLES)))


def beside(tree: Any, rows: Array) -> Any:
    """Parameters wherever `rows` were spread to."""
    if not isinstance(rows.sharding, NamedSharding):
        return tree
    return jax.device_put(tree, NamedSharding(rows.sharding.mesh, PartitionSpec()))
