"""`popcd reproduce` as a user runs it: whole processes, killed, in shards, on bad folders."""

import json
import os
import random
import signal
import subprocess
import time

import pytest

from processes import command

TABLE = ("reproduce", "table1", "--problem", "bars-and-stripes", "--profile", "smoke", "--trials", "1")


def run(*arguments, largest_file=None, **options):
    return subprocess.run(
        command(*arguments, largest_file=largest_file), capture_output=True, text=True, timeout=300, **options
    )


def results(folder):
    """File names and contents apart from times."""
    return {str(p.relative_to(folder)): p.read_text().split(',"times":')[0] for p in sorted(folder.glob("*/*.json"))}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """One uninterrupted run: its folder and what it printed."""
    folder = tmp_path_factory.mktemp("whole") / "out"
    done = run(*TABLE, "--out", folder, "--json")
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


def test_every_cell_of_the_table_is_printed(whole):
    _, content = whole
    assert len(content["cells"]) == 12
    for cell in content["cells"]:
        assert {
            "problem",
            "hidden",
            "k",
            "estimator",
            "quantity",
            "published",
            "median",
            "low",
            "high",
            "inside",
        } <= cell.keys()
        assert cell["low"] <= cell["median"] <= cell["high"]
        assert (cell["published"] is None) == (cell["inside"] is None) == (cell["estimator"] == "pop-cd-mixture")
    assert content["missing"] == 0


def test_two_shards_at_once_give_the_same_rows(whole, tmp_path):
    shards = [subprocess.Popen(command(*TABLE, "--out", tmp_path, "--shard", f"{i}/2", "--jobs", 1)) for i in (1, 2)]
    assert [shard.wait(timeout=300) for shard in shards] == [0, 0]
    assert results(tmp_path) == results(whole[0])


def test_a_damaged_result_is_computed_again_and_the_run_says_so(whole, tmp_path):
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-r", whole[0], copy], check=True)
    victim = next(copy.glob("table1/*pop-cd-1*.json"))
    victim.write_bytes(victim.read_bytes()[:100])
    done = run(*TABLE, "--out", copy)
    assert done.returncode == 0
    assert f"{victim.name} was damaged: set aside as {victim.stem}.corrupt-1" in done.stderr
    assert results(copy) == results(whole[0])
    assert "bars-and-stripes" in done.stdout


def test_a_full_disk_is_named_and_loses_nothing(whole, tmp_path):
    """A limit on the size of files stands for a full disk: results, of about 1 kB, cannot be written."""
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-r", whole[0], copy], check=True)
    victim = next(copy.glob("table1/*.json"))
    kept = results(copy)
    victim.unlink()
    limited = run(*TABLE, "--out", copy, largest_file=500)
    assert limited.returncode == 1
    assert f"Error: cannot write into {copy}" in limited.stderr
    assert "Other results are kept" in limited.stderr
    assert "Traceback" not in limited.stderr
    assert len(results(copy)) == len(kept) - 1
    assert run(*TABLE, "--out", copy).returncode == 0
    assert results(copy) == kept


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["reproduce", "figure4"], 2, "figure1"),
        (["reproduce", "figure1", "--problem", "cifar"], 2, "bars-and-stripes"),
        (["reproduce", "figure1", "--problem", "mnist"], 1, "expected one of bars-and-stripes, artificial-modes"),
        (["reproduce", "table1", "--shard", "5/4"], 2, "expected I/N with I from 1 to N"),
        (["reproduce", "table1", "--shard", "0/4"], 2, "expected I/N"),
        (["reproduce", "table1", "--shard", "half"], 2, "expected I/N"),
    ],
)
def test_bad_words_are_answered_with_the_known_ones(arguments, code, words, tmp_path):
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == code
    assert words in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_another_profile_is_refused(whole):
    done = run("reproduce", "figure1", "--profile", "quick", "--out", whole[0])
    assert done.returncode == 1
    assert "profile smoke; these would be of" in done.stderr


@pytest.mark.slow
def test_a_run_killed_ten_times_ends_with_the_same_files(tmp_path):
    """SIGKILL of everything at once and of the parent alone, in turn."""
    arguments = ("reproduce", "figure1", "--problem", "bars-and-stripes", "--profile", "smoke", "--trials", "2")
    assert run(*arguments, "--out", tmp_path / "whole").returncode == 0
    for kill in range(10):
        process = subprocess.Popen(
            command(*arguments, "--out", tmp_path / "killed"), start_new_session=True, stdout=subprocess.DEVNULL
        )
        time.sleep(random.uniform(1, 12))
        if kill % 2:
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert run(*arguments, "--out", tmp_path / "killed").returncode == 0
    assert results(tmp_path / "killed") == results(tmp_path / "whole")
    assert len(results(tmp_path / "whole")) == 28
