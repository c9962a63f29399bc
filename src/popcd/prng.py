"""Counter-based random bits that fuse with the code around them.

`jax.random` runs the rounds of Threefry-2x32 (Salmon et al. 2011) in a rolled loop on CPU, which writes every
round to memory. Here the twenty rounds are unrolled `uint32` arithmetic, so XLA fuses them with the
sigmoid and the comparison that follow. The bits are those of `jax.random.bits` and `jax.random.fold_in`.
"""

import functools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY, _WORD = 0x1BD11BDA, 0xFFFFFFFF
_KIND = "threefry2x32"  # whatever JAX was told to use by default
_STREAMS = (
    *("create", "init", "data", "chain", "anneal", "sample", "log_partition", "gradient_error", "truth"),
    *("gibbs", "complete", "mixing", "population"),
)


def _four_rounds(x0: Any, x1: Any, rotations: tuple[int, ...]) -> tuple[Any, Any]:
    for rotation in rotations:
        x0 = x0 + x1
        x1 = ((x1 << rotation) | (x1 >> (32 - rotation))) ^ x0
    return x0, x1


_four_rounds_jitted = jax.jit(_four_rounds, static_argnames="rotations")  # traced once for a shape, not in every group


def _threefry(key: Any, high: Any, low: Any, four_rounds: Any = _four_rounds_jitted) -> tuple[Any, Any]:
    """Encrypt the counter (high, low) with the two words of a key: Threefry-2x32, 20 rounds, on the device or in NumPy."""
    k0, k1 = key[0], key[1]
    schedule = (k0, k1, k0 ^ k1 ^ np.uint32(_PARITY))
    x0, x1 = high + k0, low + k1
    for group in range(5):
        x0, x1 = four_rounds(x0, x1, rotations=_ROTATIONS[group % 2])
        x0 = x0 + schedule[(group + 1) % 3]
        x1 = x1 + schedule[(group + 2) % 3] + np.uint32(group + 1)
    return x0, x1


def root_key(seed: int) -> Array:
    """The key of a seed (uint64), where all streams of a run begin; below 2**32 it equals `jax.random.key`.

    Made on the host: `jax.random.key` would compile a program of its own.

    >>> import jax
    >>> bool(root_key(7) == jax.random.key(7))
    True
    """
    return jax.random.wrap_key_data(jax.device_put(_root_words(seed)), impl=_KIND)


def _root_words(seed: int) -> np.ndarray:
    return np.array([int(seed) >> 32 & _WORD, int(seed) & _WORD], np.uint32)


def fold_in(key: Array, number: int | np.uint32 | Array) -> Array:
    """The key numbered `number` (uint32) under `key`; equals `jax.random.fold_in`.

    >>> import jax
    >>> key = jax.random.key(0)
    >>> bool((fold_in(key, 7) == jax.random.fold_in(key, 7)).all())
    True
    """
    words = jnp.stack(_threefry(jax.random.key_data(key), jnp.uint32(0), jnp.asarray(number).astype(jnp.uint32)))
    return _key(words)


def _key(words: Array) -> Array:
    # The barrier keeps XLA from making the key again inside every loop over the bits drawn with it.
    return jax.random.wrap_key_data(jax.lax.optimization_barrier(words), impl=_KIND)


def stream(key: Array, name: str) -> Array:
    """The key of a named stream: each use of a seed begins with its own, so that no two of them share bits.

    >>> import jax
    >>> key = jax.random.key(0)
    >>> bool((stream(key, "data") == stream(key, "chain")).all())
    False
    """
    # far from the small numbers that steps, sweeps and `jax.random.split` use under the same key
    return fold_in(key, _place(name))


def _place(name: str) -> np.uint32:
    return np.uint32(2**31 + _STREAMS.index(name))


def host_keys(seed: int, name: str, numbers: np.ndarray) -> np.ndarray:
    """The words of the keys with these numbers (uint32) in a named stream of a seed, numbers x 2, made on the host.

    >>> key = fold_in(stream(root_key(5), "chain"), 3)
    >>> bool(key_at(host_keys(5, "chain", np.arange(2, 9)), 1) == key)
    True
    """
    counters = np.asarray(numbers).astype(np.uint32)
    return np.stack(_threefry(_stream_words(seed, name), np.zeros_like(counters), counters, _four_rounds), axis=-1)


def host_stream(seed: int, name: str) -> Array:
    """The key of a named stream of a seed, made on the host.

    >>> bool(host_stream(5, "init") == stream(root_key(5), "init"))
    True
    """
    return jax.random.wrap_key_data(jax.device_put(np.concatenate(_stream_words(seed, name))), impl=_KIND)


@functools.lru_cache
def _stream_words(seed: int, name: str) -> tuple[np.ndarray, np.ndarray]:
    return _threefry(_root_words(seed), np.zeros(1, np.uint32), np.array([_place(name)]), _four_rounds)


def key_at(words: ArrayLike, place: int | Array) -> Array:
    """The key at a place among those of `host_keys`."""
    return _key(jax.lax.dynamic_index_in_dim(jnp.asarray(words), place, keepdims=False))


def host_generator(seed: int, name: str, number: int = 0) -> np.random.Generator:
    """The same idea on the host: generator `number` (uint32) of a named stream, by Philox with the seed in its key.

    >>> host_generator(0, "data").permutation(5).tolist() == host_generator(0, "data", 1).permutation(5).tolist()
    False
    """
    key = np.array([seed % 2**64, (_STREAMS.index(name) << 32) + number], np.uint64)
    return np.random.Generator(np.random.Philox(key=key))


def bits(key: Array, shape: Sequence[int], site: int | Array = 0) -> Array:
    """Random `uint32` words: word i encrypts the counter (site, i). At site 0 they are those of `jax.random.bits(key, shape)`.

    Parameters
    ----------
    key : typed PRNG key (`jax.random.key`).
    shape : shape of the result, fewer than 2**32 words.
    site : each gives words of its own under the same key, at less cost than another key.

    Examples
    --------
    >>> import jax
    >>> key = jax.random.key(0)
    >>> bool((bits(key, (3, 5)) == jax.random.bits(key, (3, 5))).all())
    True
    """
    shape = tuple(shape)
    if math.prod(shape) >= 2**32:
        raise ValueError(f"one key gives fewer than 2**32 words; shape {shape} asks for {math.prod(shape)}")
    x0, x1 = _threefry(jax.random.key_data(key), jnp.full(shape, jnp.asarray(site).astype(jnp.uint32)), _index(shape))
    return x0 ^ x1


def _index(shape: tuple[int, ...]) -> Array:
    """The place of each element in an array of this shape, row by row."""
    index = jnp.zeros(shape, jnp.uint32)
    for axis in range(len(shape)):
        index = index + jax.lax.broadcasted_iota(jnp.uint32, shape, axis) * jnp.uint32(math.prod(shape[axis + 1 :]))
    return index


def uniform(key: Array, shape: Sequence[int], dtype: Any = jnp.float32, site: int | Array = 0) -> Array:
    """Midpoints of 2**31 equal cells of [0, 1], each as likely: never 0, fine-grained near it, rounded to 1 near 1.

    >>> import jax
    >>> bool((uniform(jax.random.key(0), (1000,)) > 0).all())
    True
    """
    return _midpoints(bits(key, shape, site), dtype)


def _midpoints(words: Array, dtype: Any) -> Array:
    return (words >> 1).astype(jnp.int32).astype(dtype) * 2.0**-31 + 2.0**-32


def bernoulli(key: Array, logits: Array, site: int | Array = 0) -> Array:
    """Draw 0 or 1 with P(1) = 1 / (1 + exp(-logits)).

    The likelier value is flipped with probability z / (1 + z), z = exp(-abs(logits)). Both tails are therefore compared near
    zero, where a float is finest: each probability is met to 2**-32, also those close to 1. Rows are drawn in pairs, the
    first of a pair with the first word of a Threefry block, the second with the second: block i encrypts the counter (site, i).

    Parameters
    ----------
    key : typed PRNG key.
    logits : any shape, floating.
    site : as in `bits`.

    Returns
    -------
    Zeros and ones in the shape and dtype of `logits`.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> bernoulli(jax.random.key(0), jnp.array([-40.0, 40.0])).tolist()
    [0.0, 1.0]
    """
    n_units = logits.shape[-1] if logits.ndim else 1
    rows = logits.reshape(-1, n_units)
    # Of all rows at once: who sums softplus over the same logits shares the exponentials
    z = jnp.exp(-jnp.abs(rows))
    logits_of_each, z_of_each = _pairs(rows), _pairs(z)
    counter = _index(z_of_each[0].shape)
    words = _threefry(jax.random.key_data(key), jnp.full(counter.shape, jnp.asarray(site).astype(jnp.uint32)), counter)
    first, second = map(_states, words, logits_of_each, z_of_each)
    # Both states in one number, so that a block is computed once for the two. XLA repeats what is cheap for every use, but
    # no roots: those of 0, 1, 4 and 9 make it draw once, those of 0 and 1 take the states apart once.
    both = jnp.sqrt(first + second * (4 + 4 * first)).astype(jnp.int32)
    twice = jnp.broadcast_to(both[:, None], (len(both), 2, n_units)).reshape(-1, n_units)  # XLA is slow in three dimensions
    place = jax.lax.broadcasted_iota(jnp.int32, twice.shape, 0) & 1
    states = jnp.sqrt(((twice >> place) & 1).astype(logits.dtype))
    return states[: len(rows)].reshape(logits.shape)


def _pairs(rows: Array) -> list[Array]:
    """The first rows of all pairs, and the second; a last row alone has one of zeros beside it."""
    padded = jnp.pad(rows, ((0, 1), (0, 0))) if len(rows) % 2 else rows
    pairs = padded.reshape(-1, 2, rows.shape[1])
    return [jax.lax.index_in_dim(pairs, place, axis=1, keepdims=False) for place in (0, 1)]


def _states(words: Array, logits: Array, z: Array) -> Array:
    flip = _midpoints(words, logits.dtype) * (1 + z) < z
    return ((logits > 0) != flip).astype(logits.dtype)
