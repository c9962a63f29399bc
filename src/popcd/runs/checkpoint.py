"""Checkpoints: a training state in a safetensors file with a JSON header and a checksum over both.

    DIR/checkpoints/step-000020000.safetensors     the last two are kept

The header has the format version, the configuration, the step, the seed, the data hash and the checksum. Files are whole or
not there; one that was truncated or altered is noticed, and the one before it is used.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import jax
import numpy as np

from popcd.files import write_atomically
from popcd.foreign import FileError
from popcd.io import parse_safetensors, serialise
from popcd.updates import TrainState

FORMAT = 3  # 2, 3: other random bits
_KEPT = 2


def write(folder: Path, state: TrainState, header: dict[str, Any]) -> Path:
    """Add the checkpoint of a state and remove all but the last two up to it."""
    step = int(state.step)
    arrays = {name: np.asarray(leaf, order="C") for name, leaf in _by_path(state).items()}
    content = header | {"format": FORMAT, "step": step}
    content["checksum"] = _checksum(arrays, content)
    path = folder / f"step-{step:012d}.safetensors"
    write_atomically(path, serialise(arrays, {"popcd": json.dumps(content)}))
    for old in [other for other in found(folder) if other <= path][:-_KEPT]:
        old.unlink(missing_ok=True)
    return path


def found(folder: Path) -> list[Path]:
    """The checkpoints of a folder, oldest first."""
    return sorted(folder.glob("step-*.safetensors"))


def read(path: Path, like: TrainState) -> tuple[TrainState, dict[str, Any]]:
    """The state, in NumPy arrays, and the header of a checkpoint, if it is whole and has the form of `like`."""
    arrays, metadata = parse_safetensors(path)
    try:
        header = json.loads(metadata["popcd"])
        right = header.pop("checksum") == _checksum(arrays, header)
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise FileError(f"{path} has no readable popcd header") from error
    if not right:
        raise FileError(f"{path} was altered: its checksum does not fit its content")
    if header.get("format") != FORMAT:
        raise FileError(f"{path} has format {header.get('format')}, this version reads format {FORMAT}")
    expected = _by_path(like)
    forms = [{name: (leaf.shape, leaf.dtype) for name, leaf in side.items()} for side in (arrays, expected)]
    if forms[0] != forms[1]:
        raise FileError(f"{path} holds the state of a run with other settings")
    return jax.tree.unflatten(jax.tree.structure(like), [arrays[name] for name in expected]), header


def _by_path(state: TrainState) -> dict[str, Any]:
    """The leaves of a state by their paths, such as `.rbm.weights`."""
    leaves = jax.tree_util.tree_flatten_with_path(state)[0]
    return {jax.tree_util.keystr(path): leaf for path, leaf in leaves}


def _checksum(arrays: dict[str, np.ndarray], header: dict[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(arrays):
        form = f"{name} {arrays[name].shape} {arrays[name].dtype}"
        digest.update(form.encode())
        digest.update(arrays[name].tobytes())
    return digest.hexdigest()
