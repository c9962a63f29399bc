import json
import os
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner

import popcd
from popcd.cli import main
from popcd.experiments import demo as experiment
from popcd.experiments.curves import Curves
from popcd.files import write_atomically
from popcd.report.figures import gap_to_optimum
from processes import command


def run(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


def test_demo_prints_a_table_and_draws_the_curves(tmp_path):
    out = tmp_path / "new" / "folder"
    result = run("demo", "--trials", 2, "--iterations", 150, "--out", out)
    assert result.exit_code == 0, result.output
    for words in ("CD-1", "PCD-1", "pop-CD-1", "mixture pop-CD-1", "optimum", "-3.3791", "learning-curves.svg"):
        assert words in result.stdout
    assert "training" in result.stderr
    assert (out / "learning-curves.png").read_bytes().startswith(b"\x89PNG")
    assert ElementTree.parse(out / "learning-curves.svg").getroot().tag.endswith("svg")
    assert sorted(file.name for file in out.iterdir()) == ["learning-curves.png", "learning-curves.svg"]


def test_demo_json_is_one_object_and_nothing_else(tmp_path):
    result = run("demo", "--trials", 2, "--iterations", 30, "--seed", 7, "--out", tmp_path, "--json")
    content = json.loads(result.stdout)
    assert (content["iterations"], content["trials"], content["seed"]) == (30, 2, 7)
    assert [row["estimator"] for row in content["results"]] == list(experiment.ESTIMATORS)
    np.testing.assert_allclose(content["optimum"], -3.3791, atol=5e-5)


def test_the_summary_says_what_the_curves_say():
    steps = np.array([10, 20, 30])
    falls = Curves("falls", steps, np.array([[-5.0, -4.0, -9.0], [-5.2, -4.2, -9.4]]))
    rises = Curves("rises", steps, np.array([[-5.0, -4.0, -3.5], [-5.2, -4.2, -3.6]]))
    row = falls.summary()
    assert (row["best_step"], row["diverged"]) == (20, True)
    np.testing.assert_allclose([row["final"], row["final_stderr"], row["best"]], [-9.2, 0.2, -4.1])
    assert rises.summary()["diverged"] is False


def test_labels_of_curves_that_end_together_stay_apart():
    flat = [Curves(label, np.array([1, 2]), np.full((2, 2), -4.0 - 1e-3 * i)) for i, label in enumerate(experiment.ESTIMATORS)]
    figure = gap_to_optimum(flat, -3.4, "all alike")
    heights = sorted(np.log10(text.xy[1]) for text in figure.axes[0].texts)
    low, high = np.log10(figure.axes[0].get_ylim())
    assert min(np.diff(heights)) >= 0.03 * (high - low)


def test_usage_errors_and_failures_have_their_exit_codes(tmp_path):
    assert run("demo", "--trials", 1).exit_code == 2
    assert run("nonsense").exit_code == 2
    (tmp_path / "file").write_text("in the way")
    blocked = run("demo", "--out", tmp_path / "file" / "below")
    assert blocked.exit_code == 1
    assert "cannot create the folder" in blocked.stderr


def test_a_failed_write_leaves_nothing_behind(tmp_path):
    with pytest.raises(TypeError):
        write_atomically(tmp_path / "file", "not bytes")
    assert list(tmp_path.iterdir()) == []


def test_help_and_version_do_not_load_jax():
    code = "import sys, popcd.cli; popcd.cli.main(['--help'], standalone_mode=False); sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0
    version = subprocess.run([sys.executable, "-m", "popcd", "--version"], capture_output=True, text=True, check=True)
    assert version.stdout.startswith(f"popcd {popcd.__version__} (jax ")


def test_public_names():
    assert {"RBM", "cd", "pcd", "pt", "pop_cd", "exact", "train", "datasets"} <= set(dir(popcd))
    assert all(hasattr(popcd, name) for name in dir(popcd))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = popcd.nonsense


def test_every_module_can_be_imported_first():
    code = """
import importlib, pkgutil, sys, popcd
names = [m.name for m in pkgutil.walk_packages(popcd.__path__, "popcd.") if not m.name.endswith("__main__")]
for name in names:
    for loaded in [m for m in sys.modules if m.split(".")[0] == "popcd"]:
        del sys.modules[loaded]
    importlib.import_module(name)
print(len(names))
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert int(found.stdout) > 30


def test_compiled_programs_are_kept_for_the_next_command(tmp_path):
    words = ("train", "--data", "bars-and-stripes", "--hidden", 3, "--batch-size", 8, "--iterations", 10, "-q")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")} | {"XDG_CACHE_HOME": str(tmp_path)}
    for name in ("a", "b"):
        done = subprocess.run(command(*words, "--out", tmp_path / name), env=environment, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
    assert list((tmp_path / "popcd" / "programs").glob("*/jit_advance*"))  # a folder for each kind of processor
    assert (tmp_path / "a" / "model.safetensors").read_bytes() == (tmp_path / "b" / "model.safetensors").read_bytes()


def test_a_cache_folder_that_cannot_be_made_does_no_harm(tmp_path):
    (tmp_path / "file").touch()
    environment = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")} | {"XDG_CACHE_HOME": str(tmp_path / "file")}
    done = subprocess.run(command("data", "bars-and-stripes"), env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_public_names_do_not_load_scikit_learn_or_scipy():
    code = "import sys, popcd; popcd.RBM, popcd.train; sys.exit(bool({'sklearn', 'scipy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
