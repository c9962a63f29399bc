from dataclasses import replace

import numpy as np
import pytest

import popcd
from popcd.experiments.claims import FAILS, HOLDS, NOT_RUN, PARTLY, UNDECIDED, verdicts
from popcd.experiments.curves import Curves
from popcd.experiments.paper import CD_1, LARGE, MIXTURE_1, POP_1, POP_10, PT, SMALL, settings, specifications
from popcd.experiments.rows import cells, optimum, panels


def record(spec, seed, result):
    return {"experiment": spec.experiment, "settings": settings(spec), "seed": seed, "result": result}


def curve_records(algorithm, values, experiment="figure1", problem="bars-and-stripes", rate=0.1, iterations=None):
    """Trials of a curve with three evaluations."""
    specs = specifications(experiment, "paper", problem)
    spec = next(s for s in specs if (s.algorithm, s.learning_rate) == (algorithm, rate))
    spec = replace(
        spec, evaluate_every=-(-spec.iterations // 3), iterations=spec.iterations if iterations is None else iterations
    )
    return [record(spec, seed, {"curve": {"log_likelihood": v}}) for seed, v in enumerate(values)]


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


def test_a_trial_that_became_non_finite_counts_as_diverged_and_as_no_number():
    (panel,) = panels(curve_records(CD_1, [[-9.0, -5.0, -4.0], [-9.0], []]))
    row = panel.curves["CD-1"].summary()
    assert row["diverged_trials"] == 2
    assert row["final"] == -np.inf


def curves(*trials, **fields):
    return Curves("one", np.arange(1, len(trials[0]) + 1), np.array(trials, float), **fields)


def test_divergence_is_judged_trial_by_trial():
    """Trials that fall by very different amounts have a large standard error, which must not hide them."""
    up, down, far = [-5, -4, -3], [-5, -4, -4.5], [-5, -4, -90]
    assert curves(up, down, far).diverged().tolist() == [False, True, True]
    assert curves(up, down, far).summary()["diverged"]
    assert not curves(up, up, far).summary()["diverged"]
    assert curves(up, up, far).summary()["diverged_trials"] == 1
    assert not curves([-5, -4, -4.09]).diverged().any()


def test_scatter_of_a_curve_is_no_divergence(seed):
    noise = np.random.default_rng(seed).normal(size=(50, 200))
    assert not curves(*noise).diverged().any()
    assert curves(*(noise - np.linspace(0, 10, 200))).diverged().all()


def test_a_steep_rise_before_the_best_is_no_noise():
    """As CD-1 in the demo: 100 evaluations, up by six nat in the first ones, then slowly down by two."""
    trial = np.concatenate([np.linspace(-11, -5, 7), np.linspace(-5, -7, 93)])
    assert curves(trial).diverged().all()


def test_a_bracket_as_wide_as_the_loss_is_no_divergence():
    falls = [-5.0, -4.0, -4.5]
    assert curves(falls).diverged().all()
    assert not curves(falls, half_width=np.array([0, 0.3, 0.3])).diverged().any()
    assert curves(falls, half_width=np.array([9.0, 0.1, 0.1])).diverged().all()
    assert curves(falls).summary()["final_stderr"] is None


def test_brackets_and_trust_of_a_curve_come_from_its_records():
    (one,) = curve_records(CD_1, [[-9.0, -5.0, -4.0]])
    one["result"]["curve"] |= {"lower": [-9.5, -5.1, -3.9], "upper": [-8.9, -4.0, -4.2], "trustworthy": [1, 1, 0]}
    found = panels([one])[0].curves["CD-1"]
    np.testing.assert_allclose(found.half_width, [0.5, 1.0, 0.2])
    assert found.trusted.tolist() == [True, True, False]
    assert found.summary()["trusted"] is False


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
    assert verdict_of("reaches higher", records).verdict == (HOLDS if expected == HOLDS else UNDECIDED)
    assert verdict_of("k = 1 and k = 10", records).verdict == HOLDS
    assert verdict_of("on Letters", records).verdict == NOT_RUN


def test_a_claim_that_holds_on_one_of_two_problems_holds_in_part():
    good = [r for a in SMALL for r in curve_records(a, FALLS)]
    bad = [r for a in SMALL for r in curve_records(a, RISES, problem="artificial-modes")]
    found = verdict_of("CD and PCD diverge", good + bad)
    assert found.verdict == PARTLY
    assert [words[:2] + words[2:].split(" 16")[0] for words in found.measured] == ["✓ Bars-and-Stripes", "✗ Artificial Modes"]


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
    records = [r for rate, rows in ((0.1, better), (0.01, RISES)) for r in curve_records(POP_1, rows, "figure2", "mnist", rate)]
    assert verdict_of("smaller learning rate", records).verdict == FAILS


def test_a_gap_within_its_error_decides_nothing():
    """Trials with the same seed are compared with each other."""
    wide, narrow = [[-9, -5, -4.0], [-9, -5, -6.0]], [[-9, -5, -4.1], [-9, -5, -5.0]]
    records = [r for a, rows in ((POP_1, narrow), (PT, wide)) for r in curve_records(a, rows)]
    assert verdict_of("on a par with", records).verdict == HOLDS
    records = [r for a, rows in ((POP_1, wide), (PT, narrow)) for r in curve_records(a, rows)]
    assert verdict_of("on a par with", records).verdict == UNDECIDED
    shifted = [[v + 1 for v in row] for row in wide]
    records = [r for a, rows in ((POP_1, wide), (PT, shifted)) for r in curve_records(a, rows)]
    assert verdict_of("on a par with", records).verdict == FAILS


def test_a_part_of_training_decides_only_what_it_shows():
    place = {"experiment": "figure3", "problem": "mnist", "rate": 0.01}
    for cd, expected in ((FALLS, HOLDS), (RISES, UNDECIDED)):
        rows = {a: RISES if a in (POP_1, POP_10) else cd for a in LARGE}
        whole = [r for a in LARGE for r in curve_records(a, rows[a], **place)]
        assert verdict_of("CD diverges on MNIST", whole).verdict == (HOLDS if cd is FALLS else FAILS)
        assert verdict_of("diverges less", whole).verdict == (HOLDS if cd is FALLS else FAILS)
        assert verdict_of("learns slowly", whole).verdict == FAILS
        part = [r for a in LARGE for r in curve_records(a, rows[a], **place, iterations=39_000)]
        assert verdict_of("CD diverges on MNIST", part).verdict == expected
        assert verdict_of("learns slowly", part).verdict == UNDECIDED
        assert "39,000 of 40,000 iterations" in verdict_of("learns slowly", part).measured[0]


def test_likelihoods_that_are_not_to_be_trusted_decide_nothing():
    records = [r for a in LARGE for r in curve_records(a, RISES, "figure3", "letters", 0.1)]
    for one in records:
        values = np.array(one["result"]["curve"]["log_likelihood"])
        one["result"]["curve"] |= {"lower": values - 0.1, "upper": values + 0.1, "trustworthy": [1, 1, 0]}
    found = verdict_of("CD ends above pop-CD", records)
    assert found.verdict == UNDECIDED
    assert "not to be trusted" in found.measured[0]


def test_cd_stops_improving_when_its_curve_is_flat():
    flat, steep = [[-200.0, -150.0, -149.9]] * 2, [[-200.0, -150.0, -140.0]] * 2
    for rows, expected in ((flat, HOLDS), (steep, FAILS)):
        assert verdict_of("stops improving", curve_records(CD_1, rows, "figure2", "mnist")).verdict == expected
