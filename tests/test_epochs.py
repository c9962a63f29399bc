import itertools

import jax
import numpy as np
import pytest

from popcd.epochs import Epochs


def line(epochs, batch_size, steps, start=0):
    """Row numbers of `steps` batches, from batch `start`."""
    seen = start * batch_size
    place, out = epochs.begin(seen // epochs.n_rows, seen % epochs.n_rows), []
    for _ in range(steps):
        out.append(np.asarray(epochs.rows(place, batch_size)))
        place = epochs.advance(place, batch_size)
    return np.concatenate(out)


@pytest.mark.parametrize("batch_size", [1, 3, 4, 9, 10])
def test_every_row_comes_once_per_epoch_also_where_the_batch_does_not_divide(batch_size, seed):
    epochs = Epochs(jax.random.key(seed), 10, shuffle=True)
    rows = line(epochs, batch_size, 10)[: batch_size * 10 // 10 * 10]
    per_epoch = rows.reshape(-1, 10)
    assert (np.sort(per_epoch, axis=1) == np.arange(10)).all()
    if len(per_epoch) > 1:
        assert any((a != b).any() for a, b in itertools.pairwise(per_epoch))


def test_a_later_start_finds_the_same_line(seed):
    epochs = Epochs(jax.random.key(seed), 10, shuffle=True)
    np.testing.assert_array_equal(line(epochs, 3, 12)[3 * 7 :], line(epochs, 3, 5, start=7))


def test_further_rows_follow_those_of_the_batch(seed):
    epochs = Epochs(jax.random.key(seed), 10, shuffle=True)
    place = epochs.begin(0, 4)
    assert epochs.rows(place, 8)[:3].tolist() == epochs.rows(place, 3).tolist()
    assert len(set(epochs.rows(epochs.begin(0, 0), 10).tolist())) == 10
    np.testing.assert_array_equal(epochs.rows(place, 45)[20:40], epochs.rows(place, 20))


def test_a_full_batch_is_not_shuffled():
    assert line(Epochs(jax.random.key(0), 4, shuffle=False), 4, 3).tolist() == [0, 1, 2, 3] * 3
