"""Binary data from files."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from popcd.checks import binary_matrix
from popcd.foreign import FileError, read_hdf5, read_mat, read_npz

ENDINGS = (".npz", ".npy", ".csv", ".h5", ".hdf5", ".mat")
_MAPPED = 1 << 30  # bytes from which on a .npy file stays on disk
_BLOCK = 1 << 26


@dataclass(frozen=True, eq=False)
class Dataset:
    """`train` and `test` (or None) as rows x visible `uint8` of zeros and ones, and a name."""

    name: str
    train: np.ndarray
    test: np.ndarray | None = None


def from_file(path: Path, threshold: float | None = None) -> Dataset:
    """The rows of a file; with a threshold, values above it are 1."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if path.suffix == ".npy" and path.stat().st_size > _MAPPED:
        mapped = _npy(path, "r")
        if threshold is not None:
            return Dataset(path.stem, _above_in_blocks(mapped, threshold, path))
        binary_matrix(f"{path} (first row)", mapped[:1])
        return Dataset(path.stem, mapped)
    arrays = _arrays(path)
    if "train" not in arrays and len(arrays) == 1:
        arrays = {"train": next(iter(arrays.values()))}
    if "train" not in arrays:
        raise FileError(f"{path} must hold an array named train, or a single array, got {', '.join(arrays) or 'none'}")
    if threshold is not None:
        arrays = {part: _above(arrays[part], threshold, path) for part in ("train", "test") if part in arrays}
    train = binary_matrix(f"{path} (train)", arrays["train"])
    test = binary_matrix(f"{path} (test)", arrays["test"], train.shape[1]) if "test" in arrays else None
    return Dataset(path.stem, train, test)


def _above(values: np.ndarray, threshold: float, path: Path) -> np.ndarray:
    if values.dtype.kind not in "biuf" or np.isnan(values).any():
        raise FileError(f"{path} must hold numbers to compare with the threshold, got dtype {values.dtype} or NaN")
    return values > threshold


def _above_in_blocks(mapped: np.ndarray, threshold: float, path: Path) -> np.ndarray:
    """As `_above`, of a file that may not fit into memory; the result takes a byte per value."""
    if mapped.ndim != 2:
        raise FileError(f"{path} must hold a matrix, rows x visible, got shape {mapped.shape}")
    found = np.empty(mapped.shape, np.uint8)
    size = max(1, _BLOCK // max(1, mapped.shape[1] * mapped.dtype.itemsize))
    for first in range(0, len(mapped), size):
        found[first : first + size] = _above(mapped[first : first + size], threshold, path)
    return found


def _arrays(path: Path) -> dict[str, np.ndarray]:
    match path.suffix:
        case ".npz":
            return read_npz(path)
        case ".npy":
            return {"train": _npy(path, None)}
        case ".csv":
            return {"train": _csv(path)}
        case ".mat":
            return read_mat(path)
        case _:
            return read_hdf5(path)


def _npy(path: Path, mode: Literal["r"] | None) -> np.ndarray:
    try:
        return np.load(path, mmap_mode=mode, allow_pickle=False)
    except Exception as error:  # NumPy raises half a dozen kinds on damaged files
        raise FileError(f"{path} is not a readable .npy file of plain numbers: {error!s:.200}") from error


def _csv(path: Path) -> np.ndarray:
    rows = read_csv(path)
    if np.isnan(rows).any():
        raise FileError(f"{path} has empty fields; --complete of popcd sample takes such rows, training does not")
    return rows


def read_csv(path: Path) -> np.ndarray:
    """Numbers separated by commas, one row per line, NaN where a field is empty; a first line without any number is skipped."""
    try:
        lines = path.read_text("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise FileError(f"{path} is not a text file: {error!s:.200}") from error
    table = [line.split(",") for line in lines if line.strip()]
    words = [word for word in table[0] if word.strip()] if table else []
    if words and all(_number(word) is None for word in words):
        table = table[1:]
    rows = []
    for i, words in enumerate(table):
        numbers = [_number(word) for word in words]
        if None in numbers or len(words) != len(table[0]):
            raise FileError(
                f"{path}, row {i + 1}: expected {len(table[0])} numbers separated by commas, got {','.join(words)[:60]!r}"
            )
        rows.append(numbers)
    return np.array(rows, float)


def _number(word: str) -> float | None:
    try:
        return float(word) if word.strip() else float("nan")
    except ValueError:
        return None


def fingerprint(rows: np.ndarray) -> str:
    """SHA-256 of a binary matrix, eight units to a byte; the same for an array and for its file.

    >>> fingerprint(np.eye(3, dtype=np.uint8))[:12] == fingerprint(np.eye(3, dtype=bool))[:12]
    True
    """
    digest = hashlib.sha256(f"{rows.shape}".encode())
    size = max(1, _BLOCK // max(1, rows.shape[1] * rows.dtype.itemsize))
    for first in range(0, len(rows), size):
        digest.update(np.packbits(np.asarray(rows[first : first + size], np.uint8), axis=1).tobytes())
    return digest.hexdigest()
