import itertools

import numpy as np
import pytest

from popcd.epochs import Epochs


@pytest.mark.parametrize("batch_size", [1, 3, 4, 9, 10])
def test_every_row_comes_once_per_epoch_also_where_the_batch_does_not_divide(batch_size, seed):
    epochs = Epochs(seed, 10, shuffle=True)
    line = np.concatenate([epochs.rows(i * batch_size, batch_size) for i in range(20)])
    per_epoch = line[: len(line) // 10 * 10].reshape(-1, 10)
    assert (np.sort(per_epoch, axis=1) == np.arange(10)).all()
    assert any((a != b).any() for a, b in itertools.pairwise(per_epoch))


@pytest.mark.parametrize("first", [0, 7, 10, 39])
def test_a_later_start_finds_the_same_line(seed, first):
    whole = Epochs(seed, 10, shuffle=True).rows(0, 80)
    np.testing.assert_array_equal(Epochs(seed, 10, shuffle=True).rows(first, 41), whole[first : first + 41])


def test_orders_that_are_kept_are_those_of_their_epochs(seed):
    epochs, whole = Epochs(seed, 10, shuffle=True), Epochs(seed, 10, shuffle=True).rows(0, 200)
    for first, n in ((0, 5), (5, 30), (35, 4), (0, 12), (150, 50), (20, 1)):
        np.testing.assert_array_equal(epochs.rows(first, n), whole[first : first + n])


def test_places_beyond_32_bits_have_rows():
    assert sorted(Epochs(0, 10, shuffle=True).rows(10 * 2**32 - 10, 10).tolist()) == list(range(10))


def test_seeds_give_different_lines():
    assert len({tuple(Epochs(seed, 10, shuffle=True).rows(0, 20)) for seed in range(20)}) == 20


def test_a_full_batch_is_not_shuffled():
    assert Epochs(0, 4, shuffle=False).rows(0, 12).tolist() == [0, 1, 2, 3] * 3
