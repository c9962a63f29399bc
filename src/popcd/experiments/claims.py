"""What the paper claims, as tests of result rows.

A finding is True, False, or None where the results do not decide: a difference within its error, training cut short, or a
likelihood that is not to be trusted.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from popcd.experiments.comparisons import beyond, every, gap, tolerance, within
from popcd.experiments.paper import published_iterations
from popcd.experiments.rows import Panel, title

HOLDS, PARTLY, FAILS, UNDECIDED, NOT_RUN = "holds", "holds in part", "does not hold", "undecided", "not run"
MARKS = {True: "✓", False: "✗", None: "?"}

Cells = Sequence[dict[str, Any]]
Finding = tuple[bool | None, str]
PanelTest = Callable[[Panel], bool | None]


@dataclass(frozen=True)
class Verdict:
    """A claim, what the results say of it, and the figures behind that."""

    claim: str
    source: str
    verdict: str
    measured: list[str]


def verdicts(panels: Sequence[Panel], cells: Cells) -> list[Verdict]:
    """All claims in the paper's order."""
    found = [_of_panels(claim, panels) for claim in _PANEL_CLAIMS]
    found.insert(_AFTER_FIGURE_2, _judged(_RATE_CLAIM, "Figure 2", _smaller_rate(panels)))
    return found + [
        _judged(words, "Table 1", test([c for c in cells if c["hidden"] in hidden])) for words, hidden, test in _CELL_CLAIMS
    ]


@dataclass(frozen=True)
class PanelClaim:
    """A claim about every panel of some problems; `shown` says how the figures of a curve are put."""

    words: str
    source: str
    places: Sequence[tuple[str, int]]
    labels: Sequence[str]
    test: PanelTest
    shown: Callable[[dict[str, Any]], str]
    rates: Sequence[float] = (0.1, 0.01, 0.001)
    seen_is_enough: bool = False  # what a part of training shows, the rest cannot take back


def _of_panels(claim: PanelClaim, panels: Sequence[Panel]) -> Verdict:
    findings = []
    for panel in panels:
        here = (panel.problem, panel.hidden) in claim.places and panel.learning_rate in claim.rates
        if here and all(label in panel.curves for label in claim.labels):
            rows = [panel.curves[label].summary() for label in claim.labels]
            right, doubts = claim.test(panel), _doubts(panel, rows)
            if doubts and not (right and claim.seen_is_enough):
                right = None
            words = "; ".join(claim.shown(row) for row in rows)
            findings.append((right, f"{title(panel.problem)} {panel.hidden} at {panel.learning_rate}{doubts}: {words}"))
    return _judged(claim.words, claim.source, findings)


def _doubts(panel: Panel, rows: Sequence[dict[str, Any]]) -> str:
    """In words, why a panel cannot settle anything."""
    published = published_iterations(panel.problem, panel.hidden, panel.learning_rate)
    cut = f"{panel.iterations:,} of {published:,} iterations" if panel.iterations < published else ""
    distrust = "likelihoods not to be trusted" if not all(row["trusted"] for row in rows) else ""
    found = ", ".join(words for words in (cut, distrust) if words)
    return f" ({found})" if found else ""


def _judged(words: str, source: str, findings: Sequence[Finding]) -> Verdict:
    rights = [right for right, _ in findings]
    if not rights:
        verdict = NOT_RUN
    elif all(right is None for right in rights):
        verdict = UNDECIDED
    elif all(right is not False for right in rights):
        verdict = HOLDS if all(rights) else PARTLY
    else:
        verdict = PARTLY if any(rights) else FAILS
    return Verdict(words, source, verdict, [f"{MARKS[right]} {measured}" for right, measured in findings])


def _diverge(*labels: str) -> PanelTest:
    """Most trials of every curve diverge."""
    return lambda panel: all(panel.curves[label].summary()["diverged"] for label in labels)


def _do_not_diverge(*labels: str) -> PanelTest:
    """No trial of any curve diverges."""
    return lambda panel: not any(panel.curves[label].diverged().any() for label in labels)


def _above(better: Sequence[str], worse: Sequence[str]) -> PanelTest:
    """Every curve of `better` ends above every one of `worse`."""
    return lambda panel: every(beyond(*gap(panel, a, b), 0.0) for a in better for b in worse)


def _alike(*labels: str) -> PanelTest:
    """The ends differ by less than 2 % of what training gained."""
    pairs = [(a, b) for i, a in enumerate(labels) for b in labels[i + 1 :]]
    return lambda panel: every(within(*gap(panel, a, b), tolerance(panel)) for a, b in pairs)


def _not_below(one: str, other: str) -> PanelTest:
    """`one` ends above `other` or alike."""

    def test(panel: Panel) -> bool | None:
        difference, doubt = gap(panel, one, other)
        return difference > 0 or within(difference, doubt, tolerance(panel))

    return test


def _less_divergence(panel: Panel) -> bool | None:
    """From its best point on, every pop-CD loses less than every CD."""
    lost = {label: row["best"] - row["final"] for label in _LARGE if (row := panel.curves[label].summary())}
    return max(lost["pop-CD-1"], lost["pop-CD-10"]) < min(lost["CD-1"], lost["CD-10"])


def _slow(panel: Panel) -> bool | None:
    """At their best, both pop-CDs are below both CDs."""
    best = {label: panel.curves[label].summary()["best"] for label in _LARGE}
    return max(best["pop-CD-1"], best["pop-CD-10"]) < min(best["CD-1"], best["CD-10"])


def _stops_improving(panel: Panel) -> bool | None:
    """From 3,000 iterations on, CD-1 gains less than 2 % of what training gained."""
    curve = panel.curves["CD-1"]
    then = int(np.searchsorted(curve.steps, 3_000))
    return bool(curve.mean[-1] - curve.mean[min(then, len(curve.steps) - 1)] <= tolerance(panel))


def _end(row: dict[str, Any]) -> str:
    error = "" if row["final_stderr"] is None else f"({row['final_stderr']:.3f})"
    return f"{row['estimator']} {row['final']:.3f}{error}"


def _best(row: dict[str, Any]) -> str:
    return f"{row['estimator']} at best {row['best']:.3f}"


def _fall(row: dict[str, Any]) -> str:
    trials = f"{row['diverged_trials']} of {row['trials']} trials diverged"
    return f"{row['estimator']} {row['best']:.3f} after {row['best_step']:,}, {row['final']:.3f} at the end, {trials}"


def _smaller_rate(panels: Sequence[Panel]) -> list[Finding]:
    """Compares two panels of a problem, as no other claim does."""
    findings: list[Finding] = []
    ends = {(p.problem, p.learning_rate): p for p in panels if (p.problem, p.hidden) in _REAL}
    for problem, hidden in _REAL:
        large, small = ends.get((problem, 0.1)), ends.get((problem, 0.01))
        if large and small and "pop-CD-1" in large.curves and "pop-CD-1" in small.curves:
            rows = [panel.curves["pop-CD-1"].summary() for panel in (large, small)]
            doubt = 3 * float(np.linalg.norm([row["final_stderr"] or 0.0 for row in rows]))
            cut = _doubts(large, rows[:1]) + _doubts(small, rows[1:])
            right = None if cut else beyond(rows[1]["final"] - rows[0]["final"], doubt, 0.0)
            lengths = f"after {large.iterations:,}", f"after {small.iterations:,}"
            words = f"{_end(rows[0])} at 0.1 {lengths[0]}, {_end(rows[1])} at 0.01 {lengths[1]} iterations"
            findings.append((right, f"{title(problem)} {hidden}{cut}: {words}"))
    return findings


def _compared(quantity: str, right: Callable[[float, float], bool]) -> Callable[[Cells], list[Finding]]:
    """Medians of CD and pop-CD in each row that has both."""

    def test(cells: Cells) -> list[Finding]:
        by = {(c["problem"], c["hidden"], c["k"], c["estimator"]): c["median"] for c in cells if c["quantity"] == quantity}
        findings: list[Finding] = []
        for p, h, k in dict.fromkeys(key[:3] for key in by):
            a, b = by.get((p, h, k, "cd")), by.get((p, h, k, "pop-cd"))
            if a is not None and b is not None:
                findings.append((right(a, b), f"{title(p)} {h}, k = {k}: CD {a:.2g}, pop-CD {b:.2g}"))
        return findings

    return test


def _more_steps_help(cells: Cells) -> list[Finding]:
    found = {
        (c["problem"], c["hidden"], c["k"]): c["median"] for c in cells if (c["estimator"], c["quantity"]) == ("pop-cd", "bias")
    }
    rows = [key[:2] for key in found if key[2] == 1 and (*key[:2], 10) in found]
    return [
        (found[p, h, 10] < found[p, h, 1], f"{title(p)} {h}: k = 1 {found[p, h, 1]:.2g}, k = 10 {found[p, h, 10]:.2g}")
        for p, h in rows
    ]


_ARTIFICIAL = (("bars-and-stripes", 16), ("artificial-modes", 16))
_REAL = (("mnist", 16), ("letters", 16))
_LETTERS, _MNIST, _LETTERS_100, _MNIST_500 = (("letters", 16),), (("mnist", 16),), (("letters", 100),), (("mnist", 500),)
_CD, _POP = ("CD-1", "CD-10"), ("pop-CD-1", "pop-CD-10")
_LARGE = (*_CD, *_POP)
_ALL = ("CD-1", "CD-10", "PCD-1", "pop-CD-1", "pop-CD-10", "PT-10")
_PCD = (*_CD, "PCD-1")
_F1, _F2, _F3 = "Figure 1", "Figure 2", "Figure 3"
_PANEL_CLAIMS = (
    PanelClaim(
        "CD and PCD diverge on the artificial sets", _F1, _ARTIFICIAL, _PCD, _diverge(*_PCD), _fall, seen_is_enough=True
    ),
    PanelClaim(
        "pop-CD shows no sign of divergence on the artificial sets", _F1, _ARTIFICIAL, _POP, _do_not_diverge(*_POP), _fall
    ),
    PanelClaim("pop-CD reaches higher log-likelihoods than CD", _F1, _ARTIFICIAL, _LARGE, _above(_POP, _CD), _end),
    PanelClaim("pop-CD with k = 1 and k = 10 perform almost the same", _F1, _ARTIFICIAL, _POP, _alike(*_POP), _end),
    PanelClaim(
        "pop-CD-1 is on a par with or better than PT",
        _F1,
        _ARTIFICIAL,
        ("pop-CD-1", "PT-10"),
        _not_below("pop-CD-1", "PT-10"),
        _end,
    ),
    PanelClaim("CD does not diverge on the real sets with 16 hidden units", _F2, _REAL, _CD, _do_not_diverge(*_CD), _fall),
    PanelClaim("all algorithms perform almost the same on Letters", _F2, _LETTERS, _ALL, _alike(*_ALL), _end),
    PanelClaim("pop-CD-1 ends above CD-1 on MNIST", _F2, _MNIST, ("pop-CD-1", "CD-1"), _above(_POP[:1], _CD[:1]), _end),
    PanelClaim("CD-1 stops improving on MNIST after 3,000 iterations", _F2, _MNIST, ("CD-1",), _stops_improving, _end, (0.1,)),
    PanelClaim("CD ends above pop-CD on Letters with 100 hidden units", _F3, _LETTERS_100, _LARGE, _above(_CD, _POP), _end),
    PanelClaim(
        "CD diverges on MNIST with 500 hidden units after a first phase",
        _F3,
        _MNIST_500,
        _CD,
        _diverge(*_CD),
        _fall,
        seen_is_enough=True,
    ),
    PanelClaim("pop-CD diverges less than CD on MNIST with 500 hidden units", _F3, _MNIST_500, _LARGE, _less_divergence, _fall),
    PanelClaim("pop-CD learns slowly on MNIST with 500 hidden units", _F3, _MNIST_500, _LARGE, _slow, _best, (0.01,)),
    PanelClaim("all behave alike on MNIST with 500 hidden units", _F3, _MNIST_500, _LARGE, _alike(*_LARGE), _end, (0.001,)),
)
_RATE_CLAIM = "pop-CD performs slightly better with the smaller learning rate on the real sets"
_AFTER_FIGURE_2 = 9
_CELL_CLAIMS: tuple[tuple[str, tuple[int, ...], Callable[[Cells], list[Finding]]], ...] = (
    ("with 16 hidden units CD has the smaller variance", (16,), _compared("variance", lambda cd, pop: cd < pop)),
    ("with 16 hidden units pop-CD has the smaller bias", (16,), _compared("bias", lambda cd, pop: pop < cd)),
    ("with 500 hidden units pop-CD has the larger bias", (500,), _compared("bias", lambda cd, pop: pop > cd)),
    ("more Gibbs steps reduce the bias of pop-CD on larger machines", (100, 500), _more_steps_help),
)
