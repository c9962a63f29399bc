import io
import struct
import tracemalloc
import zipfile
import zlib

import h5py
import numpy as np
import pytest
import scipy.io

import popcd
from machines import WIDE
from popcd.foreign import read_hdf5, read_mat, read_npz

PARTS = (WIDE.weights, WIDE.visible_bias, WIDE.hidden_bias)


def assert_wide(rbm, **tolerance):
    for one, two in zip((rbm.weights, rbm.visible_bias, rbm.hidden_bias), PARTS, strict=True):
        np.testing.assert_allclose(one, two, **({"rtol": 0} | tolerance))


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("turn", [np.asarray, lambda v: v[None, :], lambda v: v[:, None]], ids=["vector", "row", "column"])
def test_matlab_files_of_the_2008_form_are_read(tmp_path, compressed, turn):
    content = {"vishid": PARTS[0], "visbiases": turn(PARTS[1]), "hidbiases": turn(PARTS[2]), "batch": {"a": 1}, "word": "hello"}
    scipy.io.savemat(tmp_path / "m.mat", content, do_compression=compressed)
    assert_wide(popcd.load(tmp_path / "m.mat"))


def test_small_and_whole_numbers_of_matlab_files_are_read(tmp_path):
    content = {"a": np.array([[1, 2]], np.uint8), "b": np.array([[3]], np.int16), "c": np.array([[1j]]), "e": np.zeros((0, 2))}
    scipy.io.savemat(tmp_path / "m.mat", content)
    found = read_mat(tmp_path / "m.mat")
    assert {name: array.tolist() for name, array in found.items()} == {"a": [[1, 2]], "b": [[3]], "e": []}


def test_files_of_dsysdml_rbms_are_read_at_their_last_update(tmp_path):
    with h5py.File(tmp_path / "r.h5", "w") as file:
        for number, factor in ((9, 0.0), (10, 1.0)):
            group = file.create_group(f"update_{number}")
            for name, part in zip(("weight_matrix", "vbias", "hbias"), PARTS, strict=True):
                group[f"params/{name}"] = factor * np.asarray(part)
        file["parallel_chains"] = np.zeros((3, 5))
    assert_wide(popcd.load(tmp_path / "r.h5"))


def test_hdf5_files_without_a_machine_are_named(tmp_path):
    with h5py.File(tmp_path / "r.h5", "w") as file:
        file["x"] = np.zeros(3)
        file["words"] = "text"
    with pytest.raises(popcd.FileError, match="no group update_N"):
        popcd.load(tmp_path / "r.h5")
    with pytest.raises(popcd.FileError, match="no plain numbers at /words"):
        read_hdf5(tmp_path / "r.h5")
    (tmp_path / "b.h5").write_bytes(b"nothing")
    with pytest.raises(popcd.FileError, match="not a readable HDF5 file"):
        popcd.load(tmp_path / "b.h5")
    with pytest.raises(FileNotFoundError):
        popcd.load(tmp_path / "none.h5")


def test_hdf5_files_that_claim_more_than_they_hold_are_refused(tmp_path):
    with h5py.File(tmp_path / "r.h5", "w") as file:
        file.create_dataset("train", (10**6, 10**6), np.uint8, chunks=(100, 100))
    with pytest.raises(popcd.FileError, match=r"claims 1,000,000,000,000 bytes"):
        read_hdf5(tmp_path / "r.h5")


def test_scikit_learns_machine_is_read():
    class Fitted:
        components_, intercept_visible_, intercept_hidden_ = np.asarray(PARTS[0]).T, PARTS[1], PARTS[2]

    assert_wide(popcd.load(Fitted()))


def npz(path, name, header, body):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, header + body)


def header_of(shape, descr="<f8"):
    content = io.BytesIO()
    np.lib.format.write_array_header_1_0(content, {"descr": descr, "fortran_order": False, "shape": shape})
    return content.getvalue()


def test_an_npz_cannot_ask_for_more_memory_than_it_holds(tmp_path):
    npz(tmp_path / "claims.npz", "W.npy", header_of((10**6, 10**6)), b"\0" * 100)
    npz(tmp_path / "negative.npz", "W.npy", header_of((-1, 5)), b"\0" * 100)
    tracemalloc.start()
    for name in ("claims", "negative"):
        with pytest.raises(popcd.FileError):
            read_npz(tmp_path / f"{name}.npz")
    assert tracemalloc.get_traced_memory()[1] < 1e7
    tracemalloc.stop()


def test_an_npz_that_unpacks_to_gigabytes_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("popcd.foreign._LARGEST", 10**6)
    npz(tmp_path / "bomb.npz", "W.npy", header_of((1000, 1000)), b"\0" * 8 * 10**6)
    with pytest.raises(popcd.FileError, match="it would unpack to 8,000,"):
        read_npz(tmp_path / "bomb.npz")
    scipy.io.savemat(tmp_path / "bomb.mat", {"vishid": np.zeros((1000, 1000))}, do_compression=True)
    with pytest.raises(popcd.FileError, match="would unpack to more than 1,000,000 bytes"):
        read_mat(tmp_path / "bomb.mat")


def test_matlab_files_of_many_small_parts_or_small_numbers_stay_small(tmp_path, monkeypatch):
    monkeypatch.setattr("popcd.foreign._LARGEST", 10**6)
    scipy.io.savemat(tmp_path / "m.mat", {"vishid": np.zeros((500, 500), np.uint8)}, do_compression=True)
    with pytest.raises(popcd.FileError, match="250,000 small numbers are more than a machine has"):
        read_mat(tmp_path / "m.mat")
    header = (tmp_path / "m.mat").read_bytes()[:128]
    packed = zlib.compress(struct.pack("<II", 14, 900_000) + b"\0" * 900_000)
    (tmp_path / "m.mat").write_bytes(header + struct.pack("<II", 15, len(packed)) + packed)
    tracemalloc.start()
    assert read_mat(tmp_path / "m.mat") == {}
    assert tracemalloc.get_traced_memory()[1] < 5e6
    tracemalloc.stop()


def test_wrong_kinds_inside_an_hdf5_file_are_named(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["update_1"] = np.zeros(3)
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file.create_group("update_1/weight_matrix")
    for name in "ab":
        with pytest.raises(popcd.FileError):
            popcd.load(tmp_path / f"{name}.h5")


def test_columns_first_arrays_and_python_objects(tmp_path):
    np.savez(tmp_path / "f.npz", W=np.asfortranarray(PARTS[0]), b=PARTS[1], c=PARTS[2])
    assert_wide(popcd.load(tmp_path / "f.npz"))
    np.savez(tmp_path / "o.npz", W=np.array([{}]))
    with pytest.raises(popcd.FileError, match="holds Python objects"):
        read_npz(tmp_path / "o.npz")
    with pytest.raises(FileNotFoundError):
        read_npz(tmp_path / "none.npz")


def test_other_files_are_named(tmp_path):
    (tmp_path / "x.mat").write_bytes(b"x" * 200)
    with pytest.raises(popcd.FileError, match="is not a MATLAB file of version 5 to 7"):
        popcd.load(tmp_path / "x.mat")
    with h5py.File(tmp_path / "y.mat", "w") as file:
        file["x"] = 1
    with pytest.raises(popcd.FileError, match=r"version 7.3: save it with -v7"):
        popcd.load(tmp_path / "y.mat")
    scipy.io.savemat(tmp_path / "z.mat", {"vishid": PARTS[0]})
    (tmp_path / "z.mat").write_bytes((tmp_path / "z.mat").read_bytes()[:-30])
    with pytest.raises(popcd.FileError, match="it was cut off"):
        popcd.load(tmp_path / "z.mat")
