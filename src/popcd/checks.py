"""Checks of what users hand in: each says what was wrong, what was expected and what was seen."""

import math
import numbers
import operator
from collections.abc import Iterable
from typing import Any

import jax
import numpy as np

_BLOCK = 1 << 26  # bytes of a file that are in memory at a time


def positive_int(name: str, value: Any, least: int = 1) -> int:
    """`value` as an int of at least `least`."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number of at least {least}, got {value!r}") from None
    if isinstance(value, bool) or number < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return number


def non_negative(name: str, value: Any) -> float:
    """`value` as a finite number of at least 0."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be a finite number of at least 0, got {value!r}")
    number = float(value)
    if not 0 <= number < math.inf:
        raise ValueError(f"{name} must be a finite number of at least 0, got {value!r}")
    return number


def instance_of(name: str, value: Any, kind: type) -> None:
    """Refuse what is not a `kind`."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be a {kind.__module__.split('.')[0]}.{kind.__name__}, got {value!r}")


def one_of(name: str, value: Any, known: Iterable[str]) -> str:
    """`value` if it is one of the known words."""
    known = tuple(known)
    if value not in known:
        raise ValueError(f"unknown {name} {value!r}: expected one of {', '.join(known)}")
    return value


def real_array(name: str, value: Any, ndim: int) -> np.ndarray | jax.Array:
    """`value` as a finite real array of `ndim` axes; NumPy input becomes a read-only copy, a JAX array stays."""
    array = value if isinstance(value, jax.Array) else np.array(value)
    if array.dtype.kind not in "iu" and array.dtype not in (np.float32, np.float64):
        raise TypeError(f"{name} must hold real numbers as float32, float64 or int, got an array of dtype {array.dtype}")
    if array.dtype.kind in "iu":
        array = array.astype(float)
    if array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} axis/axes, got shape {array.shape}")
    if array.size == 0:
        raise ValueError(f"{name} must not be empty, got shape {array.shape}")
    if isinstance(array, jax.core.Tracer):
        return array
    bad = ~np.isfinite(np.asarray(array))
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(f"{name} must be finite, got {np.asarray(array)[where]} at index {where} ({bad.sum()} in all)")
    if isinstance(array, np.ndarray):
        array.setflags(write=False)
    return array


def binary_matrix(name: str, value: Any, n_visible: int | None = None) -> np.ndarray:
    """`value` as a rows x visible `uint8` matrix of zeros and ones; nothing but exact 0 and 1 is accepted."""
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold zeros and ones as bool, int or float, got dtype {array.dtype}")
    if array.ndim != 2 or array.size == 0:
        raise ValueError(f"{name} must be a non-empty matrix, rows x visible, got shape {array.shape}")
    bad = (array != 0) & (array != 1)
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        raise ValueError(
            f"{name} must hold only 0 and 1, got {array[row, column]} at row {row}, column {column} ({bad.sum()} such "
            f"values in all); binarise it first, for example with `data > 0.5`"
        )
    if n_visible is not None and array.shape[1] != n_visible:
        raise ValueError(f"{name} has {array.shape[1]} columns, but the machine has {n_visible} visible units")
    return array.astype(np.uint8)


def training_matrix(name: str, data: Any, n_visible: int) -> np.ndarray:
    """Rows to train on: a memory-mapped array as it is, its values being checked when they are read; all others as `uint8`."""
    if not isinstance(data, np.memmap):
        return binary_matrix(name, data, n_visible)
    binary_matrix(name, data[:1], n_visible)
    return data


def column_means(name: str, rows: np.ndarray) -> np.ndarray:
    """The share of ones in each column; the rows are checked and read in blocks, so that they may lie on disk."""
    size = max(1, _BLOCK // (rows.shape[1] * rows.dtype.itemsize))
    total = np.zeros(rows.shape[1], np.int64)
    for first in range(0, len(rows), size):
        where = f"{name} from row {first} on" if first else name
        total += binary_matrix(where, rows[first : first + size]).sum(axis=0, dtype=np.int64)
    return total / len(rows)
