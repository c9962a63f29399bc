"""Where batches come from: rows on the device, or a file larger than memory that is read a window of batches at a time.

Both follow the same shuffled line of rows, so a run does not depend on where its data lies.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from popcd.checks import binary_matrix, column_means
from popcd.epochs import Epochs
from popcd.rbm import RBM
from popcd.updates import Plan, TrainState, advance, init

_BLOCK, _NUMBERS, _LONGEST = 1 << 26, 1 << 17, 1000  # bytes, row numbers and updates of a window of batches


class Source:
    """Rows of a training set in the order of a run; kinds of it say where they lie."""

    def __init__(self, rows: np.ndarray, means: np.ndarray, window: int, plan: Plan, seed: int, shuffle: bool):
        self._plan, self._root, self._epochs = plan, jax.random.key(seed), Epochs(seed, len(rows), shuffle)
        self._starts, self._means = np.asarray(rows[self._epochs.rows(0, plan.n_starts)]), means
        self._window = int(np.clip(window, 2, _LONGEST))  # updates that are compiled and handed over together

    def begin(self, rbm: RBM) -> TrainState:
        """The state before the first update."""
        return init(self._root, rbm, self._starts, self._means, self._plan)

    def check(self, state: TrainState) -> None:
        """Trace a step of the estimator without computing it."""
        jax.eval_shape(self._plan.estimator.step, self._root, state.estimator, state.rbm, self._starts)

    def advance(self, state: TrainState, stop: int) -> tuple[TrainState, dict[str, np.ndarray]]:
        """Updates until step `stop`, and the sums of what was measured on the way."""
        batch, totals = self._plan.batch_size, dict[str, np.ndarray]()
        while (start := int(state.step)) < stop:
            end = min(start + self._window, stop)
            data, numbers = self._read(start * batch, (end - start) * batch + self._plan.n_further)
            numbers = np.pad(numbers, (0, (self._window - end + start) * batch))  # one shape, one compiled program
            state, sums = advance(state, end, numbers, data, self._root, self._plan)
            totals = {name: value + totals.get(name, 0) for name, value in _host(sums).items()}
        return state, totals

    def _read(self, first: int, n: int) -> tuple[Array, np.ndarray]:
        """Rows on the device, and which of them are `first` to `first + n` of the line."""
        raise NotImplementedError


class Resident(Source):
    """All rows on the device."""

    def __init__(self, rows: np.ndarray, plan: Plan, seed: int, shuffle: bool):
        super().__init__(rows, rows.mean(axis=0, dtype=np.float64), _NUMBERS // plan.batch_size, plan, seed, shuffle)
        self._data = jnp.asarray(rows)

    def _read(self, first: int, n: int) -> tuple[Array, np.ndarray]:
        return self._data, self._epochs.rows(first, n)


class Streamed(Source):
    """Rows of a memory-mapped array; a window of batches is read at a time, in the order of the file."""

    def __init__(self, rows: np.ndarray, plan: Plan, seed: int, shuffle: bool):
        window = _BLOCK // (plan.batch_size * rows.shape[1])
        super().__init__(rows, column_means("data", rows), window, plan, seed, shuffle)
        self._rows = rows

    def _read(self, first: int, n: int) -> tuple[Array, np.ndarray]:
        wanted, where = np.unique(self._epochs.rows(first, n), return_inverse=True)  # the disk is read forwards
        size = self._window * self._plan.batch_size + self._plan.n_further
        data = np.zeros((size, self._rows.shape[1]), np.uint8)
        data[: len(wanted)] = self._rows[wanted]
        return jnp.asarray(data), where.astype(np.int32)


def source(rows: np.ndarray, plan: Plan, seed: int, shuffle: bool) -> Source:
    """Rows of a memory-mapped array stay on disk, all others go to the device."""
    if not isinstance(rows, np.memmap):
        return Resident(rows, plan, seed, shuffle)
    if plan.n_starts <= len(rows):
        return Streamed(rows, plan, seed, shuffle)
    return Resident(binary_matrix("data", rows), plan, seed, shuffle)


def _host(sums: dict[str, Array]) -> dict[str, np.ndarray]:
    return {name: np.asarray(value, np.float64) for name, value in jax.device_get(sums).items()}
