"""`popcd diagnose --particles`."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import popcd
from popcd.cli import main
from popcd.commands.population import table
from popcd.evaluation import population_error
from popcd.report.population import population_curves

DATA = popcd.datasets.load("bars-and-stripes").train


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("machine") / "m.safetensors"
    popcd.save(popcd.RBM.create(16, 4, seed=1, data=DATA), path)
    return path


def run(file, *words):
    return CliRunner().invoke(main, ["diagnose", str(file), "--data", "bars-and-stripes", *map(str, words)])


def test_figures_are_those_of_population_error_and_a_picture_is_drawn(file, tmp_path):
    words = ("--particles", "1e2,50", "--estimator", "pop-cd", "--repeats", 40, "--out", tmp_path / "p.png", "--seed", 3)
    done = run(file, *words, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    expected = population_error(popcd.load(file), DATA, popcd.pop_cd(), sizes=[50, 100], repeats=40, seed=3)
    row = found["estimators"][0]
    for at, size, error in zip(row["sizes"], expected.sizes, expected.errors, strict=True):
        assert (at["particles"], at["repeats"], at["ess_share"]) == (size, error.repeats, error.ess / size)
        assert (at["bias_corrected"], at["variance"]) == (error.bias_corrected, error.variance)
    assert row["variance_slope"]["verdict"] == expected.variance_slope.verdict
    assert found["files"] == [str(tmp_path / "p.png")]
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    assert "diagnosing" in done.stderr
    assert f"slope {expected.variance_slope.value:.3f}" in table(found)


def test_all_estimators_in_one_table(file):
    done = run(file, "--particles", "500,1e3", "--repeats", 8, "-q")
    assert done.exit_code == 0, done.output
    for words in ("cd-10", "pop-cd-1 mixture of 500", "squared bias (s.e.)", "ESS/N", "pop-cd-1: variance ", ", slope -"):
        assert words in done.stdout
    assert done.stderr == ""


def rows(biases, seen):
    """Figures as the command has them."""
    at = {"bias_stderr": 1e-6, "variance": 1e-3, "variance_stderr": 1e-4, "repeats": 8, "ess_share": 0.5, "truth": "exact"}
    sizes = [at | {"particles": 10**i, "bias_corrected": b, "above_noise": i < seen} for i, b in enumerate(biases, 3)]
    return [{"label": "one", "sizes": sizes, "variance_slope": None, "bias_slope": None}]


def test_a_bias_that_does_not_show_is_said_and_drawn_as_a_bound():
    result = {"model": "m", "data": "d", "files": []}
    assert "one: squared bias above its noise at 1,000 particles only" in table(result | {"estimators": rows([1e-3, -1e-7], 4)})
    assert "one: squared bias above its noise at no size" in table(result | {"estimators": rows([1e-7, -1e-7], 0)})
    bias, _ = population_curves(rows([1e-3, -1e-7], 4), "").axes
    (seen, *_), (bound, *_) = bias.containers
    np.testing.assert_allclose(seen.get_xydata(), [[1e3, 1e-3]])
    np.testing.assert_allclose(bound.get_xydata(), [[1e4, 3e-6]])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--particles", "1e3,many"], "'many' is not a whole number"),
        (["--particles", "1e3,1.5"], "'1.5' is not a whole number"),
        (["--particles", "1"], "'1' is not a whole number from 2"),
        (["--particles", "1e3,"], "'' is not a whole number"),
        (["--particles", "nan"], "'nan' is not a whole number"),
        (["--particles", "inf"], "'inf' is not a whole number"),
        (["--particles", "1e10"], "'1e10' is not a whole number"),
        (["--particles", "1e3,1234"], "multiples of 500, got 1234"),
        (["--particles", "1e3", "--estimator", "pcd"], "pcd has no such population"),
        (["--particles", "1e3", "--estimator", "exact"], "exact has no such population"),
        (["--particles", "1e3", "--batch-size", 5], "--batch-size has no use with --particles"),
        (["--particles", "1e3", "--repeats", 7], "--repeats must be at least 8 with --particles, got 7"),
        (["--particles", "1e3", "--out", "x.pdf"], "must end in .png"),
        (["--out", "x.png"], "--out draws the curves of --particles"),
    ],
)
def test_bad_words_are_usage_errors(file, words, message):
    done = run(file, *words)
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.split())
