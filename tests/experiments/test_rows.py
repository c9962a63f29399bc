import numpy as np
import pytest

import popcd
from popcd.experiments.claims import FAILS, HOLDS, NOT_RUN, PARTLY, verdicts
from popcd.experiments.curves import Curves
from popcd.experiments.paper import CD_1, MIXTURE_1, POP_1, POP_10, SMALL, specifications
from popcd.experiments.rows import cells, optimum, panels


def record(spec, seed, result):
    from popcd.experiments.paper import settings

    return {"experiment": spec.experiment, "settings": settings(spec), "seed": seed, "result": result}


def curve_records(algorithm, values, experiment="figure1", problem="bars-and-stripes", rate=0.1):
    """Trials of a curve with three evaluations."""
    spec = next(s for s in specifications(experiment, "quick", problem) if (s.algorithm, s.learning_rate) == (algorithm, rate))
    steps = [100, 200, 300]
    return [record(spec, seed, {"curve": {"step": steps[: len(v)], "log_likelihood": v}}) for seed, v in enumerate(values)]


def cell_records(algorithm, variances, biases, problem="letters", hidden=16):
    spec = next(s for s in specifications("table1", "quick", problem) if (s.algorithm, s.hidden) == (algorithm, hidden))
    errors = {"variance_stderr": 0.0, "bias_stderr": 0.0, "truth": "exact", "ess": 10.0}
    return [
        record(spec, seed, {"variance": v, "bias": b, "bias_corrected": b / 2, **errors})
        for seed, (v, b) in enumerate(zip(variances, biases, strict=True))
    ]


RISES = [[-9.0, -5.0, -4.0], [-9.2, -5.2, -4.1]]
FALLS = [[-9.0, -5.0, -8.0], [-9.2, -5.2, -8.3]]


def test_panels_gather_trials_in_the_papers_order():
    records = curve_records(POP_1, RISES) + curve_records(CD_1, FALLS) + curve_records(CD_1, FALLS, rate=0.01)
    large, small = panels(reversed(records))
    assert (large.learning_rate, small.learning_rate) == (0.1, 0.01)
    assert list(large.curves) == ["CD-1", "pop-CD-1"]
    np.testing.assert_array_equal(large.curves["pop-CD-1"].log_likelihood, RISES)
    assert large.title == "Bars-and-Stripes, 16 hidden, learning rate 0.1"


def test_a_trial_that_became_non_finite_counts_as_diverged_and_not_as_a_number():
    (panel,) = panels(curve_records(CD_1, [[-9.0, -5.0, -4.0], [-9.0]]))
    row = panel.curves["CD-1"].summary()
    assert row["diverged"]
    assert row["final"] == -4.0


def test_a_bracket_as_wide_as_the_loss_is_no_divergence():
    falls = np.array([[-5.0, -4.0, -4.5]])
    assert Curves("one", np.array([1, 2, 3]), falls).summary()["diverged"]
    assert not Curves("one", np.array([1, 2, 3]), falls, half_width=0.3).summary()["diverged"]
    assert Curves("one", np.array([1, 2, 3]), falls).summary()["final_stderr"] is None


def test_the_optimum_of_bars_and_stripes_is_minus_the_entropy_of_the_data():
    _, counts = np.unique(popcd.datasets.load("bars-and-stripes").train, axis=0, return_counts=True)
    p = counts / counts.sum()
    np.testing.assert_allclose(optimum("bars-and-stripes"), (p * np.log(p)).sum())
    assert optimum("mnist") is None


def test_cells_hold_the_spread_over_machines_and_the_published_figure():
    found = cells(cell_records(CD_1, [1e-4, 5e-4, 2e-4], [1.0, 3.0, 2.0]) + cell_records(MIXTURE_1, [1.0, 2.0], [1.0, 2.0]))
    variance, bias, mixture, _ = found
    assert [variance[k] for k in ("median", "low", "high", "published", "inside")] == [2e-4, 1e-4, 5e-4, 0.000332673, True]
    np.testing.assert_allclose(variance["ratio"], 2e-4 / 0.000332673)
    assert [bias[k] for k in ("median", "median_corrected", "published", "inside")] == [2.0, 1.0, 0.00213099, False]
    assert [mixture[k] for k in ("estimator", "published", "ratio", "inside")] == ["pop-cd-mixture", None, None, None]


def verdict_of(words, records):
    return next(v for v in verdicts(panels(records), cells(records)) if words in v.claim)


@pytest.mark.parametrize(("cd", "expected"), [(FALLS, HOLDS), (RISES, FAILS)])
def test_divergence_claims_follow_the_curves(cd, expected):
    records = [r for a in SMALL for r in curve_records(a, RISES if a in (POP_1, POP_10) else cd)]
    assert verdict_of("CD and PCD diverge", records).verdict == expected
    assert verdict_of("no sign of divergence", records).verdict == HOLDS
    assert verdict_of("reaches higher", records).verdict == expected
    assert verdict_of("k = 1 and k = 10", records).verdict == HOLDS
    assert verdict_of("on Letters", records).verdict == NOT_RUN


def test_a_claim_that_holds_on_one_of_two_problems_holds_in_part():
    good = [r for a in SMALL for r in curve_records(a, FALLS)]
    bad = [r for a in SMALL for r in curve_records(a, RISES, problem="artificial-modes")]
    found = verdict_of("CD and PCD diverge", good + bad)
    assert found.verdict == PARTLY
    assert any(words.startswith("Artificial Modes 16 at 0.1") for words in found.measured)


def test_table_claims_compare_medians():
    records = cell_records(CD_1, [1.0, 2.0, 9.0], [5.0, 5.0, 5.0]) + cell_records(POP_1, [3.0, 3.0, 3.0], [1.0, 6.0, 2.0])
    assert verdict_of("CD has the smaller variance", records).verdict == HOLDS
    assert verdict_of("pop-CD has the smaller bias", records).verdict == HOLDS
    records = cell_records(CD_1, [4.0], [1.0]) + cell_records(POP_1, [3.0], [2.0])
    assert verdict_of("CD has the smaller variance", records).verdict == FAILS
    assert verdict_of("pop-CD has the smaller bias", records).verdict == FAILS


def test_more_steps_and_smaller_rates_are_compared_within_a_problem():
    records = cell_records(POP_1, [1.0], [2.0], hidden=100) + cell_records(POP_10, [1.0], [1.0], hidden=100)
    assert verdict_of("more Gibbs steps", records).verdict == HOLDS
    better = [[v + 0.5 for v in row] for row in RISES]
    records = [r for rate, rows in ((0.1, RISES), (0.01, better)) for r in curve_records(POP_1, rows, "figure2", "mnist", rate)]
    assert verdict_of("smaller learning rate", records).verdict == HOLDS
