"""Shuffled epochs as an endless line of rows: each epoch a new permutation, batches without gaps."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from popcd.prng import bits, fold_in


class Place(NamedTuple):
    """Where the next batch begins: `position` in epoch `epoch`, and the order of rows in this epoch and the next."""

    epoch: Array
    position: Array
    order: Array


class Epochs(NamedTuple):
    """The line of rows that `key` gives; epoch e is the order of random words under `fold_in(key, e)`.

    A batch that reaches the end of an epoch goes on into the next, so that every batch is full and every row comes once per
    epoch. Where a batch is the whole set its order does not matter and `shuffle` is off.

    >>> import jax
    >>> epochs = Epochs(jax.random.key(0), n_rows=5, shuffle=True)
    >>> place, seen = epochs.begin(0, 0), []
    >>> for _ in range(5):
    ...     seen += epochs.rows(place, 2).tolist()
    ...     place = epochs.advance(place, 2)
    >>> sorted(seen[:5]), sorted(seen[5:])
    ([0, 1, 2, 3, 4], [0, 1, 2, 3, 4])
    """

    key: Array
    n_rows: int
    shuffle: bool

    def begin(self, epoch: int | Array, position: int | Array) -> Place:
        """The place at `position` of `epoch`."""
        epoch = jnp.asarray(epoch, jnp.int32)
        order = jnp.concatenate([self.order(epoch), self.order(epoch + 1)])
        return Place(epoch, jnp.asarray(position, jnp.int32), order)

    def rows(self, place: Place, n: int) -> Array:
        """The numbers of the next `n` rows; beyond the next epoch they come again from this one's beginning."""
        return place.order[(place.position + jnp.arange(n)) % (2 * self.n_rows)]

    def advance(self, place: Place, n: int) -> Place:
        """The place `n` rows further on, at most one epoch."""
        position = place.position + n
        if not self.shuffle:
            return Place(place.epoch, position % self.n_rows, place.order)

        def next_epoch(order: Array) -> Array:
            return jnp.concatenate([order[self.n_rows :], self.order(place.epoch + 2)])

        ended = position >= self.n_rows
        order = jax.lax.cond(ended, next_epoch, lambda order: order, place.order)
        return Place(place.epoch + ended.astype(jnp.int32), jnp.where(ended, position - self.n_rows, position), order)

    def order(self, epoch: Array) -> Array:
        """The rows of an epoch."""
        if not self.shuffle:
            return jnp.arange(self.n_rows)
        return jnp.argsort(bits(fold_in(self.key, epoch), (self.n_rows,)))
