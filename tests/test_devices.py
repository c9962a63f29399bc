"""One population over many devices and processes gives the numbers of one device."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from jax.sharding import AxisType

import popcd
from popcd.devices import check_sizes, device_mesh, on_host
from spread import BATCH, ESTIMATORS, HIDDEN, NEEDED, RATE, STEPS, UPDATES, VISIBLE, annealed, resumed, trained

EPSILON = float(np.finfo(np.float32).eps)
# Another order of a sum of n terms of at most 1 changes it by n epsilon at most, in either phase; weights are sums, too.
ROUNDING = UPDATES * RATE * 4 * 2 * BATCH * EPSILON
NORM_ROUNDING = ROUNDING / RATE * np.sqrt(VISIBLE * HIDDEN + VISIBLE + HIDDEN)  # norms differ by less than vectors
SCRIPT = Path(__file__).with_name("spread.py")


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.fixture(scope="module")
def one_device():
    return {name: trained(name, None) for name in ESTIMATORS} | {"ais": annealed(None)}


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """What 2, 4 and 8 simulated devices compute, and what passes between 8 of them."""
    out = tmp_path_factory.mktemp("spread") / "found.npz"
    environment = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "TF_CPP_MIN_LOG_LEVEL": "3"}
    subprocess.run([sys.executable, SCRIPT, out], env=environment, check=True)
    return dict(np.load(out)), json.loads(out.with_suffix(".json").read_text())


def compare(found, label, name, expected):
    """The states of the first update are the same; parameters differ by rounding."""
    for part, value in expected.items():
        other = found[f"{label}/{name}/{part}"]
        if part.startswith("chains"):
            np.testing.assert_array_equal(other, value)
        else:
            assert np.abs(other - value).max() < (NORM_ROUNDING if part == "norm" else ROUNDING)


@pytest.mark.parametrize("name", NEEDED)
@pytest.mark.parametrize("label", ["2 1", "4 1", "8 4"])  # devices, of which so many share the hidden units
def test_any_number_of_devices_gives_the_numbers_of_one(label, name, simulated, one_device):
    compare(simulated[0], label, name, one_device[name])


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_on_eight_devices_gives_the_numbers_of_one(name, simulated, one_device):
    compare(simulated[0], "8 1", name, one_device[name])


@pytest.mark.parametrize("label", ["8 to 2", "1 to 4"])
def test_a_run_goes_on_with_another_number_of_devices(label, simulated):
    assert np.abs(simulated[0][label] - resumed(1, 1)).max() < 2 * ROUNDING


@pytest.mark.parametrize("label", ["2 1", "4 1", "8 1"])
def test_ais_on_many_devices_gives_the_numbers_of_one(label, simulated, one_device):
    expected = one_device["ais"]
    assert np.abs(simulated[0][f"{label}/ais"] - expected).max() < STEPS * EPSILON * np.abs(expected).max()


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_update_sends_one_gradient_and_scalars(name, simulated):
    found = simulated[1]["sent"][name]
    parameters = [VISIBLE * HIDDEN, VISIBLE, HIDDEN]
    gradients = [sizes for operation, sizes in found if operation == "all-reduce" and max(sizes) > 4]
    assert [sizes[:3] for sizes in gradients] == [parameters]
    others = [(operation, sizes) for operation, sizes in found if sizes not in gradients]
    if name == "mixture":  # every particle meets all proposals
        others = [(operation, sizes) for operation, sizes in others if operation != "all-gather"]
    assert all(max(sizes) <= 8 for _, sizes in others)
    assert {operation for operation, _ in others} <= (
        {"all-reduce", "all-gather"} if name == "leave-one-out" else {"all-reduce"}
    )


def test_chains_lie_on_all_devices_that_divide_them_in_pairs(simulated):
    assert simulated[1]["places"] == {"begun": 8, "trained": 8, "64 rows": 8, "12 rows": 6}


@pytest.mark.parametrize("n", [2, 4])
def test_processes_give_the_numbers_of_one_device(n, tmp_path, one_device):
    out, port = tmp_path / "found.npz", free_port()
    words = [sys.executable, SCRIPT, out, "--coordinator", f"127.0.0.1:{port}", "--processes", str(n), "--number"]
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"}
    started = [subprocess.Popen([*words, str(i)], env=environment, stdout=subprocess.DEVNULL) for i in range(n)]
    assert [process.wait(timeout=300) for process in started] == [0] * n
    found = dict(np.load(out))
    for name in NEEDED:
        compare(found, "None", name, one_device[name])
    expected = one_device["ais"]
    assert np.abs(found["None/ais"] - expected).max() < STEPS * EPSILON * np.abs(expected).max()


class EightDevices:
    """What `check_sizes` asks of a mesh."""

    def __init__(self, particles, hidden):
        self.shape = {"particles": particles, "hidden": hidden}


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        (
            (12, 60, None),
            "batch_size cannot be spread over 8 devices: 60 is no multiple of 16; take 48 or 64, or fewer devices",
        ),
        ((12, 8, None), "8 is no multiple of 16; take 16, or fewer devices"),
        (
            (12, 64, 100),
            "particles, chains or ladders cannot be spread over 8 devices: 100 is no multiple of 16; take 96 or 112",
        ),
        ((13, 64, None), "13 hidden units cannot be divided into hidden_shards=2 equal parts"),
    ],
)
def test_sizes_that_do_not_divide_are_named(sizes, words):
    with pytest.raises(ValueError, match=words):
        check_sizes(EightDevices(8, 2), *sizes)


def test_devices_that_are_not_there_are_named():
    with pytest.raises(ValueError, match="devices=3, but JAX sees 1"):
        device_mesh(3)
    with pytest.raises(ValueError, match="hidden_shards=2 must divide the number of devices, 1"):
        device_mesh(1, hidden_shards=2)
    with pytest.raises(ValueError, match="devices must be a whole number of at least 1"):
        popcd.train(popcd.RBM.create(4, 2), np.eye(4), popcd.cd(), iterations=1, batch_size=4, devices=0)


def test_what_lies_on_one_device_stays_there():
    rbm = popcd.RBM.create(4, 2)
    assert on_host(rbm).weights is rbm.weights


@pytest.mark.parametrize("name", ["pcd", "pop-cd, 128 particles", "mixture"])
def test_a_mesh_of_one_device_changes_nothing(name, one_device):
    mesh = jax.make_mesh((1, 1), ("particles", "hidden"), axis_types=(AxisType.Auto,) * 2)
    for part, value in trained(name, mesh).items():
        np.testing.assert_array_equal(value, one_device[name][part])
