"""Machines in safetensors files: three named arrays, no code."""

import json
from os import PathLike
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as parse
from safetensors.numpy import save as serialise

from popcd.files import write_atomically
from popcd.rbm import RBM

_NAMES = ("weights", "visible_bias", "hidden_bias")


def save(rbm: RBM, path: str | PathLike[str]) -> None:
    """Write a machine to a safetensors file: `weights` (visible x hidden), `visible_bias`, `hidden_bias`.

    The file is written beside `path` and renamed into place: it is whole or not there.

    >>> import tempfile, popcd
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     popcd.save(popcd.RBM.create(16, 8), f"{folder}/model.safetensors")
    ...     popcd.load(f"{folder}/model.safetensors").weights.shape
    (16, 8)
    """
    arrays = {name: np.ascontiguousarray(getattr(rbm, name)) for name in _NAMES}
    write_atomically(Path(path), serialise(arrays, metadata={"format": "popcd", "version": "1"}))


def load(path: str | PathLike[str]) -> RBM:
    """Read a machine from a file of `save`, or from a `.npz` file with W, b, c.

    Nothing in a file is run: pickled objects are refused.

    >>> import tempfile, numpy as np, popcd
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/m.npz", W=np.zeros((3, 2)), b=np.zeros(3), c=np.zeros(2))
    ...     popcd.load(f"{folder}/m.npz").n_visible
    3
    """
    path = Path(path)
    names = ("W", "b", "c") if path.suffix == ".npz" else _NAMES
    arrays = _npz(path) if path.suffix == ".npz" else _safetensors(path)
    missing = [name for name in names if name not in arrays]
    if missing:
        raise ValueError(
            f"{path} has no array {', '.join(missing)}: expected {', '.join(names)}, got {', '.join(arrays) or 'none'}"
        )
    return RBM(*(arrays[name] for name in names))


def _safetensors(path: Path) -> dict[str, np.ndarray]:
    try:
        return parse(path.read_bytes())
    except (SafetensorError, json.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a readable safetensors file: {error}") from error


def _npz(path: Path) -> dict[str, np.ndarray]:
    with path.open("rb") as file:
        try:
            return dict(np.load(file, allow_pickle=False))
        except Exception as error:  # NumPy raises half a dozen kinds on damaged files
            raise ValueError(f"{path} is not a readable .npz file of plain arrays: {error}") from error
