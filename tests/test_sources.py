import jax
import numpy as np
import pytest

import popcd
import popcd.sources as sources
from popcd.chunks import prepare
from popcd.prng import fold_in, root_key, stream


def mapped(folder, rows, dtype=np.uint8):
    np.save(folder / "rows.npy", np.asarray(rows, dtype))
    return np.load(folder / "rows.npy", mmap_mode="r")


@pytest.mark.parametrize("estimator", [popcd.pcd(), popcd.pop_cd(n_particles=24)], ids=str)
@pytest.mark.parametrize("batch_size", [7, 30])
def test_a_file_trains_to_the_same_machine_as_its_rows_in_memory(tmp_path, monkeypatch, estimator, batch_size):
    """Windows of four updates, epochs of 30 rows, bool on disk: the same line of rows, so the same bits."""
    monkeypatch.setattr(sources, "_BLOCK", 4 * batch_size * 16)
    data = popcd.datasets.artificial_modes(rows=32, noise=0.1)[:30]
    settings = {"batch_size": batch_size, "iterations": 50, "seed": 3, "centered": True}
    short = {"evaluate_every": 2, "evaluate": lambda rbm: {}}  # chunks that share a window
    start = popcd.RBM.create(16, 4)
    expected = popcd.train(start, data, estimator, **settings)
    found = popcd.train(start, mapped(tmp_path, data, bool), estimator, **settings, **short)
    for one, two in zip(vars(expected.rbm).values(), vars(found.rbm).values(), strict=True):
        np.testing.assert_array_equal(one, two)
    resumed = popcd.train(start, mapped(tmp_path, data), estimator, **settings | {"iterations": 33})
    resumed = popcd.train(start, mapped(tmp_path, data), estimator, **settings, resume=resumed.state)
    np.testing.assert_array_equal(resumed.rbm.weights, expected.rbm.weights)


def test_a_file_smaller_than_the_population_is_read_whole(tmp_path):
    data = popcd.datasets.load("bars-and-stripes").train
    settings = {"batch_size": 8, "iterations": 5}
    estimator = popcd.pop_cd(n_particles=100)
    expected = popcd.train(popcd.RBM.create(16, 4), data, estimator, **settings)
    found = popcd.train(popcd.RBM.create(16, 4), mapped(tmp_path, data), estimator, **settings)
    np.testing.assert_array_equal(found.rbm.weights, expected.rbm.weights)


def test_a_file_with_other_values_names_where_they_are(tmp_path, monkeypatch):
    monkeypatch.setattr("popcd.checks._BLOCK", 16 * 10)
    data = np.zeros((40, 16), np.uint8)
    data[25, 3] = 7
    with pytest.raises(ValueError, match=r"data from row 20 on must hold only 0 and 1, got 7 at row 5, column 3"):
        popcd.train(popcd.RBM.create(16, 4), mapped(tmp_path, data), popcd.cd(), iterations=1, batch_size=5)
    with pytest.raises(ValueError, match="16 columns, but the machine has 15"):
        popcd.train(popcd.RBM.create(15, 4), mapped(tmp_path, data), popcd.cd(), iterations=1, batch_size=5)


def test_update_n_has_key_n_of_its_stream_wherever_a_window_begins():
    """A run that an earlier version began goes on with the bits that it would have had."""
    rows = prepare(popcd.RBM.create(4, 3), np.eye(4, dtype=np.uint8), popcd.cd(), batch_size=2, seed=9).rows
    chain = stream(root_key(9), "chain")
    for start, end in ((0, 4), (3, 7)):
        expected = [jax.random.key_data(fold_in(chain, number)) for number in range(start, end)]
        np.testing.assert_array_equal(rows._keys(start, end)[: end - start], expected)


def test_chunks_share_a_window_that_ends_with_the_run(monkeypatch):
    """Windows of up to ten updates, chunks of four: a window holds whole chunks."""
    windows, read = [], sources.Resident._read
    monkeypatch.setattr(sources, "_LONGEST", 10)
    monkeypatch.setattr(sources.Resident, "_read", lambda self, *window: windows.append(window) or read(self, *window))
    data, settings = popcd.datasets.load("bars-and-stripes").train, {"batch_size": 5, "iterations": 19, "seed": 1}
    short = popcd.train(popcd.RBM.create(16, 4), data, popcd.cd(), evaluate_every=4, **settings)
    assert windows == [(0, 8), (8, 16), (16, 19)]
    whole = popcd.train(popcd.RBM.create(16, 4), data, popcd.cd(), **settings)
    np.testing.assert_array_equal(short.rbm.weights, whole.rbm.weights)
