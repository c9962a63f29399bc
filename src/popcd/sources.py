"""Where batches come from: rows on the device, or a file larger than memory that is read a window of batches at a time.

Both follow the same shuffled line of rows, so a run does not depend on where its data lies.
"""

from typing import Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from popcd.checks import binary_matrix, column_means
from popcd.epochs import Place
from popcd.rbm import RBM
from popcd.updates import Plan, TrainState, advance, init

_BLOCK, _LONGEST = 1 << 26, 1000  # bytes and updates of a window of batches


class Source(Protocol):
    """Rows of a training set in the order of a run."""

    def begin(self, rbm: RBM) -> TrainState:
        """The state before the first update."""

    def advance(self, state: TrainState, stop: int) -> tuple[TrainState, dict[str, np.ndarray]]:
        """Updates until step `stop`, and the sums of what was measured on the way."""


class Resident:
    """All rows on the device."""

    def __init__(self, rows: np.ndarray, plan: Plan, root: Array):
        self._plan, self._root = plan, root
        self._data, self._means = jnp.asarray(rows), rows.mean(axis=0, dtype=np.float64)
        self._next: tuple[int, Place] = (0, plan.place(0, root))  # where the update after the last one begins

    def begin(self, rbm: RBM) -> TrainState:
        epochs, n = self._plan.epochs(self._root), self._plan.n_starts
        return init(self._root, rbm, self._data[epochs.rows(epochs.begin(0, 0), n)], self._means, self._plan)

    def advance(self, state: TrainState, stop: int) -> tuple[TrainState, dict[str, np.ndarray]]:
        start = int(state.step)
        place = self._next[1] if self._next[0] == start else self._plan.place(start, self._root)
        state, place, sums = advance(state, place, stop, self._data, self._root, self._plan)
        self._next = stop, place
        return state, _host(sums)


class Streamed:
    """Rows of a memory-mapped array; a window of batches is read at a time, in the order of the file."""

    def __init__(self, rows: np.ndarray, plan: Plan, root: Array):
        self._rows, self._plan, self._root = rows, plan, root
        self._means = column_means("data", rows)
        self._window = int(np.clip(_BLOCK // (plan.batch_size * rows.shape[1]), 1, _LONGEST))  # updates read together
        self._orders: dict[int, np.ndarray] = {}

    def begin(self, rbm: RBM) -> TrainState:
        return init(self._root, rbm, self._read(0, self._plan.n_starts), self._means, self._plan)

    def advance(self, state: TrainState, stop: int) -> tuple[TrainState, dict[str, np.ndarray]]:
        batch, totals = self._plan.batch_size, dict[str, np.ndarray]()
        size = self._window * batch + max(0, self._plan.n_starts - batch)
        in_order = self._plan._replace(n_rows=size, shuffle=False)
        place = Place(jnp.int32(0), jnp.int32(0), jnp.arange(2 * size))
        while (start := int(state.step)) < stop:
            end = min(start + self._window, stop)
            needed = (end - start) * batch + size - self._window * batch
            data = jnp.zeros((size, self._rows.shape[1]), jnp.uint8).at[:needed].set(self._read(start * batch, needed))
            state, _, sums = advance(state, place, end, data, self._root, in_order)
            totals = {name: value + totals.get(name, 0) for name, value in _host(sums).items()}
        return state, totals

    def _read(self, first: int, n: int) -> Array:
        """Rows `first` to `first + n` of the endless line, as `Epochs.rows` has them."""
        places = np.arange(first, first + n)
        epochs, within = np.divmod(places, len(self._rows))
        numbers = np.empty(n, np.int64)
        for epoch in range(epochs[0], epochs[-1] + 1):
            here = epochs == epoch
            numbers[here] = self._order(epoch)[within[here]]
        wanted, where = np.unique(numbers, return_inverse=True)  # sorted: the disk is read forwards, each row once
        return jnp.asarray(np.asarray(self._rows[wanted], np.uint8)[where])

    def _order(self, epoch: int) -> np.ndarray:
        if epoch not in self._orders:
            self._orders = {e: order for e, order in self._orders.items() if e >= epoch - 1}
            self._orders[epoch] = np.asarray(self._plan.epochs(self._root).order(jnp.int32(epoch)))
        return self._orders[epoch]


def source(rows: np.ndarray, plan: Plan, root: Array) -> Source:
    """Rows of a memory-mapped array stay on disk, all others go to the device."""
    if not isinstance(rows, np.memmap):
        return Resident(rows, plan, root)
    if plan.n_starts <= len(rows):
        return Streamed(rows, plan, root)
    return Resident(binary_matrix("data", rows), plan, root)


def _host(sums: dict[str, Array]) -> dict[str, np.ndarray]:
    return {name: np.asarray(value, np.float64) for name, value in jax.device_get(sums).items()}
