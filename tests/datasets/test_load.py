import hashlib
from pathlib import Path

import numpy as np
import pytest

import popcd
from popcd.datasets import artificial_modes, bars_and_stripes, load

SHARED = Path(__file__).parents[3] / "shared" / "data"


def test_bars_and_stripes():
    data = load("bars-and-stripes")
    assert (data.name, data.train.shape, data.train.dtype, data.test) == ("bars-and-stripes", (32, 16), np.uint8, None)
    images = data.train.reshape(-1, 4, 4)
    bars = (images == images[:, :1, :]).all(axis=(1, 2))
    stripes = (images == images[:, :, :1]).all(axis=(1, 2))
    assert (bars | stripes).all()
    assert bars.sum() == stripes.sum() == 18  # 16 of a kind, and the two full-colour images of the other
    _, counts = np.unique(data.train, axis=0, return_counts=True)
    assert sorted(counts.tolist()) == [1] * 28 + [2, 2]
    p = counts / 32
    np.testing.assert_allclose((p * np.log(p)).sum(), -3.3791, atol=5e-5)
    assert load("bars-and-stripes", size=3).train.shape == (16, 9)


def test_artificial_modes():
    data = load("artificial-modes")
    assert data.train.shape == (10_000, 16)
    clean = artificial_modes(noise=0.0)
    modes, counts = np.unique(clean, axis=0, return_counts=True)
    assert counts.tolist() == [2500] * 4
    halves = modes.reshape(4, 2, 8)
    assert (halves == halves[:, :, :1]).all()
    assert np.array_equal(halves[:, :, 0], [[0, 0], [0, 1], [1, 0], [1, 1]])
    flipped = (artificial_modes(noise=0.1, seed=1) != clean).mean()
    assert abs(flipped - 0.1) < 5 * np.sqrt(0.09 / clean.size)
    assert not np.array_equal(artificial_modes(seed=1), artificial_modes(seed=2))
    assert np.array_equal(artificial_modes(seed=1), artificial_modes(seed=1))


def test_letters_are_split_by_fold():
    data, whole = load("letters"), load("letters", test_fold=None)
    assert whole.train.shape == (52_152, 128)
    assert whole.test is None
    assert (data.train.shape, data.test.shape) == ((47_535, 128), (4_617, 128))
    assert sum(len(load("letters", test_fold=f).test) for f in range(10)) == 52_152


def test_mnist():
    data = load("mnist")
    assert (data.train.shape, data.test.shape) == ((60_000, 784), (10_000, 784))
    assert data.train.dtype == np.uint8
    assert data.train.max() == 1


@pytest.mark.skipif(not SHARED.exists(), reason="the original files are not beside the repository")
def test_shipped_images_are_the_originals():
    with np.load(SHARED / "mnist_binary.npz") as z:
        for part in ("train", "test"):
            assert np.array_equal(np.unpackbits(z[part], axis=1), getattr(load("mnist"), part))
    with np.load(SHARED / "letters.npz") as z:
        images, fold = np.unpackbits(z["all"], axis=1), z["fold"]
    assert np.array_equal(images, load("letters", test_fold=None).train)
    assert np.array_equal(images[fold == 3], load("letters", test_fold=3).test)


def test_shipped_images_have_not_changed():
    digests = {"mnist": load("mnist").test, "letters": load("letters", test_fold=None).train}
    digests = {name: hashlib.sha256(np.packbits(rows).tobytes()).hexdigest()[:16] for name, rows in digests.items()}
    assert digests == {"mnist": "0f241057dcdfd3ff", "letters": "31d48991d082c765"}


def test_arrays_and_files(tmp_path):
    rows = np.eye(4)
    assert load(rows).train.dtype == np.uint8
    assert load(rows.astype(bool).tolist()).name == "array"
    np.save(tmp_path / "plain.npy", rows)
    np.savez(tmp_path / "single.npz", anything=rows)
    np.savez(tmp_path / "both.npz", train=rows, test=1 - rows)
    assert load(tmp_path / "plain.npy").name == "plain"
    assert np.array_equal(load(str(tmp_path / "single.npz")).train, rows)
    assert np.array_equal(load(tmp_path / "both.npz").test, 1 - rows)


def test_bad_files(tmp_path):
    (tmp_path / "damaged.npz").write_bytes(b"PK\x03\x04 not a zip")
    np.savez(tmp_path / "names.npz", a=np.eye(2), b=np.eye(2))
    np.savez(tmp_path / "widths.npz", train=np.eye(2), test=np.eye(3))
    np.save(tmp_path / "objects.npy", np.array([[{}]]), allow_pickle=True)
    with pytest.raises(ValueError, match=r"is not a readable .npz file"):
        load(tmp_path / "damaged.npz")
    with pytest.raises(ValueError, match="must hold an array named train, or a single array, got a, b"):
        load(tmp_path / "names.npz")
    with pytest.raises(ValueError, match=r"\(test\) has 3 columns"):
        load(tmp_path / "widths.npz")
    with pytest.raises(ValueError, match=r"not a readable .npy file"):
        load(tmp_path / "objects.npy")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "absent.npy")


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: load("mnits"), ValueError, "unknown data set 'mnits': expected one of bars-and-stripes, artificial-modes"),
        (lambda: load("letters", test_fold=10), ValueError, "test_fold must be a fold from 0 to 9"),
        (lambda: load(np.eye(2), seed=1), TypeError, "an array takes no options, got seed"),
        (lambda: load("mnist", seed=1), TypeError, "seed"),
        (lambda: load(np.array([[0.0, 2.0]])), ValueError, "only 0 and 1, got 2.0 at row 0, column 1"),
        (lambda: load(np.array([["a"]])), TypeError, "got dtype <U1"),
        (lambda: bars_and_stripes(17), ValueError, "size must be at most 16, got 17"),
        (lambda: bars_and_stripes(noise=1.5), ValueError, "noise must be a probability, from 0 to 1, got 1.5"),
        (lambda: artificial_modes(size=5), ValueError, "size must be even"),
        (lambda: artificial_modes(rows=6), ValueError, "rows a multiple of 4"),
    ],
)
def test_bad_requests_are_named(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_names_are_listed():
    assert popcd.datasets.NAMES == ("bars-and-stripes", "artificial-modes", "letters", "mnist")
