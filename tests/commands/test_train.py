"""`popcd train` as a user runs it: whole processes, killed, resumed, stopped, on bad folders."""

import errno
import json
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from click.testing import CliRunner
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import popcd
import popcd.runs.checkpoint as checkpoint
import popcd.runs.run as run_module
from popcd.cli import main
from popcd.runs.configuration import configuration
from processes import command

# Rows of metrics and checkpoints fall on different updates
SET = ("--data", "bars-and-stripes", "--hidden", "8", "--batch-size", "8")
BASE = (*SET, "--iterations", "400", "--evaluate-every", "30", "--checkpoint-every", "20")
WORDS = {
    "cd": ("--estimator", "cd"),
    "pcd": ("--estimator", "pcd", "--k", "2"),
    "pt": ("--estimator", "pt", "--temperatures", "4"),
    "pop-cd": ("--estimator", "pop-cd", "--schedule", "linear", "--centered"),
    "mixture": ("--proposal", "mixture", "--particles", "20", "--schedule", "cosine"),
    "exact": ("--estimator", "exact"),
}


def train(*arguments):
    return CliRunner().invoke(main, ["train", *(str(a) for a in arguments)])


def metrics(folder):
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


def assert_same(one, two):
    assert (one / "model.safetensors").read_bytes() == (two / "model.safetensors").read_bytes()
    assert metrics(one) == metrics(two)


def test_a_run_leaves_model_metrics_configuration_and_two_checkpoints(tmp_path):
    out = tmp_path / "new" / "run"
    done = train(*BASE, *WORDS["pop-cd"], "--out", out, "--json")
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert result["model"] == str(out / "model.safetensors")
    assert sorted(p.name for p in out.iterdir()) == [
        ".lock",
        "checkpoints",
        "config.toml",
        "metrics.jsonl",
        "model.safetensors",
        "run.json",
    ]
    assert len(list((out / "checkpoints").iterdir())) == 2
    rows = metrics(out)
    assert [row["step"] for row in rows] == [*range(30, 400, 30), 400]
    exact = popcd.log_likelihood(popcd.load(out / "model.safetensors"), popcd.datasets.load("bars-and-stripes").train)
    np.testing.assert_allclose(rows[-1]["log_likelihood"], exact.value)
    assert {"ess", "gradient_norm", "largest_weight"} <= rows[-1].keys()
    assert "training 100%" in done.stderr


def test_the_command_line_trains_what_the_library_trains(tmp_path):
    train(*BASE, *WORDS["pcd"], "--learning-rate", 0.2, "--start", "uniform", "--seed", 3, "--out", tmp_path / "a", "-q")
    data = popcd.datasets.load("bars-and-stripes").train
    settings = {"learning_rate": 0.2, "iterations": 400, "batch_size": 8, "seed": 3}
    run = popcd.train(popcd.RBM.create(16, 8, seed=3), data, popcd.pcd(2), **settings)
    np.testing.assert_array_equal(popcd.load(tmp_path / "a" / "model.safetensors").weights, run.rbm.weights)


def test_flags_win_over_the_file_and_the_resolved_settings_train_the_same(tmp_path):
    (tmp_path / "c.toml").write_text(
        'data = "bars-and-stripes"\nhidden = 3\nbatch_size = 8\niterations = 30\nestimator = "cd"\n'
    )
    assert train("--config", tmp_path / "c.toml", "--hidden", 5, "--out", tmp_path / "a", "-q").exit_code == 0
    assert popcd.load(tmp_path / "a" / "model.safetensors").n_hidden == 5
    assert train("--config", tmp_path / "a" / "config.toml", "--out", tmp_path / "b", "-q").exit_code == 0
    assert_same(tmp_path / "a", tmp_path / "b")


def test_another_estimator_does_not_inherit_settings_that_it_does_not_know(tmp_path):
    settings = 'estimator = "pop-cd"\nk = 2\nproposal = "mixture"\ndata = "bars-and-stripes"\nhidden = 3\n'
    (tmp_path / "c.toml").write_text(f"{settings}batch_size = 8\niterations = 30\n")
    assert train("--config", tmp_path / "c.toml", "--estimator", "cd", "--out", tmp_path / "a", "-q").exit_code == 0
    resolved = (tmp_path / "a" / "config.toml").read_text()
    assert 'estimator = "cd"\nk = 2\n' in resolved
    assert "proposal" not in resolved


LONG = {"pt": 100_000, "exact": 100_000}  # updates that take seconds, so that kills hit a run at work


def kill_and_resume(folder, word, times):
    """SIGKILL at random moments after a new checkpoint; returns how many hit a run that had not come to its end."""
    whole, killed = folder / "whole", folder / "killed"
    n, words = LONG.get(word, 300_000), WORDS[word]
    long = (*SET, "--iterations", n, "--evaluate-every", n // 70, "--checkpoint-every", n // 100)
    subprocess.run(command("train", *long, *words, "--out", whole, "-q"), check=True)
    hits = 0
    for _ in range(times):
        arguments = ("--resume", killed) if (killed / "run.json").exists() else (*long, *words, "--out", killed)
        process = subprocess.Popen(command("train", *arguments), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        before = set((killed / "checkpoints").glob("step*"))
        while process.poll() is None and set((killed / "checkpoints").glob("step*")) == before:
            time.sleep(0.01)
        time.sleep(random.uniform(0, 0.2))
        process.kill()
        process.wait()
        hits += not (killed / "model.safetensors").exists()
    subprocess.run(command("train", "--resume", killed, "-q"), check=True)
    assert_same(whole, killed)
    return hits


def test_a_killed_run_resumes_bit_for_bit(tmp_path):
    assert kill_and_resume(tmp_path, "pcd", times=3) > 0


@pytest.mark.slow
@pytest.mark.parametrize("word", WORDS)
def test_a_run_killed_twenty_times_resumes_bit_for_bit(tmp_path, word):
    hits = kill_and_resume(tmp_path, word, times=20)
    print(word, "killed between its first checkpoint and its end", hits, "times")
    assert hits >= 10


def test_a_run_killed_while_it_began_begins_again(tmp_path):
    (tmp_path / "a" / "checkpoints").mkdir(parents=True)
    (tmp_path / "a" / "config.toml").touch()
    (tmp_path / "a" / ".run.json.x").touch()
    (tmp_path / "a" / ".lock").touch()
    assert train(*BASE, "--out", tmp_path / "a", "-q").exit_code == 0


def test_settings_that_cannot_be_trained_leave_no_folder(tmp_path):
    assert train("--data", "letters", "--hidden", 100, "--estimator", "exact", "--out", tmp_path / "a", "-q").exit_code == 1
    assert not (tmp_path / "a").exists()
    assert train(*SET[:4], "--batch-size", 33, "--out", tmp_path / "a", "-q").exit_code == 1
    assert not (tmp_path / "a").exists()


def test_a_changed_configuration_or_no_usable_checkpoint_is_refused_and_nothing_lost(tmp_path):
    train(*BASE, "--out", tmp_path / "a", "-q")
    rows, config = metrics(tmp_path / "a"), tmp_path / "a" / "config.toml"
    whole = config.read_text()
    config.write_text(whole.replace("seed = 0", "seed = 1"))
    done = train("--resume", tmp_path / "a", "-q")
    assert (done.exit_code, "config.toml in" in done.stderr) == (1, True)
    config.write_text(whole)
    for path in (tmp_path / "a" / "checkpoints").iterdir():
        path.write_bytes(b"damaged")
    for _ in range(2):
        done = train("--resume", tmp_path / "a", "-q")
        assert (done.exit_code, "no checkpoint in" in done.stderr) == (1, True)
        assert metrics(tmp_path / "a") == rows


def test_a_run_of_another_format_is_named(tmp_path):
    train(*BASE, "--out", tmp_path / "a", "-q")
    about = json.loads((tmp_path / "a" / "run.json").read_text())
    (tmp_path / "a" / "run.json").write_text(json.dumps(about | {"format": 1}))
    assert "is a run of format 1, this version continues format 3" in train("--resume", tmp_path / "a").stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_writes_a_checkpoint_and_says_how_to_go_on(tmp_path, number):
    out, words = tmp_path / "a", (*SET, "--iterations", "2000000", "--estimator", "cd")
    process = subprocess.Popen(command("train", *words, "--out", out), stderr=subprocess.PIPE, text=True)
    while not (out / "metrics.jsonl").exists() and process.poll() is None:
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(number)
    error = process.communicate(timeout=60)[1]
    assert process.returncode == 1
    assert f"stopped by {number.name} after update" in error
    assert f"popcd train --resume {out}" in error
    assert "Traceback" not in error
    assert len(list((out / "checkpoints").iterdir())) >= 1
    assert not (out / "model.safetensors").exists()


def test_files_that_a_run_did_not_write_are_left_alone(tmp_path):
    theirs = tmp_path / "a"
    theirs.mkdir()
    for name in (".pre-commit-config.yaml", ".env.local"):
        (theirs / name).write_text("mine")
    assert train(*BASE, "--out", theirs, "-q").exit_code == 0
    assert train("--resume", theirs, "-q").exit_code == 0
    assert {(theirs / name).read_text() for name in (".pre-commit-config.yaml", ".env.local")} == {"mine"}
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "config.toml").write_text("# mine\n")
    done = train(*BASE, "--config", tmp_path / "b" / "config.toml", "--out", tmp_path / "b")
    assert (done.exit_code, "holds other files" in done.stderr) == (1, True)
    assert (tmp_path / "b" / "config.toml").read_text() == "# mine\n"


def test_two_processes_do_not_train_in_one_folder(tmp_path):
    out = tmp_path / "a"
    words = (*SET, "--iterations", 2_000_000, "--estimator", "cd", "--checkpoint-every", 10_000)
    process = subprocess.Popen(command("train", *words, "--out", out), stderr=subprocess.DEVNULL)
    while not list((out / "checkpoints").glob("step*")) and process.poll() is None:
        time.sleep(0.05)
    done = train("--resume", out)
    process.kill()
    process.wait()
    assert done.exit_code == 1
    assert f"another process is training in {out}" in done.stderr


def test_a_slow_run_writes_checkpoints_by_the_clock_and_resumes_bit_for_bit(tmp_path, monkeypatch):
    words = (*SET, "--iterations", 4000, "--evaluate-every", 4000, "--checkpoint-every", 4000, "-q")
    assert train(*words, "--out", tmp_path / "a").exit_code == 0
    monkeypatch.setattr(run_module, "_SAVED_EVERY", 0.0)
    monkeypatch.setattr(checkpoint, "_KEPT", 100)
    assert train(*words, "--out", tmp_path / "b").exit_code == 0
    paths = checkpoint.found(tmp_path / "b" / "checkpoints")
    assert len(paths) > 3
    for path in paths[2:]:
        path.unlink()
    (tmp_path / "b" / "model.safetensors").unlink()
    assert train("--resume", tmp_path / "b", "-q").exit_code == 0
    assert_same(tmp_path / "a", tmp_path / "b")


@pytest.mark.parametrize(
    ("settings", "together"),
    [
        ({"estimator": "cd"}, 1594),
        ({"estimator": "cd", "k": 100}, 31),
        ({"estimator": "pt", "n_temperatures": 40, "sweeps": 10}, 7),
        ({"estimator": "exact"}, 1),
    ],
)
def test_costly_updates_are_run_few_at_a_time_so_that_signals_are_heard(settings, together):
    config = configuration({"data": "mnist", "hidden": 20, "batch_size": 500} | settings)
    assert run_module._CHUNK_WORK // run_module.update_work(config, 784) == together


def test_what_a_killed_process_had_begun_to_write_is_removed(tmp_path):
    train(*BASE, "--out", tmp_path / "a", "-q")
    left = [tmp_path / "a" / ".metrics.jsonl.x1", tmp_path / "a" / "checkpoints" / ".step-000000000010.safetensors.x2"]
    for path in left:
        path.touch()
    assert train("--resume", tmp_path / "a", "-q").exit_code == 0
    assert not any(path.exists() for path in left)


def test_other_versions_on_resuming_are_told(tmp_path):
    train(*BASE, "--out", tmp_path / "a", "-q")
    about = json.loads((tmp_path / "a" / "run.json").read_text())
    (tmp_path / "a" / "run.json").write_text(json.dumps(about | {"jax": "0.1"}))
    assert "continued with other versions" in (told := train("--resume", tmp_path / "a", "-q").stderr)
    assert "jax 0.1 then" in told


def test_a_damaged_checkpoint_is_told_and_the_one_before_is_used(tmp_path):
    train(*BASE, *WORDS["pcd"], "--out", tmp_path / "a", "-q")
    train(*BASE, *WORDS["pcd"], "--out", tmp_path / "b", "-q")
    (tmp_path / "b" / "model.safetensors").unlink()
    newest = max((tmp_path / "b" / "checkpoints").iterdir())
    newest.write_bytes(newest.read_bytes()[:-10])
    done = train("--resume", tmp_path / "b", "-q")
    assert done.exit_code == 0
    assert f"{newest}" in done.stderr
    assert f"kept as {newest.name}.damaged" in done.stderr
    assert_same(tmp_path / "a", tmp_path / "b")


def test_a_finished_run_is_not_trained_again(tmp_path):
    train(*BASE, "--out", tmp_path / "a", "-q")
    before = (tmp_path / "a" / "model.safetensors").read_bytes()
    assert train("--resume", tmp_path / "a", "-q").exit_code == 0
    assert (tmp_path / "a" / "model.safetensors").read_bytes() == before


def test_data_that_changed_are_refused_on_resuming(tmp_path):
    np.save(tmp_path / "d.npy", np.eye(16, dtype=np.uint8))
    words = ("--data", tmp_path / "d.npy", "--hidden", 3, "--batch-size", 4, "--iterations", 20)
    assert train(*words, "--out", tmp_path / "a", "-q").exit_code == 0
    np.save(tmp_path / "d.npy", 1 - np.eye(16, dtype=np.uint8))
    done = train("--resume", tmp_path / "a")
    assert done.exit_code == 1
    assert "the data changed since the run in" in done.stderr


def test_folders_with_a_run_or_other_files_are_refused(tmp_path):
    train(*BASE, "--out", tmp_path / "a", "-q")
    kept = (tmp_path / "a" / "model.safetensors").read_bytes()
    done = train(*BASE, "--out", tmp_path / "a")
    assert (done.exit_code, "holds a run: continue it with --resume" in done.stderr) == (1, True)
    assert (tmp_path / "a" / "model.safetensors").read_bytes() == kept
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "thesis.tex").touch()
    assert "holds other files" in train(*BASE, "--out", tmp_path / "b").stderr
    assert "holds no run" in train("--resume", tmp_path / "b").stderr


def test_a_folder_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    """Root may write everywhere, so the system's answer is put in its place."""

    def refused(*_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(tmp_path))

    monkeypatch.setattr("pathlib.Path.mkdir", refused)
    done = train(*BASE, "--out", tmp_path / "locked" / "a")
    assert done.exit_code == 1
    assert "Permission denied" in done.stderr


def test_a_path_below_a_file_is_named(tmp_path):
    (tmp_path / "file").touch()
    done = train(*BASE, "--out", tmp_path / "file" / "a")
    assert done.exit_code == 1
    assert "Not a directory" in done.stderr


def test_a_full_disk_is_named_and_the_last_checkpoint_stays(tmp_path):
    """A limit on the size of files stands for a full disk: the growing metrics file reaches it first."""
    words = (*SET, "--iterations", 300, "--evaluate-every", 1, "--checkpoint-every", 20, "--out", tmp_path / "a", "-q")
    done = subprocess.run(command("train", *words, largest_file=8_000), capture_output=True, text=True)
    assert done.returncode == 1
    assert "File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert train("--resume", tmp_path / "a", "-q").exit_code == 0
    train(*(w if w != tmp_path / "a" else tmp_path / "b" for w in words))
    assert_same(tmp_path / "a", tmp_path / "b")


def test_tensorboard_files_hold_the_metrics(tmp_path):
    assert train(*BASE, "--log", "tensorboard", "--out", tmp_path / "a", "-q").exit_code == 0
    events = EventAccumulator(str(tmp_path / "a" / "tensorboard")).Reload()
    found = [(event.step, event.value) for event in events.Scalars("log_likelihood")]
    np.testing.assert_allclose(found, [(row["step"], row["log_likelihood"]) for row in metrics(tmp_path / "a")], rtol=1e-6)


class Recorder:
    """Stands for a service's module."""

    def __init__(self):
        self.calls = []

    def search_runs(self, **named):
        """MLflow's list of runs that were begun."""
        self.calls.append(("search_runs", (), named))
        return []

    def __getattr__(self, name):
        def call(*arguments, **named):
            self.calls.append((name, arguments, named))
            return self

        return call


@pytest.mark.parametrize(("service", "call"), [("wandb", "log"), ("mlflow", "log_metrics")])
def test_services_are_imported_only_when_asked_for_and_hear_every_row(tmp_path, monkeypatch, service, call):
    recorder = Recorder()
    monkeypatch.setitem(sys.modules, service, recorder)
    assert train(*BASE, "--out", tmp_path / "quiet", "-q").exit_code == 0
    assert recorder.calls == []
    assert train(*BASE, "--log", service, "--out", tmp_path / "a", "-q").exit_code == 0
    heard = [(named["step"], arguments[0]["log_likelihood"]) for name, arguments, named in recorder.calls if name == call]
    assert heard == [(row["step"], row["log_likelihood"]) for row in metrics(tmp_path / "a")]


def test_a_resumed_run_goes_on_in_its_services_under_its_own_name(tmp_path, monkeypatch):
    recorder = Recorder()
    for service in ("wandb", "mlflow"):
        monkeypatch.setitem(sys.modules, service, recorder)
    for folder in ("one/a", "two/a"):
        assert train(*BASE, "--log", "wandb", "--log", "mlflow", "--out", tmp_path / folder, "-q").exit_code == 0
        assert train("--resume", tmp_path / folder, "-q").exit_code == 0
    ids = [named["id"] for name, _, named in recorder.calls if name == "init"]
    assert (ids[0], ids[2]) == (ids[1], ids[3])
    assert ids[0] != ids[2]
    sought = [named["filter_string"] for name, _, named in recorder.calls if name == "search_runs"]
    assert sought == [f"tags.popcd = '{one}'" for one in ids]


def test_a_service_that_is_not_installed_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    done = train(*BASE, "--log", "wandb", "--out", tmp_path / "a")
    assert done.exit_code == 1
    assert "pip install 'popcd[wandb]'" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([*BASE], 2, "name a folder for the run with --out"),
        (["--hidden", "3", "--out", "x"], 2, "data must be said"),
        (["--data", "cifar", "--hidden", "3", "--out", "x"], 1, "unknown data set 'cifar': expected one of bars-and-stripes"),
        (
            ["--data", "letters", "--hidden", "3", "--estimator", "cd", "--proposal", "mixture", "--out", "x"],
            2,
            "no setting proposal",
        ),
        ([*SET[:4], "--batch-size", "33", "--out", "x"], 1, "batch_size must be at most the number of rows, 32, got 33"),
        ([*SET, "--threshold", "0.5", "--out", "x"], 1, "bars-and-stripes has no option threshold: it knows size, noise, seed"),
        ([*SET, "--seed", 2**63, "--out", "x"], 2, "seed from 0 to 2"),
    ],
)
def test_bad_words_are_named(arguments, code, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = train(*arguments)
    assert done.exit_code == code
    assert words in done.stderr


def test_resume_takes_no_settings(tmp_path):
    train(*BASE, "--out", tmp_path / "a", "-q")
    done = train("--resume", tmp_path / "a", "--hidden", 3)
    assert done.exit_code == 2
    assert "leave out hidden" in done.stderr


def test_divergence_is_named_and_earlier_checkpoints_stay(tmp_path):
    done = train(*BASE, "--estimator", "cd", "--learning-rate", "1e30", "--weight-decay", "1e30", "--out", tmp_path / "a", "-q")
    assert done.exit_code == 1
    assert "parameters became non-finite at update" in done.stderr
    assert not (tmp_path / "a" / "model.safetensors").exists()
