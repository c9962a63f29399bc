"""Damaged and wild files: each is read or refused with an error of popcd; nothing crashes, hangs or takes much memory."""

import faulthandler
import json
import random
import tracemalloc
import warnings

import h5py
import numpy as np
import pytest
import scipy.io

import popcd
import popcd.runs.checkpoint as checkpoint
from machines import WIDE
from popcd.chunks import prepare

TRAINING = prepare(
    popcd.RBM.create(16, 4), popcd.datasets.load("bars-and-stripes").train, popcd.pcd(), batch_size=8, learning_rate=0.1
)

_HANGS = 30  # seconds for a file of a few kilobytes, on however busy a machine


def originals(folder):
    """Whole files of every kind, with the function that reads them."""
    popcd.save(WIDE, folder / "m.safetensors")
    arrays = {"W": WIDE.weights, "b": WIDE.visible_bias, "c": WIDE.hidden_bias}
    np.savez(folder / "m.npz", **arrays)
    np.savez_compressed(folder / "packed.npz", **arrays)
    named = {"vishid": WIDE.weights, "visbiases": WIDE.visible_bias, "hidbiases": WIDE.hidden_bias}
    scipy.io.savemat(folder / "m.mat", named)
    scipy.io.savemat(folder / "packed.mat", named, do_compression=True)
    with h5py.File(folder / "m.h5", "w") as file:
        for name, value in {"weight_matrix": WIDE.weights, "vbias": WIDE.visible_bias, "hbias": WIDE.hidden_bias}.items():
            file[f"update_10/params/{name}"] = value
    path = checkpoint.write(folder, TRAINING.first, {"seed": 0})
    names = ("m.safetensors", "m.npz", "packed.npz", "m.mat", "packed.mat", "m.h5")
    return [(folder / name, popcd.load) for name in names] + [(path, lambda p: checkpoint.read(p, TRAINING.first))]


def damaged(chance, content):
    """Bits flipped, cut off, parts repeated or removed, numbers blown up, a wild header."""
    found = bytearray(content)
    for _ in range(chance.choice([1, 1, 2, 5, 20])):
        if not found:
            break
        place = chance.randrange(len(found))
        kind = chance.randrange(6)
        if kind == 0:
            found[place] ^= 1 << chance.randrange(8)
        elif kind == 1:
            del found[place:]
        elif kind == 2:
            found[place : place + 8] = chance.choice([b"\xff" * 8, b"\0" * 8, b"\x7f" + b"\xff" * 7, b"9" * 8])
        elif kind == 3:
            found[place:place] = found[max(0, place - 64) : place]
        elif kind == 4:
            del found[place : place + chance.randrange(1, 64)]
        else:
            header = json.dumps(
                {"weights": {"dtype": "F64", "shape": [10 ** chance.randrange(12)] * 2, "data_offsets": [0, 8]}}
            )
            found[: 8 + len(header)] = len(header).to_bytes(8, "little") + header.encode()
    return bytes(found)


def fuzz(folder, seed, rounds):
    chance, outcomes = random.Random(seed), {"read": 0, "refused": 0}
    files = originals(folder)
    contents = [(path.read_bytes(), path.with_name(f"fuzzed{path.suffix}"), read) for path, read in files]
    warnings.simplefilter("error")
    tracemalloc.start()
    for number in range(rounds):
        content, path, read = contents[number % len(contents)]
        path.write_bytes(damaged(chance, content))
        faulthandler.dump_traceback_later(_HANGS, exit=True)  # ends the tests with a trace, also inside a library
        try:
            read(path)
            outcomes["read"] += 1
        except popcd.FileError:
            outcomes["refused"] += 1
        finally:
            faulthandler.cancel_dump_traceback_later()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return outcomes, peak


def test_fuzzed_files_are_read_or_refused(tmp_path, seed):
    outcomes, peak = fuzz(tmp_path, seed, 2_000)
    assert min(outcomes.values()) > 0
    assert peak < 50e6


@pytest.mark.slow
def test_a_hundred_thousand_fuzzed_files_are_read_or_refused(tmp_path, seed):
    outcomes, peak = fuzz(tmp_path, seed, 100_000)
    print(outcomes, f"peak {peak / 1e6:.1f} MB")
    assert min(outcomes.values()) > 0
    assert peak < 50e6
