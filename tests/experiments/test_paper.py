import re
from collections import Counter
from pathlib import Path

import pytest

from popcd.experiments.differences import differences, of_jobs
from popcd.experiments.paper import (
    EXPERIMENTS,
    Algorithm,
    Annealing,
    Cell,
    Curve,
    published_iterations,
    settings,
    specifications,
)
from popcd.experiments.published import published
from popcd.experiments.runner import jobs_of

DIGEST = Path(__file__).parents[3] / "shared" / "paper" / "digest.md"


def every(profile):
    return [spec for experiment in EXPERIMENTS for spec in specifications(experiment, profile)]


@pytest.mark.parametrize("profile", ["smoke", "quick", "paper"])
def test_names_are_unique_and_say_what_a_file_holds(profile):
    counts = Counter((spec.experiment, spec.name) for spec in every(profile))
    assert set(counts.values()) == {1}
    assert all(re.fullmatch(r"[a-z0-9.-]+", name) for _, name in counts)


def test_the_paper_profile_has_the_published_settings():
    curves = [s for s in every("paper") if isinstance(s, Curve)]
    plans = {(c.experiment, c.problem, c.hidden, c.learning_rate): (c.iterations, c.trials) for c in curves}
    assert plans == {
        ("figure1", "bars-and-stripes", 16, 0.1): (50_000, 25),
        ("figure1", "bars-and-stripes", 16, 0.01): (50_000, 25),
        ("figure1", "artificial-modes", 16, 0.1): (10_000, 25),
        ("figure1", "artificial-modes", 16, 0.01): (10_000, 25),
        ("figure2", "mnist", 16, 0.1): (5_000, 25),
        ("figure2", "mnist", 16, 0.01): (20_000, 25),
        ("figure2", "letters", 16, 0.1): (10_000, 25),
        ("figure2", "letters", 16, 0.01): (30_000, 25),
        ("figure3", "letters", 100, 0.1): (500_000, 10),
        ("figure3", "letters", 100, 0.01): (5_000_000, 10),
        ("figure3", "mnist", 500, 0.01): (40_000, 1),
        ("figure3", "mnist", 500, 0.001): (400_000, 1),
    }
    assert {c.evaluate_every for c in curves if c.hidden == 16} == {100}
    assert {(c.annealing.n_chains, c.annealing.n_steps) for c in curves if c.hidden > 16} == {(512, 50_000)}
    labels = [c.algorithm.label for c in curves if (c.problem, c.hidden, c.learning_rate) == ("mnist", 16, 0.1)]
    assert labels == ["CD-1", "CD-10", "PCD-1", "pop-CD-1", "pop-CD-10", "PT-10", "mixture pop-CD-1"]
    rows = {(c.problem, c.hidden, c.learning_rate, c.iterations, c.repeats) for c in every("paper") if isinstance(c, Cell)}
    assert rows == {
        ("bars-and-stripes", 16, 0.1, 10_000, 50_000),
        ("artificial-modes", 16, 0.1, 10_000, 50_000),
        ("letters", 16, 0.1, 10_000, 50_000),
        ("mnist", 16, 0.1, 5_000, 50_000),
        ("letters", 100, 0.1, 100_000, 50_000),
        ("mnist", 500, 0.01, 15_000, 50_000),
    }


def test_batches_are_the_papers():
    found = {s.problem: settings(s)["batch_size"] for s in every("paper")}
    assert found == {"bars-and-stripes": 32, "artificial-modes": 500, "letters": 246, "mnist": 500}


@pytest.mark.parametrize(("profile", "rows"), [("quick", 10), ("paper", 12)])
def test_table_rows_have_five_machines_and_the_mixture_in_every_profile_but_smoke(profile, rows):
    cells = [s for s in every(profile) if isinstance(s, Cell)]
    assert all(cell.trials >= 5 for cell in cells)
    assert Counter(cell.algorithm.word for cell in cells) == {"cd": rows, "pop-cd": rows, "pop-cd-mixture": rows}


@pytest.mark.skipif(not DIGEST.exists(), reason="the digest of the paper is not here")
def test_the_published_figures_are_those_of_the_digest():
    lines = [
        line.strip("| \n").split(" | ")
        for line in DIGEST.read_text().splitlines()
        if re.match(r"\| [a-z-]+ \| 10? \| \d+ \|", line)
    ]
    assert len(lines) == 12
    for problem, k, hidden, *figures in lines:
        places = [("cd", "variance"), ("cd", "bias"), ("pop-cd", "variance"), ("pop-cd", "bias")]
        assert [published(problem, int(hidden), int(k), *place) for place in places] == [float(f) for f in figures]


def test_the_mixture_has_no_published_figure():
    assert published("letters", 16, 1, "pop-cd-mixture", "bias") is None


def differ(experiment, profile, problem=None, trials=None):
    return differences(experiment, of_jobs(jobs_of(specifications(experiment, profile, problem), trials)), problem)


def test_what_differs_from_the_paper_is_said():
    assert differ("figure2", "paper") == []
    words = " ".join(differ("figure3", "quick"))
    assert "not run (letters 100 hidden at rate 0.01, mnist 500 hidden at rate 0.001)" in words
    assert "iterations: 50,000 instead of 500,000 (letters 100 hidden at rate 0.1)" in words
    assert "AIS: 128 chains of 2,000 steps instead of 512 chains of 50,000 steps" in words
    words = differ("table1", "paper", "mnist", trials=2)
    truth = "one ladder of 100 temperatures, 250,000 sweeps"
    assert words == [
        "machines: 2 instead of 1 (mnist 16 hidden, mnist 500 hidden)",
        f"true gradient: exact instead of {truth} (mnist 16 hidden)",
        f"true gradient: 64 ladders of 100 temperatures, 8,000 sweeps instead of {truth} (mnist 500 hidden)",
    ]


def test_published_lengths_of_training():
    assert published_iterations("letters", 100, 0.01) == 5_000_000


def test_an_unknown_problem_lists_the_known_ones():
    with pytest.raises(ValueError, match="figure1 has no problem 'mnist': expected one of bars-and-stripes, artificial-modes"):
        specifications("figure1", "quick", "mnist")


def test_settings_are_everything_but_the_number_of_trials():
    curve = Curve("figure3", "letters", 100, Algorithm("cd"), 0.1, 10, 5, 7, Annealing(1, 2, 3, 4))
    found = settings(curve)
    assert "trials" not in found
    assert found["annealing"] == {"n_chains": 1, "n_steps": 2, "n_ladders": 3, "sweeps": 4}
