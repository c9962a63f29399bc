import json
import subprocess
import sys
from dataclasses import replace

import pytest

from popcd.experiments.paper import specifications
from popcd.experiments.store import Job, Store, StoreError, load_records

CURVE = specifications("figure1", "smoke")[0]
DATA = {"rows": 32, "sha256": "00"}


def filled(folder):
    store = Store.open(folder, "smoke")
    store.write(Job(CURVE, 0), DATA, {"curve": {"step": [1], "log_likelihood": [-1.5]}}, seconds=1.0)
    return store


def test_a_result_comes_back_with_its_settings_versions_and_times(tmp_path):
    record = filled(tmp_path).read(Job(CURVE, 0))
    assert record["settings"]["learning_rate"] == 0.1
    assert record["seed"] == 0
    assert record["data"] == DATA
    assert {"popcd", "jax", "numpy", "python", "platform"} <= record["versions"].keys()
    assert record["times"]["seconds"] == 1.0
    assert Store.open(tmp_path, "smoke").read(Job(CURVE, 1)) is None


def test_a_folder_of_another_profile_version_or_purpose_is_refused(tmp_path, monkeypatch):
    filled(tmp_path / "a")
    with pytest.raises(StoreError, match=r"profile smoke; these would be of popcd .*, profile quick. Name another folder"):
        Store.open(tmp_path / "a", "quick")
    monkeypatch.setattr("popcd.__version__", "99.0")
    with pytest.raises(StoreError, match=r"these would be of popcd 99\.0"):
        Store.open(tmp_path / "a", "smoke")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "thesis.tex").touch()
    with pytest.raises(StoreError, match="holds other files"):
        Store.open(tmp_path / "b", "smoke")


def test_a_result_of_other_settings_is_refused(tmp_path):
    store = filled(tmp_path)
    with pytest.raises(StoreError, match=r"other settings \(iterations\)"):
        store.read(Job(replace(CURVE, iterations=7), 0))


@pytest.mark.parametrize("damage", [lambda b: b[:-40], lambda b: b.replace(b"-1.5", b"-1.4"), lambda b: b"", lambda b: b"[1]"])
def test_a_damaged_result_is_noticed_set_aside_and_kept(tmp_path, damage):
    store = filled(tmp_path)
    path = store.path(Job(CURVE, 0))
    broken = damage(path.read_bytes())
    path.write_bytes(broken)
    with pytest.raises(ValueError, match="damaged"):
        store.read(Job(CURVE, 0))
    assert load_records(tmp_path)[1:] == ([], [path])
    assert store.set_aside(Job(CURVE, 0)).read_bytes() == broken
    assert store.read(Job(CURVE, 0)) is None


def test_times_do_not_enter_the_checksum(tmp_path):
    path = filled(tmp_path).path(Job(CURVE, 0))
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"times": {"seconds": 9.0, "finished": ""}}))
    assert Store(tmp_path).read(Job(CURVE, 0))["times"]["seconds"] == 9.0


CLAIM = """
import sys, pathlib
from popcd.experiments.store import Store
with Store(pathlib.Path(sys.argv[1])).claim(sys.argv[2]) as mine:
    print(mine, flush=True)
    sys.stdin.readline()
"""


def test_a_claim_holds_against_other_processes_until_its_process_dies(tmp_path):
    def other(name):
        process = subprocess.Popen(
            [sys.executable, "-c", CLAIM, tmp_path, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return process, process.stdout.readline()

    first, got = other("a")
    assert got == "True\n"
    with Store(tmp_path).claim("b") as mine, Store(tmp_path).claim("c") as nested:
        assert mine
        assert nested
        with Store(tmp_path).claim("a") as taken:
            assert not taken
        second, got = other("b")  # a nested claim that ended has not ended this one
        assert got == "False\n"
        second.communicate("\n")
    first.kill()
    first.communicate()
    with Store(tmp_path).claim("a") as mine:
        assert mine


def test_a_folder_without_results_is_no_folder_to_report_on(tmp_path):
    with pytest.raises(StoreError, match=r"no readable reproduction\.json"):
        load_records(tmp_path)
