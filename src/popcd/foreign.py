"""Arrays from the files of other programs, each read within bounds that the size of the file sets."""

import itertools
import math
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

_LARGEST = 1 << 28  # bytes that the compressed arrays of a file may unpack to


class FileError(ValueError):
    """A file that cannot be used: damaged, of another kind, or with other content than expected."""


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a `.npz` file; pickled objects are refused."""
    try:
        with zipfile.ZipFile(path) as archive:
            packed = [info for info in archive.infolist() if info.compress_type]
            if sum(info.file_size for info in packed) > _LARGEST:
                raise FileError(f"it would unpack to {sum(info.file_size for info in packed):,} bytes")
            return {info.filename.removesuffix(".npy"): _member(archive, info) for info in archive.infolist()}
    except OSError as error:
        if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
            raise
        raise FileError(f"{path} is not a readable .npz file: {error!s:.200}") from error
    except Exception as error:  # zipfile and NumPy raise a dozen kinds on damaged files
        raise FileError(f"{path} is not a readable .npz file of plain arrays: {error!s:.200}") from error


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise FileError(f"{info.filename} is packed in a way that NumPy does not use")
    if not info.compress_type and info.file_size > _size(archive):
        raise FileError(f"{info.filename} claims {info.file_size:,} bytes, more than the file has")
    with archive.open(info) as file:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(file)
        if dtype.hasobject:
            raise FileError(f"{info.filename} holds Python objects, not plain numbers")
        content = file.read(info.file_size + 1)
    if math.prod(shape) * dtype.itemsize != len(content) or dtype.itemsize == 0:
        raise FileError(f"{info.filename} has {len(content)} bytes, which is not an array of shape {shape}")
    return np.frombuffer(content, dtype).reshape(shape, order="F" if fortran else "C")


def _size(archive: zipfile.ZipFile) -> int:
    file = archive.fp
    assert file is not None
    place = file.tell()
    size = file.seek(0, 2)
    file.seek(place)
    return size


# MATLAB 5 to 7: numbers of the element types that hold numbers, and of the classes of numeric arrays
_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_MATRIX, _COMPRESSED, _COMPLEX = 14, 15, 0x0800
_NUMERIC_CLASSES = range(6, 16)


def read_mat(path: Path) -> dict[str, np.ndarray]:
    """The real numeric matrices of a MATLAB file of version 5 to 7; everything else in it is skipped."""
    content = path.read_bytes()
    order = {b"IM": "<", b"MI": ">"}.get(content[126:128])
    if content[:8] == b"\x89HDF\r\n\x1a\n" or content[512:520] == b"\x89HDF\r\n\x1a\n":
        raise FileError(f"{path} is a MATLAB file of version 7.3: save it with -v7")
    if order is None:
        raise FileError(f"{path} is not a MATLAB file of version 5 to 7")
    found, budget = {}, _LARGEST
    try:
        for kind, data in _elements(content[128:], order):
            if kind == _COMPRESSED:
                content = _inflated(data, budget)
                budget -= len(content)
                kind, data = next(_elements(content, order), (0, b""))
            if kind == _MATRIX and (matrix := _matrix(data, order)) is not None:
                found[matrix[0]] = matrix[1]
    except (struct.error, ValueError, zlib.error, IndexError) as error:
        raise FileError(f"{path} is not a readable MATLAB file: {error!s:.200}") from error
    return found


def _inflated(data: bytes, budget: int) -> bytes:
    content = zlib.decompressobj().decompress(data, budget + 1)
    if len(content) > budget:
        raise FileError(f"it would unpack to more than {_LARGEST:,} bytes")
    return content


def _elements(content: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    """Kind and data of the elements that follow each other; small ones have both in one tag of eight bytes."""
    place = 0
    while place + 8 <= len(content):
        kind, size = struct.unpack(f"{order}II", content[place : place + 8])
        if kind >> 16:
            kind, size = kind & 0xFFFF, kind >> 16
            yield kind, content[place + 4 : place + 4 + min(size, 4)]
            place += 8
            continue
        if place + 8 + size > len(content):
            raise ValueError("it was cut off")
        yield kind, content[place + 8 : place + 8 + size]
        place += 8 + (size if kind == _COMPRESSED else -(-size // 8) * 8)


def _matrix(data: bytes, order: str) -> tuple[str, np.ndarray] | None:
    """Name and values of a real numeric matrix, None for anything else."""
    parts = list(itertools.islice(_elements(data, order), 5))
    if len(parts) != 4 or len(parts[0][1]) != 8 or parts[3][0] not in _TYPES:
        return None
    (flags,) = struct.unpack(f"{order}I", parts[0][1][:4])
    if flags & 0xFF not in _NUMERIC_CLASSES or flags & _COMPLEX:
        return None
    shape = np.frombuffer(parts[1][1], f"{order}i4").tolist()
    values = np.frombuffer(parts[3][1], order + _TYPES[parts[3][0]])
    if min(shape, default=-1) < 0 or math.prod(shape) != len(values):
        raise ValueError(f"{len(values)} numbers are not an array of shape {shape}")
    if 8 * len(values) > max(_LARGEST, len(data)):
        raise ValueError(f"{len(values):,} small numbers are more than a machine has")
    return parts[2][1].decode("latin-1"), values.reshape(shape, order="F").astype(np.float64)


def read_hdf5_machine(path: Path) -> dict[str, np.ndarray]:
    """The parameters of the last update in a file of DsysDML/rbms."""

    def last(file: Any) -> dict[str, np.ndarray]:
        updates = [(int(name.removeprefix("update_")), name) for name in file if name.startswith("update_")]
        if not updates:
            raise FileError(f"{path} has no group update_N, as files of DsysDML/rbms have")
        group = file[max(updates)[1]]
        group = group.get("params", group)
        return {name: _dataset(group[name], path) for name in ("weight_matrix", "vbias", "hbias") if name in group}

    return _hdf5(path, last)


def read_hdf5(path: Path) -> dict[str, np.ndarray]:
    """The arrays of plain numbers at the top of an HDF5 file."""
    return _hdf5(path, lambda file: {n: _dataset(file[n], path) for n in file if hasattr(file[n], "nbytes")})


def _hdf5(path: Path, read: Callable[[Any], dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    try:
        import h5py
    except ImportError as error:
        raise FileError(f"reading {path} needs h5py: pip install 'popcd[hdf5]'") from error
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        with h5py.File(path, "r") as file:
            return read(file)
    except FileError:
        raise
    except (OSError, KeyError, ValueError, RuntimeError, TypeError, AttributeError) as error:
        raise FileError(f"{path} is not a readable HDF5 file: {error!s:.200}") from error


def _dataset(dataset: Any, path: Path) -> np.ndarray:
    """A data set of plain numbers, if it is not larger than its file can hold."""
    if dataset.dtype.kind not in "biuf":
        raise FileError(f"{path} has no plain numbers at {dataset.name}")
    if dataset.nbytes > max(path.stat().st_size, 0 if dataset.compression is None else _LARGEST):
        raise FileError(f"{path} claims {dataset.nbytes:,} bytes at {dataset.name}, more than it can hold")
    return np.asarray(dataset[()])
