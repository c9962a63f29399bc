import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from popcd.epochs import Epochs


@functools.partial(jax.jit, static_argnums=(1, 2, 3, 4, 5))
def line(key, n_rows, batch_size, steps, start=0, shuffle=True):
    """Row numbers of `steps` batches, from batch `start`."""
    epochs, seen = Epochs(key, n_rows, shuffle), start * batch_size
    place, out = epochs.begin(seen // n_rows, seen % n_rows), []
    for _ in range(steps):
        out.append(epochs.rows(place, batch_size))
        place = epochs.advance(place, batch_size)
    return jnp.concatenate(out)


@pytest.mark.parametrize("batch_size", [1, 3, 4, 9, 10])
def test_every_row_comes_once_per_epoch_also_where_the_batch_does_not_divide(batch_size, seed):
    per_epoch = np.asarray(line(jax.random.key(seed), 10, batch_size, 10)).reshape(-1, 10)
    assert (np.sort(per_epoch, axis=1) == np.arange(10)).all()
    if len(per_epoch) > 1:
        assert any((a != b).any() for a, b in itertools.pairwise(per_epoch))


def test_a_later_start_finds_the_same_line(seed):
    key = jax.random.key(seed)
    np.testing.assert_array_equal(line(key, 10, 3, 12)[3 * 7 :], line(key, 10, 3, 5, 7))


def test_further_rows_follow_those_of_the_batch(seed):
    epochs = Epochs(jax.random.key(seed), 10, shuffle=True)
    place = epochs.begin(0, 4)
    assert epochs.rows(place, 8)[:3].tolist() == epochs.rows(place, 3).tolist()
    assert len(set(epochs.rows(epochs.begin(0, 0), 10).tolist())) == 10
    np.testing.assert_array_equal(epochs.rows(place, 45)[20:40], epochs.rows(place, 20))


def test_a_full_batch_is_not_shuffled():
    assert line(jax.random.key(0), 4, 4, 3, 0, False).tolist() == [0, 1, 2, 3] * 3
