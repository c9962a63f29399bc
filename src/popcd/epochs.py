"""Shuffled epochs as an endless line of rows: each epoch a new permutation, batches without gaps."""

import numpy as np

from popcd.prng import host_generator


class Epochs:
    """The line of rows that a seed gives; epoch e is the permutation of stream "data", number e.

    A batch that reaches the end of an epoch goes on into the next, so that every batch is full and every row comes once per
    epoch. Where a batch is the whole set its order does not matter and `shuffle` is off.

    The line is made on the host: sorting random words in the compiled loop cost as much as an update of a small machine.

    >>> epochs = Epochs(seed=0, n_rows=5, shuffle=True)
    >>> sorted(epochs.rows(0, 5).tolist()), sorted(epochs.rows(5, 5).tolist())
    ([0, 1, 2, 3, 4], [0, 1, 2, 3, 4])
    """

    def __init__(self, seed: int, n_rows: int, shuffle: bool):
        self.seed, self.n_rows, self.shuffle = seed, n_rows, shuffle
        self._orders: dict[int, np.ndarray] = {}

    def rows(self, first: int, n: int) -> np.ndarray:
        """The numbers of `n` rows from place `first` of the line on."""
        if not self.shuffle:
            return (np.arange(first, first + n) % self.n_rows).astype(np.int32)
        epoch, within = divmod(first, self.n_rows)
        orders = [self._order(e) for e in range(epoch, (first + n - 1) // self.n_rows + 1)]
        self._orders = dict(enumerate(orders[-2:], epoch + len(orders) - len(orders[-2:])))  # the next call mostly begins there
        return np.concatenate(orders)[within : within + n]

    def _order(self, epoch: int) -> np.ndarray:
        if epoch in self._orders:
            return self._orders[epoch]
        return host_generator(self.seed, "data", epoch).permutation(self.n_rows).astype(np.int32)
