"""`popcd train` in several processes on this machine."""

import json
import os
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest
from click.testing import CliRunner

import popcd
from popcd.cli import main
from processes import command
from test_devices import free_port

BASE = ("--data", "bars-and-stripes", "--hidden", 6, "--batch-size", 32, "--estimator", "pcd", "--iterations", 3_000, "-q")
BASE += ("--evaluate-every", 1_000, "--checkpoint-every", 100)


def start(n, *words, each=lambda number: ()):
    """Processes of one run; `each` gives further words of a process."""
    place = ("--coordinator", f"127.0.0.1:{free_port()}", "--num-processes", n, "--join-timeout", 100)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return [subprocess.Popen(command("train", *words, *place, "--process-id", i, *each(i)), **pipes) for i in range(n)]


def ended(processes):
    """Exit codes and what was said."""
    said = [process.communicate(timeout=200) for process in processes]
    return [process.returncode for process in processes], said


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "run"
    codes, said = ended(start(2, *BASE, "--out", folder, "--json"))
    assert codes == [0, 0]
    return folder, said


def test_process_0_reports_and_the_other_is_silent(uninterrupted):
    folder, said = uninterrupted
    assert json.loads(said[0][0])["model"] == str(folder / "model.safetensors")
    assert said[1][0] == ""
    assert [row["step"] for row in map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())] == [
        1_000,
        2_000,
        3_000,
    ]


@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_process_ends_the_others_and_the_run_goes_on_as_if_nothing_had_been(victim, uninterrupted, tmp_path):
    folder = tmp_path / "run"
    processes = start(2, *BASE, "--out", folder)
    while not list((folder / "checkpoints").glob("step-*")):
        assert all(process.poll() is None for process in processes)
        time.sleep(0.01)
    processes[victim].send_signal(signal.SIGKILL)
    began = time.monotonic()
    codes, said = ended(processes)
    assert time.monotonic() - began < 60
    assert (codes[victim], codes[1 - victim]) == (-signal.SIGKILL, 1)
    assert f"process {1 - victim} lost another process" in said[1 - victim][1]
    assert f"--resume {folder}" in said[1 - victim][1]
    assert not (folder / "model.safetensors").exists()
    shutil.copytree(folder, tmp_path / "alone")
    assert ended(start(2, "--resume", folder, "-q"))[0] == [0, 0]
    assert (folder / "model.safetensors").read_bytes() == (uninterrupted[0] / "model.safetensors").read_bytes()
    if victim == 0:  # what two processes began, one can end
        done = subprocess.run(command("train", "--resume", tmp_path / "alone", "-q"), capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        assert popcd.load(tmp_path / "alone" / "model.safetensors").n_hidden == 6


def test_a_signal_to_one_process_stops_all_with_a_checkpoint(tmp_path):
    folder = tmp_path / "run"
    words = [*BASE[:9], 100_000, *BASE[10:]]
    processes = start(2, *words, "--out", folder)
    while not list((folder / "checkpoints").glob("step-*")):
        time.sleep(0.01)
    processes[1].send_signal(signal.SIGTERM)
    codes, said = ended(processes)
    assert codes == [1, 1]
    assert "stopped by a signal to another process after update" in said[0][1]
    assert f"continue: popcd train --resume {folder}" in said[0][1]


def test_slurm_is_found(tmp_path):
    words = (
        "--data",
        "bars-and-stripes",
        "--hidden",
        2,
        "--batch-size",
        32,
        "--iterations",
        10,
        "--out",
        tmp_path / "run",
        "-q",
    )
    job = {"SLURM_JOB_ID": str(free_port()), "SLURM_NTASKS": "2", "SLURM_STEP_NODELIST": "127.0.0.1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    processes = [
        subprocess.Popen(
            command("train", *words, "--distributed"),
            env=os.environ | job | {"SLURM_PROCID": str(number), "SLURM_LOCALID": str(number)},
            **pipes,
        )
        for number in range(2)
    ]
    codes, said = ended(processes)
    assert codes == [0, 0], said
    assert (tmp_path / "run" / "model.safetensors").exists()


def test_without_a_launcher_the_processes_have_to_be_named(tmp_path):
    done = subprocess.run(command("train", *BASE, "--out", tmp_path / "run", "--distributed"), capture_output=True, text=True)
    assert done.returncode == 1
    assert "name --coordinator HOST:PORT, --num-processes and --process-id" in done.stderr


def test_processes_with_other_data_are_refused(tmp_path):
    for number in range(2):
        np.save(tmp_path / f"{number}.npy", np.eye(8, dtype=np.uint8)[:: 1 - 2 * number])
    words = ("--hidden", 2, "--batch-size", 4, "--iterations", 10, "--out", tmp_path / "run", "-q")
    codes, said = ended(start(2, *words, each=lambda number: ("--data", tmp_path / f"{number}.npy")))
    assert codes == [1, 1]
    for _, errors in said:
        assert "processes do not agree with process 0: another configuration in processes [1]; another data" in errors
    assert not (tmp_path / "run").exists()


def test_a_coordinator_that_is_not_there_is_named(tmp_path):
    words = ("--coordinator", f"127.0.0.1:{free_port()}", "--num-processes", 2, "--process-id", 1, "--join-timeout", 2)
    done = subprocess.run(command("train", *BASE, "--out", tmp_path / "run", *words), capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: waited 2 s in vain for the coordinator at 127.0.0.1")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--coordinator", "127.0.0.1:1"), "go together; missing: num_processes, process_id"),
        (
            ("--coordinator", "a:1", "--num-processes", "2", "--process-id", "2"),
            "--process-id must be below --num-processes, 2",
        ),
        (("--devices", "3"), "devices=3, but JAX sees 1"),
    ],
)
def test_bad_words_are_named(words, said, tmp_path):
    done = CliRunner().invoke(main, ["train", *map(str, BASE), "--out", str(tmp_path / "run"), *words])
    assert done.exit_code in (1, 2)
    assert said in done.stderr
