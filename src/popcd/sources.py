"""Where batches come from: rows on the device, a file larger than memory that is read a window of batches at a time, or
windows whose batches are spread over many devices.

All follow the same shuffled line of rows, so a run does not depend on where its data lies.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from popcd.checks import binary_matrix, column_means
from popcd.devices import PARTICLES, using
from popcd.epochs import Epochs
from popcd.gradient import Offsets
from popcd.prng import host_keys, host_stream
from popcd.rbm import RBM
from popcd.updates import Gathered, Plan, TrainState, Window, advance, advance_briefly, init, init_over_devices

_BLOCK, _SPREAD_BLOCK = 1 << 26, 1 << 24  # bytes of a window of batches
_NUMBERS, _LONGEST = 1 << 17, 1000  # row numbers and updates of one
_NONE: tuple[int, int, Any, Any] = (0, 0, None, None)  # a window of no updates


class Source:
    """Rows of a training set in the order of a run; kinds of it say where they lie."""

    mesh: Mesh | None = None

    def __init__(self, rows: np.ndarray, means: np.ndarray, window: int, plan: Plan, seed: int, shuffle: bool):
        self._plan, self._seed, self._epochs = plan, seed, Epochs(seed, len(rows), shuffle)
        self._means, self._first = means, self._epochs.rows(0, plan.n_starts)
        self._window = int(np.clip(window, 2, _LONGEST))  # updates that are compiled and handed over together
        self._held = _NONE

    def begin(self, rbm: RBM) -> TrainState:
        """The state before the first update."""
        key, bias = host_stream(self._seed, "init"), np.asarray(rbm.hidden_bias, np.float64)
        hidden = np.exp(-np.logaddexp(0, -bias))  # the sigmoid, for which SciPy would have to be loaded
        words = key, rbm, self._first_rows(), Offsets(self._means, hidden), self._plan
        if self.mesh is None:
            return init(*words)
        with using(self.mesh):
            return init_over_devices(*words)

    def check(self, state: TrainState) -> None:
        """Trace a step of the estimator without computing it."""
        key = host_stream(self._seed, "chain")
        jax.eval_shape(self._plan.estimator.step, key, state.estimator, state.rbm, self._first_rows())

    def advance(self, state: TrainState, stop: int, last: int = 0) -> tuple[TrainState, dict[str, np.ndarray]]:
        """Updates until step `stop`, and the sums of what was measured on the way; as many may follow until step `last`."""
        program, totals = advance_briefly if self._plan.brief else advance, dict[str, np.ndarray]()
        length = stop - int(state.step)
        while (start := int(state.step)) < stop:
            end = min(start + self._window, stop)
            ahead = min(start + self._window // length * length, last)  # whole chunks
            first, batches, keys = self._covering(start, end, max(end, ahead))
            with using(self.mesh):
                state, sums = program(state, end, first, batches, keys, self._plan)
            totals = {name: value + totals.get(name, 0) for name, value in _host(sums).items()}
        return state, totals

    def _covering(self, start: int, end: int, until: int) -> tuple[int, Any, Any]:
        """A window that holds updates `start` to `end`: its first update, its batches and its keys.

        It is read up to update `until`, and held where that lies beyond `end`: chunks may be far shorter than windows.
        """
        held = self._held
        if not held[0] <= start < end <= held[1]:
            held = start, until, self._read(start, until), self._keys(start, until)
            self._held = held if until > end else _NONE
        return held[0], *held[2:]

    def _keys(self, start: int, end: int) -> np.ndarray:
        """The words of the keys of updates `start` to `end`, and zeros up to a whole window."""
        return _filled(host_keys(self._seed, "chain", np.arange(start, end)), self._window)

    def _first_rows(self) -> Any:
        """The rows that the first chains start at."""
        raise NotImplementedError

    def _line(self, start: int, end: int) -> np.ndarray:
        """The numbers of the rows of updates `start` to `end`, those beyond the last batch included."""
        batch = self._plan.batch_size
        return self._epochs.rows(start * batch, (end - start) * batch + self._plan.n_further)

    @property
    def _rows_of_a_window(self) -> int:
        return self._window * self._plan.batch_size + self._plan.n_further

    def _read(self, start: int, end: int) -> Gathered | Window:
        """The batches of updates `start` to `end`."""
        raise NotImplementedError


class Resident(Source):
    """All rows on the device."""

    def __init__(self, rows: np.ndarray, plan: Plan, seed: int, shuffle: bool):
        super().__init__(rows, rows.mean(axis=0, dtype=np.float64), _NUMBERS // plan.batch_size, plan, seed, shuffle)
        # The rows are a checked copy that nobody else writes to, so the device may use their memory
        self._data, self._starts = jax.device_put(rows), rows[self._first]

    def _first_rows(self) -> np.ndarray:
        return self._starts

    def _read(self, start: int, end: int) -> Gathered:
        return Gathered(_filled(self._line(start, end), self._rows_of_a_window), self._data)


class Streamed(Source):
    """Rows of a memory-mapped array; a window of batches is read at a time, in the order of the file."""

    def __init__(self, rows: np.ndarray, plan: Plan, seed: int, shuffle: bool):
        window = _BLOCK // (plan.batch_size * rows.shape[1])
        super().__init__(rows, column_means("data", rows), window, plan, seed, shuffle)
        self._rows = rows

    def _first_rows(self) -> np.ndarray:
        return np.asarray(self._rows[self._first])

    def _read(self, start: int, end: int) -> Gathered:
        wanted, where = np.unique(self._line(start, end), return_inverse=True)  # the disk is read forwards
        parts = self._rows[wanted].astype(np.uint8, copy=False), where.astype(np.int32)
        data, numbers = (_filled(part, self._rows_of_a_window) for part in parts)
        return Gathered(numbers, jnp.asarray(data))


class Spread(Source):
    """Batches over the devices of a mesh; each process reads the rows of its own devices."""

    mesh: Mesh

    def __init__(self, rows: np.ndarray, plan: Plan, seed: int, shuffle: bool, mesh: Mesh):
        window = _SPREAD_BLOCK // (max(plan.batch_size, plan.n_starts) * rows.shape[1])
        super().__init__(rows, column_means("data", rows), window, plan, seed, shuffle)
        self.mesh, self._rows = mesh, rows

    def _first_rows(self) -> Array:
        return self._assembled(self._first[None], 1)[0]

    def _read(self, start: int, end: int) -> Window:
        line, plan = self._line(start, end), self._plan
        first = np.arange(end - start)[:, None] * plan.batch_size
        batches, starts = (line[first + np.arange(n)[None, :]] for n in (plan.batch_size, plan.n_starts))
        same = plan.n_starts == plan.batch_size
        return Window(self._assembled(batches, self._window), None if same else self._assembled(starts, self._window))

    def _assembled(self, numbers: np.ndarray, updates: int) -> Array:
        """The rows of these numbers, updates x rows, and zeros up to `updates`: one shape, one compiled program."""
        shape = (updates, numbers.shape[1], self._rows.shape[1])

        def part(index: Any) -> np.ndarray:
            return _filled(np.asarray(self._rows[numbers[:, index[1]]]), updates)

        return jax.make_array_from_callback(shape, NamedSharding(self.mesh, PartitionSpec(None, PARTICLES)), part)


def source(rows: np.ndarray, plan: Plan, seed: int, shuffle: bool, mesh: Mesh | None = None) -> Source:
    """Rows of a memory-mapped array stay on disk, all others go to the device; those of a mesh are spread over it."""
    if mesh is not None:
        return Spread(rows, plan, seed, shuffle, mesh)
    if not isinstance(rows, np.memmap):
        return Resident(rows, plan, seed, shuffle)
    if plan.n_starts <= len(rows):
        return Streamed(rows, plan, seed, shuffle)
    return Resident(binary_matrix("data", rows), plan, seed, shuffle)


def _filled(rows: np.ndarray, n: int) -> np.ndarray:
    """`rows` and zeros up to `n` of them, whatever the number of updates: one shape, one compiled program."""
    whole = np.zeros((n, *rows.shape[1:]), rows.dtype)
    whole[: len(rows)] = rows
    return whole


def _host(sums: dict[str, Array]) -> dict[str, np.ndarray]:
    return {name: np.asarray(value, np.float64) for name, value in jax.device_get(sums).items()}
