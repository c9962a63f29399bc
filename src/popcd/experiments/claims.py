"""What the paper claims, as tests of result rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from popcd.experiments.rows import Panel, title

HOLDS, PARTLY, FAILS, NOT_RUN = "holds", "holds in part", "does not hold", "not run"
_ALIKE = 0.02  # of the improvement over the start: "almost the same" in the paper's words

Cells = Sequence[dict[str, Any]]
Finding = tuple[bool, str]


@dataclass(frozen=True)
class Verdict:
    """A claim, what the results say of it, and the figures behind that."""

    claim: str
    source: str
    verdict: str
    measured: list[str]


def verdicts(panels: Sequence[Panel], cells: Cells) -> list[Verdict]:
    """All claims in the paper's order."""
    found = [_of_panels(*claim, panels) for claim in _PANEL_CLAIMS]
    found.insert(_AFTER_FIGURE_2, _smaller_rate(panels))
    return found + [_of_cells(*claim, cells) for claim in _CELL_CLAIMS]


def _smaller_rate(panels: Sequence[Panel]) -> Verdict:
    """Compares two panels of a problem, as no other claim does."""
    findings = []
    ends = {(p.problem, p.learning_rate): p for p in panels if (p.problem, p.hidden) in _REAL}
    for problem, _ in _REAL:
        large, small = ends.get((problem, 0.1)), ends.get((problem, 0.01))
        if large and small and "pop-CD-1" in large.curves and "pop-CD-1" in small.curves:
            a, b = (panel.curves["pop-CD-1"].summary() for panel in (large, small))
            findings.append(
                (b["final"] > a["final"], f"{title(problem)}, pop-CD-1: {a['final']:.3f} at 0.1, {b['final']:.3f} at 0.01")
            )
    return Verdict(
        "pop-CD performs slightly better with the smaller learning rate on the real sets",
        "Figure 2",
        _verdict([right for right, _ in findings]),
        [words for _, words in findings],
    )


def _of_panels(
    claim: str, source: str, places: Sequence[tuple[str, int]], test: Callable[[Panel], Finding | None], panels: Sequence[Panel]
) -> Verdict:
    here = [panel for panel in panels if (panel.problem, panel.hidden) in places]
    findings = [(panel, finding) for panel in here if (finding := test(panel)) is not None]
    measured = [f"{title(p.problem)} {p.hidden} at {p.learning_rate}: {words}" for p, (_, words) in findings]
    return Verdict(claim, source, _verdict([right for _, (right, _) in findings]), measured)


def _of_cells(claim: str, source: str, hidden: Sequence[int], test: Callable[[Cells], list[Finding]], cells: Cells) -> Verdict:
    findings = test([cell for cell in cells if cell["hidden"] in hidden])
    return Verdict(claim, source, _verdict([right for right, _ in findings]), [words for _, words in findings])


def _verdict(findings: Sequence[bool]) -> str:
    if not findings:
        return NOT_RUN
    return HOLDS if all(findings) else PARTLY if any(findings) else FAILS


def _curves(panel: Panel, *labels: str) -> list[dict[str, Any]] | None:
    """The summaries of curves, or None if one was not run."""
    return [panel.curves[label].summary() for label in labels] if all(label in panel.curves for label in labels) else None


def _diverge(*labels: str) -> Callable[[Panel], Finding | None]:
    def test(panel: Panel) -> Finding | None:
        rows = _curves(panel, *labels)
        return None if rows is None else (all(r["diverged"] for r in rows), "; ".join(_fall(r) for r in rows))

    return test


def _do_not_diverge(*labels: str) -> Callable[[Panel], Finding | None]:
    def test(panel: Panel) -> Finding | None:
        rows = _curves(panel, *labels)
        return None if rows is None else (not any(r["diverged"] for r in rows), "; ".join(_fall(r) for r in rows))

    return test


def _above(better: Sequence[str], worse: Sequence[str]) -> Callable[[Panel], Finding | None]:
    """Every curve of `better` ends above every one of `worse`, by three standard errors and the bracket."""

    def test(panel: Panel) -> Finding | None:
        if _curves(panel, *better, *worse) is None:
            return None
        right = all(_gap(panel, a, b) > _doubt(panel, a, b) for a in better for b in worse)
        return right, "; ".join(_end(r) for r in _curves(panel, *better, *worse) or [])

    return test


def _alike(*labels: str) -> Callable[[Panel], Finding | None]:
    """The ends differ by less than 2 % of what training gained, or by less than their error."""

    def test(panel: Panel) -> Finding | None:
        rows = _curves(panel, *labels)
        if rows is None:
            return None
        pairs = [(a, b) for i, a in enumerate(labels) for b in labels[i + 1 :]]
        right = all(abs(_gap(panel, a, b)) <= max(_tolerance(panel), _doubt(panel, a, b)) for a, b in pairs)
        return right, "; ".join(_end(r) for r in rows) + f" (alike: within {_tolerance(panel):.3f})"

    return test


def _not_below(one: str, other: str) -> Callable[[Panel], Finding | None]:
    """`one` ends above `other` or alike."""

    def test(panel: Panel) -> Finding | None:
        rows = _curves(panel, one, other)
        if rows is None:
            return None
        right = _gap(panel, one, other) >= -max(_tolerance(panel), _doubt(panel, one, other))
        return right, "; ".join(_end(r) for r in rows)

    return test


def _gap(panel: Panel, a: str, b: str) -> float:
    return float(panel.curves[a].mean[-1] - panel.curves[b].mean[-1])


def _doubt(panel: Panel, a: str, b: str) -> float:
    errors = [panel.curves[label].summary()["final_stderr"] or 0.0 for label in (a, b)]
    return float(3 * np.linalg.norm(errors) + panel.curves[a].half_width + panel.curves[b].half_width)


def _tolerance(panel: Panel) -> float:
    start = min(curve.mean[0] for curve in panel.curves.values())
    return float(_ALIKE * (max(curve.mean.max() for curve in panel.curves.values()) - start))


def _end(row: dict[str, Any]) -> str:
    error = "" if row["final_stderr"] is None else f"({row['final_stderr']:.3f})"
    return f"{row['estimator']} {row['final']:.3f}{error}"


def _fall(row: dict[str, Any]) -> str:
    if row["best_step"] == 0 or row["best"] - row["final"] < 5e-4:
        return f"{row['estimator']} {row['final']:.3f}"
    return f"{row['estimator']} {row['best']:.3f} after {row['best_step']:,}, then {row['final']:.3f}"


def _pairs(cells: Cells, quantity: str) -> list[tuple[str, float, float]]:
    """Medians of CD and pop-CD in each row that has both."""
    by = {(c["problem"], c["hidden"], c["k"], c["estimator"]): c["median"] for c in cells if c["quantity"] == quantity}
    rows = dict.fromkeys(key[:3] for key in by)
    return [
        (f"{title(p)} {h}, k = {k}", by[p, h, k, "cd"], by[p, h, k, "pop-cd"])
        for p, h, k in rows
        if {(p, h, k, "cd"), (p, h, k, "pop-cd")} <= by.keys()
    ]


def _compared(quantity: str, right: Callable[[float, float], bool]) -> Callable[[Cells], list[Finding]]:
    def test(cells: Cells) -> list[Finding]:
        return [(right(a, b), f"{row}: CD {a:.2g}, pop-CD {b:.2g}") for row, a, b in _pairs(cells, quantity)]

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


def _slow(panel: Panel) -> Finding | None:
    """At their best, both pop-CDs are below both CDs."""
    rows = _curves(panel, "CD-1", "CD-10", "pop-CD-1", "pop-CD-10")
    if rows is None:
        return None
    right = max(r["best"] for r in rows[2:]) < min(r["best"] for r in rows[:2])
    return right, "; ".join(f"{r['estimator']} at best {r['best']:.3f}" for r in rows)


_ARTIFICIAL = (("bars-and-stripes", 16), ("artificial-modes", 16))
_REAL = (("mnist", 16), ("letters", 16))
_ALL = ("CD-1", "CD-10", "PCD-1", "pop-CD-1", "pop-CD-10", "PT-10")
_PANEL_CLAIMS: tuple[tuple[str, str, Any, Any], ...] = (
    ("CD and PCD diverge on the artificial sets", "Figure 1", _ARTIFICIAL, _diverge("CD-1", "CD-10", "PCD-1")),
    (
        "pop-CD shows no sign of divergence on the artificial sets",
        "Figure 1",
        _ARTIFICIAL,
        _do_not_diverge("pop-CD-1", "pop-CD-10"),
    ),
    (
        "pop-CD reaches higher log-likelihoods than CD",
        "Figure 1",
        _ARTIFICIAL,
        _above(("pop-CD-1", "pop-CD-10"), ("CD-1", "CD-10")),
    ),
    ("pop-CD with k = 1 and k = 10 perform almost the same", "Figure 1", _ARTIFICIAL, _alike("pop-CD-1", "pop-CD-10")),
    ("pop-CD-1 is on a par with or better than PT", "Figure 1", _ARTIFICIAL, _not_below("pop-CD-1", "PT-10")),
    ("CD does not diverge on the real sets with 16 hidden units", "Figure 2", _REAL, _do_not_diverge("CD-1", "CD-10")),
    ("all algorithms perform almost the same on Letters", "Figure 2", (("letters", 16),), _alike(*_ALL)),
    ("pop-CD-1 ends above CD-1 on MNIST", "Figure 2", (("mnist", 16),), _above(("pop-CD-1",), ("CD-1",))),
    (
        "CD ends above pop-CD on Letters with 100 hidden units",
        "Figure 3",
        (("letters", 100),),
        _above(("CD-1", "CD-10"), ("pop-CD-1", "pop-CD-10")),
    ),
    (
        "CD diverges on MNIST with 500 hidden units after a first phase",
        "Figure 3",
        (("mnist", 500),),
        _diverge("CD-1", "CD-10"),
    ),
    (
        "pop-CD learns slowly on MNIST with 500 hidden units at rate 0.01",
        "Figure 3",
        (("mnist", 500),),
        lambda panel: _slow(panel) if panel.learning_rate == 0.01 else None,
    ),
    (
        "at rate 0.001 all algorithms behave alike on MNIST with 500 hidden units",
        "Figure 3",
        (("mnist", 500),),
        lambda panel: _alike("CD-1", "CD-10", "pop-CD-1", "pop-CD-10")(panel) if panel.learning_rate == 0.001 else None,
    ),
)
_AFTER_FIGURE_2 = 8
_CELL_CLAIMS: tuple[tuple[str, str, Any, Any], ...] = (
    ("with 16 hidden units CD has the smaller variance", "Table 1", (16,), _compared("variance", lambda cd, pop: cd < pop)),
    ("with 16 hidden units pop-CD has the smaller bias", "Table 1", (16,), _compared("bias", lambda cd, pop: pop < cd)),
    ("with many hidden units pop-CD has the larger bias", "Table 1", (100, 500), _compared("bias", lambda cd, pop: pop > cd)),
    ("more Gibbs steps reduce the bias of pop-CD on larger machines", "Table 1", (100, 500), _more_steps_help),
)
