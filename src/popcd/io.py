"""Machines in files: written as safetensors, read from several forms, never by running what a file says.

Every reader is bounded: what it allocates follows from the size of the file, not from numbers that the file claims.
"""

import json
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from popcd.files import write_atomically
from popcd.foreign import FileError, read_hdf5_machine, read_mat, read_npz
from popcd.rbm import RBM

_NAMES = ("weights", "visible_bias", "hidden_bias")
_DTYPES = ("F16", "F32", "F64", "I8", "I16", "I32", "I64", "U8", "U16", "U32", "U64", "BOOL")
_LONGEST_HEADER = 1 << 20


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
    write_atomically(Path(path), serialise(arrays, {"popcd": json.dumps({"format": 1})}))


def load(source: Any) -> RBM:
    """Read a machine.

    Parameters
    ----------
    source : a file of `popcd.save`; a `.npz` with W, b, c; a `.mat` (version 5 to 7) with vishid, visbiases, hidbiases; a
        `.h5` of DsysDML/rbms, whose last saved update is taken; or a fitted `sklearn.neural_network.BernoulliRBM`.

    Raises
    ------
    FileError
        Where a file holds no machine. Nothing in a file is run, and none can ask for more memory than its size warrants.

    Examples
    --------
    >>> import tempfile, numpy as np, popcd
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/m.npz", W=np.zeros((3, 2)), b=np.zeros(3), c=np.zeros(2))
    ...     popcd.load(f"{folder}/m.npz").n_visible
    3
    """
    if hasattr(source, "components_"):
        return RBM(source.components_.T, source.intercept_visible_, source.intercept_hidden_)
    path = Path(source)
    readers = {".npz": (read_npz, ("W", "b", "c")), ".mat": (read_mat, ("vishid", "visbiases", "hidbiases"))}
    readers |= dict.fromkeys((".h5", ".hdf5"), (read_hdf5_machine, ("weight_matrix", "vbias", "hbias")))
    read, names = readers.get(path.suffix, (lambda p: parse_safetensors(p)[0], _NAMES))
    arrays = read(path)
    missing = [name for name in names if name not in arrays]
    if missing:
        have = ", ".join(arrays) or "none"
        raise FileError(f"{path} has no array {', '.join(missing)}: expected {', '.join(names)}, got {have[:200]}")
    weights, *biases = (arrays[name] for name in names)
    try:
        return RBM(weights, *(_vector(bias) for bias in biases))
    except (ValueError, TypeError) as error:
        raise FileError(f"{path} holds no machine: {error}") from error


def _vector(bias: np.ndarray) -> np.ndarray:
    """MATLAB has vectors as matrices of one row or column."""
    return bias.ravel() if bias.ndim == 2 and 1 in bias.shape else bias


def serialise(arrays: dict[str, np.ndarray], metadata: dict[str, str]) -> bytes:
    """The bytes of a safetensors file."""
    return safetensors.numpy.save(arrays, metadata=metadata)


def parse_safetensors(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The arrays and the metadata of a safetensors file."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    if len(content) < 8 or length > min(_LONGEST_HEADER, len(content) - 8):
        raise FileError(f"{path} is not a safetensors file, or was cut off")
    try:
        header = json.loads(content[8 : 8 + length])
        metadata = header.pop("__metadata__", {})
        odd = [entry["dtype"] for entry in header.values() if entry["dtype"] not in _DTYPES]
        if odd:
            raise FileError(f"{path} has arrays of kind {odd[0]!s:.20}: expected {', '.join(_DTYPES)}")
        return safetensors.numpy.load(content), metadata
    except (SafetensorError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise FileError(f"{path} is not a readable safetensors file: {error!s:.200}") from error
