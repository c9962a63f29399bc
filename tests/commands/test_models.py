"""Commands on finished machines: evaluate, diagnose, sample, report, data, bench."""

import json

import h5py
import numpy as np
import pytest
import scipy.io
from click.testing import CliRunner

import popcd
from popcd.benchmark import Size
from popcd.cli import main
from popcd.commands.options import print_result
from popcd.commands.progress import Progress

DATA = popcd.datasets.load("bars-and-stripes").train


def run(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


def result(*arguments):
    done = run(*arguments, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "a"
    words = ("--data", "bars-and-stripes", "--hidden", 8, "--batch-size", 32, "--iterations", 600, "--out", out)
    assert run("train", *words, "-q").exit_code == 0
    return out


def test_evaluate_prints_the_exact_log_likelihood_and_keeps_it_for_the_report(folder):
    found = result("evaluate", folder, "--data", "bars-and-stripes")
    rbm = popcd.load(folder / "model.safetensors")
    np.testing.assert_allclose(found["log_likelihood"], popcd.log_likelihood(rbm, DATA).value)
    np.testing.assert_allclose(found["log_partition"], popcd.log_partition(rbm).value)
    assert (found["method"], found["part"], found["trustworthy"]) == ("exact", "train", True)
    text = run("evaluate", folder / "model.safetensors", "--data", "bars-and-stripes", "-q").stdout
    assert f"{found['log_likelihood']:.4f}  (exact)" in text
    assert run("report", folder).exit_code == 0
    page = (folder / "report.html").read_text()
    for words in ("Curves", "Evaluation", "Filters and samples", f"{found['log_likelihood']:.3f}", "bars-and-stripes (train)"):
        assert words in page


def test_evaluate_by_ais_brackets_the_exact_value(folder):
    found = result("evaluate", folder, "--data", "bars-and-stripes", "--method", "ais", "--steps", 1000, "--sweeps", 200)
    exact = popcd.log_likelihood(popcd.load(folder / "model.safetensors"), DATA).value
    assert abs(found["log_likelihood"] - exact) < 6 * found["stderr"]
    assert found["lower"] < found["log_likelihood"] < found["upper"]
    assert found["method"] == "ais"


def test_evaluate_says_what_cannot_be_trusted(tmp_path):
    """Two distant modes and two steps of AIS."""
    np.savez(tmp_path / "m.npz", W=np.full((16, 6), 2.0), b=np.full(16, -6.0), c=np.full(6, -16.0))
    words = ("--data", "bars-and-stripes", "--method", "ais", "--steps", 2, "--sweeps", 4)
    text = run("evaluate", tmp_path / "m.npz", *words, "-q").stdout
    assert "bracket" in text
    assert "NOT TO BE TRUSTED" in text


def test_diagnose_measures_one_estimator_or_all_and_recommends(folder):
    one = result("diagnose", folder, "--data", "bars-and-stripes", "--estimator", "pop-cd", "--k", 1, "--repeats", 50)
    rbm = popcd.load(folder / "model.safetensors")
    expected = popcd.gradient_error(rbm, DATA, popcd.pop_cd(), batch_size=32, repeats=50)
    assert (one["bias"], one["variance"], one["ess"]) == (expected.bias, expected.variance, expected.ess)
    done = run("diagnose", folder, "--data", "bars-and-stripes", "--repeats", 50)
    assert done.exit_code == 0, done.output
    for words in ("cd-1", "cd-10", "pop-cd-1 mixture", "Gibbs chains forget", "information", "Use "):
        assert words in done.stdout
    assert "diagnosing" in done.stderr


def test_an_evaluation_that_cannot_be_kept_is_printed_all_the_same(folder, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("popcd.runs.folder.write_atomically", refuse)
    done = run("evaluate", folder, "--data", "bars-and-stripes", "-q")
    assert done.exit_code == 0
    assert "mean log-likelihood" in done.stdout
    assert "not kept for `popcd report`" in done.stderr


def test_numbers_that_json_does_not_have_are_null(capsys):
    print_result({"a": [float("nan"), 1.5, {"b": -float("inf")}], "c": True}, True, str)
    assert capsys.readouterr().out == '{"a": [null, 1.5, {"b": null}], "c": true}\n'


def test_a_report_names_its_file_in_json(folder):
    assert result("report", folder)["files"] == [str(folder / "report.html")]


def test_samples_go_into_a_file_and_a_picture(folder, tmp_path):
    found = result("sample", folder, "-n", 30, "--image", "4x4", "--out", tmp_path / "s.npz")
    assert found["files"] == [str(tmp_path / "s.npz"), str(tmp_path / "s.png")]
    samples = np.load(tmp_path / "s.npz")["samples"]
    np.testing.assert_array_equal(samples, popcd.sample(popcd.load(folder / "model.safetensors"), 30, 0))
    assert (tmp_path / "s.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("source", ["data", "base", "coins"])
def test_gibbs_chains_start_where_they_are_told(folder, tmp_path, source):
    words = ("--method", "gibbs", "--from", source, "--sweeps", 1, "--out", tmp_path / "s.npz")
    data = () if source == "coins" else ("--data", "bars-and-stripes")
    assert result("sample", folder, "-n", 40, *words, *data)["samples"] == 40


@pytest.mark.parametrize("ending", ["npy", "npz", "csv"])
def test_rows_are_completed_from_every_kind_of_file(folder, tmp_path, ending):
    rows = np.where(np.arange(16) < 8, DATA[3], np.nan)[None, :]
    path = tmp_path / f"half.{ending}"
    {"npy": np.save, "npz": np.savez}.get(ending, lambda p, r: np.savetxt(p, r, delimiter=","))(path, rows)
    result("sample", folder, "--complete", path, "--out", tmp_path / "s.npz")
    np.testing.assert_array_equal(np.load(tmp_path / "s.npz")["samples"][0, :8], DATA[3, :8])


def test_data_sets_are_listed_described_and_exported(tmp_path):
    assert [one["name"] for one in result("data")["data"]] == list(popcd.datasets.NAMES)
    (tmp_path / "grey.csv").write_text("a,b,c\n0.1,0.7,1\n0.9,0.2,0\n")
    found = result("data", tmp_path / "grey.csv", "--threshold", 0.5, "--export", tmp_path / "d.npz")
    assert (found["data"][0]["train"], found["data"][0]["visible"]) == (2, 3)
    np.testing.assert_array_equal(popcd.datasets.load(tmp_path / "d.npz").train, [[0, 1, 1], [1, 0, 0]])
    assert "mnist" in run("data").stdout


def test_a_csv_file_of_a_spreadsheet_keeps_its_first_row(tmp_path):
    (tmp_path / "d.csv").write_bytes(b"\xef\xbb\xbf0,1\r\n1,0\r\n")
    np.testing.assert_array_equal(popcd.datasets.load(tmp_path / "d.csv").train, [[0, 1], [1, 0]])


def test_every_kind_of_data_file_trains_the_same_machine(tmp_path):
    rows = DATA.astype(float)
    np.save(tmp_path / "d.npy", rows)
    np.savez(tmp_path / "d.npz", train=rows)
    np.savetxt(tmp_path / "d.csv", rows, delimiter=",", fmt="%g")
    scipy.io.savemat(tmp_path / "d.mat", {"train": rows})
    with h5py.File(tmp_path / "d.h5", "w") as file:
        file["train"] = rows
    found = set()
    for ending in ("npy", "npz", "csv", "mat", "h5"):
        out = tmp_path / ending
        words = ("--data", tmp_path / f"d.{ending}", "--hidden", 3, "--batch-size", 8, "--iterations", 20, "--out", out, "-q")
        assert run("train", *words).exit_code == 0
        found.add((out / "model.safetensors").read_bytes())
    assert len(found) == 1


def test_a_large_npy_file_stays_on_disk(tmp_path, monkeypatch):
    np.save(tmp_path / "d.npy", DATA)
    monkeypatch.setattr("popcd.datasets.files._MAPPED", 100)
    assert isinstance(popcd.datasets.load(tmp_path / "d.npy").train, np.memmap)
    words = ("--hidden", 3, "--batch-size", 8, "--iterations", 20, "-q")
    assert run("train", "--data", tmp_path / "d.npy", *words, "--out", tmp_path / "a").exit_code == 0
    assert run("train", "--data", "bars-and-stripes", *words, "--out", tmp_path / "b").exit_code == 0
    models = [(tmp_path / name / "model.safetensors").read_bytes() for name in "ab"]
    assert models[0] == models[1]
    monkeypatch.setattr("popcd.commands.models._ROWS_FROM_DISK", 20)
    done = run("evaluate", tmp_path / "a", "--data", tmp_path / "d.npy", "-q")
    assert "20 of its 32 rows, drawn at random, stand for them" in done.stderr
    assert "on 20 rows" in done.stdout


def test_a_threshold_on_a_large_file_is_taken_in_blocks(tmp_path, monkeypatch):
    grey = np.random.default_rng(0).random((50, 7))
    np.save(tmp_path / "d.npy", grey)
    monkeypatch.setattr("popcd.datasets.files._MAPPED", 100)
    monkeypatch.setattr("popcd.datasets.files._BLOCK", 500)
    np.testing.assert_array_equal(popcd.datasets.load(tmp_path / "d.npy", threshold=0.3).train, grey > 0.3)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("0,1\n1,x\n", "row 2: expected 2 numbers separated by commas, got '1,x'"),
        ("0,1\n1\n", "row 2: expected 2 numbers"),
        ("0,l\n1,0\n", "row 1: expected 2 numbers"),
        (",a,b\n0,1,2\n", "only 0 and 1, got 2"),
        ("0,2\n", "only 0 and 1, got 2"),
        ("0,\n", "has empty fields"),
    ],
)
def test_bad_csv_files_are_named(tmp_path, content, words):
    (tmp_path / "d.csv").write_text(content)
    done = run("data", tmp_path / "d.csv")
    assert done.exit_code == 1
    assert words in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["evaluate", "RUN", "--data", "letters"], 1, "letters has 128 columns, but the machine has 16 visible units"),
        (["evaluate", "RUN", "--data", "bars-and-stripes", "--part", "test"], 1, "has no test rows; use --part train"),
        (["evaluate", "nothing.npz", "--data", "letters"], 2, "does not exist"),
        (["sample", "RUN", "--image", "5x5"], 1, "25 pixels, the machine 16 units"),
        (["sample", "RUN", "--image", "5"], 2, "expected HEIGHTxWIDTH"),
        (["sample", "RUN", "--method", "gibbs", "--from", "data"], 2, "--from data needs --data"),
        (["sample", "RUN", "--from", "data", "--data", "bars-and-stripes"], 2, "--from, --data has no use with --method auto"),
        (["sample", "RUN", "--method", "gibbs", "--data", "letters"], 2, "--data has no use with --from coins"),
        (["sample", "RUN", "--complete", __file__], 1, "must end in .npy, .npz or .csv"),
        (["sample", "RUN", "--seed", 2**64], 2, "is not in the range"),
        (["sample", "RUN", "--method", "exact", "--sweeps", "3"], 2, "--sweeps has no use with --method exact"),
        (["sample", "RUN", "--complete", __file__, "-n", "3"], 2, "--number has no use with --complete"),
        (["diagnose", "RUN", "--data", "bars-and-stripes", "--k", "2"], 2, "settings of one --estimator"),
        (["diagnose", "RUN", "--data", "bars-and-stripes", "--estimator", "pt", "--k", "2"], 2, "no setting k"),
        (["sample", "RUN", "--out", "x.png"], 2, "must end in .npz"),
        (["data", "--threshold", "1"], 2, "name a data set"),
        (["data", "nothing.csv"], 1, "there is no file nothing.csv"),
        (["report", "RUN", "--image", "3x3"], 1, "9 pixels, the machine 16 units"),
    ],
)
def test_bad_words_are_named(folder, arguments, code, words):
    done = run(*(folder if a == "RUN" else a for a in arguments))
    assert done.exit_code == code
    assert words in done.stderr


def test_bench_compares_every_estimator_with_the_bare_products(monkeypatch):
    monkeypatch.setattr("popcd.benchmark._SECONDS", 1e-3)
    monkeypatch.setattr("popcd.benchmark.PAUSE", 0)
    monkeypatch.setattr("popcd.benchmark.SIZES", (Size(16, 4, 8),))
    monkeypatch.setattr("popcd.benchmark.LARGEST", Size(20, 30, 8))
    monkeypatch.setattr("popcd.benchmark._LARGE", 20 * 30 * 8)
    found = result("bench", "--rounds", 1)
    few = {"cd", "pcd", "pop-cd"}
    assert [size["ratio"].keys() for size in found["sizes"]] == [few | {"pop-cd mixture", "pt", "exact"}, few]
    assert all(low <= size["ratio"][n] <= high for size in found["sizes"] for n, (low, high) in size["range"].items())
    assert found["versions"].keys() > {"popcd", "jax", "numpy"}
    lines = run("bench", "--rounds", 1, "-q").stdout.splitlines()
    assert lines[3].split() == ["16", "x", "4,", "8", "20", "x", "30,", "8"]
    assert lines[-1].split()[0] == "exact"
    assert lines[-1].split()[-1] == "-"


def test_progress_on_a_terminal_is_one_line_with_rate_time_left_and_metrics(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("popcd.commands.progress._REDRAW", 0.0)
    monkeypatch.setattr("shutil.get_terminal_size", lambda: type("Size", (), {"columns": 100})())
    with Progress("training", 100, unit="updates") as bar:
        bar.at(10)
        bar.at(50, "ll -3.4")
        bar.note("a note")
        bar.at(100)
    lines = capsys.readouterr().err.split("\r")
    assert "[##########----------]  50%  50/100" in lines[2]
    assert "left  ll -3.4" in lines[2]
    assert all(len(line.rstrip("\n")) <= 99 for line in lines)
    assert lines[-1].startswith("training [####################] 100%")


def test_progress_elsewhere_is_a_line_when_there_is_something_new(capsys):
    with Progress("training", 100) as bar:
        for done in range(101):
            bar.at(done, "CD-1" if done < 50 else "pop-CD-1")
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[-1] for line in lines] == ["CD-1", "pop-CD-1", "pop-CD-1"]
    assert lines[-1] == "training 100%  pop-CD-1"


def test_version_names_jax_and_the_device():
    text = run("--version").stdout
    assert f"popcd {popcd.__version__} (jax " in text
    assert "x CPU" in text
