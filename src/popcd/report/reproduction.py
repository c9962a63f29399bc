"""The report of a folder of `popcd reproduce`: claims, figures, Table 1, filters and samples, settings."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

import popcd.io as io
from popcd.experiments.claims import verdicts
from popcd.experiments.differences import differences, of_records
from popcd.experiments.paper import CD_1, MIXTURE_1, POP_1
from popcd.experiments.rows import Panel, Record, algorithm_of, cells, optimum, panels, title
from popcd.experiments.store import load_records
from popcd.foreign import FileError
from popcd.report.document import Block, Checklist, Heading, Picture, Table, Text
from popcd.report.figures import IMAGE, image, learning_curves, tiles
from popcd.report.text import label_of, with_error

_READING = (
    "A claim holds where every panel or row shows it. Diverged: a trial that ended more than 0.1 nat, ten times its own noise "
    "and the AIS bracket below its best. Alike: within 2 % of what training gained, about the width of a line in the figures. "
    "A question mark: within the error, from a part of training only, or from likelihoods that are not to be trusted."
)
_SHOWN = (CD_1, POP_1, MIXTURE_1)


def document(directory: Path) -> list[Block]:
    """All blocks of the report; `notes.md` in the folder, words of a person on the results, is included where it is there."""
    manifest, records, damaged = load_records(directory)
    figures, table = panels(records), cells(records)
    hours = sum(r["times"]["seconds"] for r in records) / 3600
    summary = f"{len(records)} results, profile {manifest['profile']}, popcd {manifest['popcd']}, {hours:.1f} core hours."
    judged = (figures, table)
    if manifest["profile"] == "smoke":
        summary += " This profile only checks that everything runs; nothing is claimed from it."
        judged = ([], [])
    if damaged:
        summary += f" {len(damaged)} damaged files are left out."
    blocks: list[Block] = [
        Heading("Population Contrastive Divergence: the paper's experiments, run again", 1),
        Text("Krause, Fischer, Igel: Population-Contrastive-Divergence: Does Consistency help with RBM training?"),
        Text(summary),
        Heading("The paper's claims"),
        Text(_READING),
        Checklist(verdicts(*judged)),
    ]
    notes = directory / "notes.md"
    if notes.exists():
        blocks += [Heading("Reading"), Text(notes.read_text())]
    for experiment, group in groupby(figures, key=lambda panel: panel.experiment):
        blocks += _figure(experiment, list(group))
    if table:
        blocks += _table(table)
        blocks += _mixture(table, figures)
    blocks += _machines(directory, figures)
    return blocks + _settings(manifest, records)


def _figure(experiment: str, group: Sequence[Panel]) -> list[Block]:
    name = experiment.replace("figure", "Figure ")
    words = "mean over trials, band from the least to the largest; negative log-likelihood per row, lower is better."
    blocks: list[Block] = [Heading(name), Picture(experiment, image(learning_curves(group)), f"{name}: {words}")]
    for panel in group:
        best = optimum(panel.problem)
        rows = [_ends(curve.summary()) for curve in panel.curves.values()]
        if best is not None:
            rows.append(("optimum", "", f"{best:.3f}", "", "", ""))
        blocks += [
            Heading(panel.title, 3),
            Table(("algorithm", "trials", "at the end (s.e.)", "at its best (s.e.)", "best after", "diverged"), rows),
        ]
    return blocks


def _ends(row: dict[str, Any]) -> tuple[str, ...]:
    end, best = (with_error(row[at], row[f"{at}_stderr"]) for at in ("final", "best"))
    if row["bracket_half_width"]:
        end += f" ±{row['bracket_half_width']:.2f}" + ("" if row["trusted"] else ", not to be trusted")
    return (
        row["estimator"],
        str(row["trials"]),
        end,
        best,
        f"{row['best_step']:,}",
        f"{row['diverged_trials']} of {row['trials']}",
    )


def _table(found: Sequence[dict[str, Any]]) -> list[Block]:
    inside = [cell["inside"] for cell in found if cell["inside"] is not None]
    rows = [
        (
            f"{title(c['problem'])} {c['hidden']}",
            label_of(c),
            c["quantity"],
            "" if c["published"] is None else f"{c['published']:.3g}",
            *(f"{c[name]:.3g}" for name in ("median", "low", "high")),
            "" if c["ratio"] is None else f"{c['ratio']:.2f}",
            {True: "inside", False: "outside", None: ""}[c["inside"]],
            f"{c['median_corrected']:.2g}" if "median_corrected" in c else "",
            f"{c['machines']} x {c['repeats']:,}",
        )
        for c in found
    ]
    columns = (
        "problem",
        "algorithm",
        "quantity",
        "published",
        "median",
        "low",
        "high",
        "ratio",
        "published is",
        "corrected",
        "machines x repeats",
    )
    words = (
        "Bias and variance per parameter of gradient estimates at machines trained with CD-1. Published: one machine per row. "
        f"Median, low and high: over our machines. {sum(inside)} of {len(inside)} published figures lie inside our range. "
        "Corrected: median bias less the squared error that an unbiased estimator's mean over the repeats would have."
    )
    return [Heading("Table 1"), Text(words), Table(columns, rows, left=3)]


def _mixture(found: Sequence[dict[str, Any]], figures: Sequence[Panel]) -> list[Block]:
    """pop-CD with single proposals beside the mixture, in every row that has both."""
    by = {(c["problem"], c["hidden"], c["k"], c["estimator"], c["quantity"]): c for c in found}
    rows = []
    for problem, hidden, k in dict.fromkeys(key[:3] for key in by):
        places = [(problem, hidden, k, word, q) for q in ("variance", "bias") for word in ("pop-cd", "pop-cd-mixture")]
        if all(place in by for place in places):
            here = [by[place] for place in places]
            values = [f"{cell.get('median_corrected', cell['median']):.2g}" for cell in here]
            ess = [f"{cell['ess']:.0f}" for cell in here[:2]]
            rows.append(
                (f"{title(problem)} {hidden}", str(k), *values, *ess, _finals(figures, problem, hidden) if k == 1 else "")
            )
    columns = (
        "problem",
        "k",
        "variance: single",
        "mixture",
        "bias: single",
        "mixture",
        "ESS: single",
        "mixture",
        "final, single / mixture",
    )
    words = (
        "The mixture proposal is not in the paper's experiments. Medians over machines, the bias corrected for the noise of "
        "the mean; ESS is the effective sample size; final: mean log-likelihood at the end of training at each learning rate."
    )
    return [Heading("pop-CD and the mixture proposal"), Text(words), Table(columns, rows)] if rows else []


def _finals(figures: Sequence[Panel], problem: str, hidden: int) -> str:
    here = [
        p for p in figures if (p.problem, p.hidden) == (problem, hidden) and {"pop-CD-1", "mixture pop-CD-1"} <= p.curves.keys()
    ]
    return "; ".join(
        f"{p.curves['pop-CD-1'].mean[-1]:.3f} / {p.curves['mixture pop-CD-1'].mean[-1]:.3f} at {p.learning_rate}" for p in here
    )


def _machines(directory: Path, figures: Sequence[Panel]) -> list[Block]:
    """Filters and samples of the first trial at the larger learning rate, where the machines are there."""
    from popcd.sampling import sample

    blocks: list[Block] = []
    for problem, hidden in dict.fromkeys((p.problem, p.hidden) for p in figures):
        rate = max(p.learning_rate for p in figures if (p.problem, p.hidden) == (problem, hidden))
        for shown in _SHOWN:
            path = directory / "models" / f"{problem}-{hidden}-{shown.word}-{shown.k}-rate-{rate}-seed-0.safetensors"
            try:
                rbm, shape = io.load(path), IMAGE[problem]
            except (FileNotFoundError, FileError):
                continue
            filters = tiles(np.asarray(rbm.weights).T[:32], shape, 8, "", symmetric=True)
            drawn = tiles(np.asarray(sample(rbm, n=32, seed=0)), shape, 8, "", symmetric=False)
            where = f"{title(problem)}, {hidden} hidden, {shown.label}"
            blocks += [
                Picture(f"tiles-filters-{path.stem}", image(filters), f"{where}: filters (blue negative, red positive)"),
                Picture(f"tiles-samples-{path.stem}", image(drawn), f"{where}: samples"),
            ]
    return [Heading("Filters and samples"), *blocks] if blocks else []


def _settings(manifest: dict[str, Any], records: Sequence[Record]) -> list[Block]:
    blocks: list[Block] = [Heading("Settings")]
    for experiment in dict.fromkeys(r["experiment"] for r in records):
        other = differences(experiment, of_records(r for r in records if r["experiment"] == experiment))
        words = "\n".join(f"- {words}" for words in other) or "- nothing"
        blocks += [Text(f"{experiment}, profile {manifest['profile']}, other than in the paper:"), Text(words)]
    columns = ("experiment", "problem", "algorithm", "rate", "batch", "iterations", "results", "seconds in all")
    lines = [_line(place, list(same)) for place, same in groupby(sorted(records, key=_place), key=_place)]
    data = sorted({(r["settings"]["problem"], f"{r['data']['rows']:,}", r["data"]["sha256"][:16]) for r in records})
    versions = sorted({tuple(r["versions"].items()) for r in records})
    made = "; ".join(", ".join(f"{name} {value}" for name, value in v) for v in versions)
    return [
        *blocks,
        Table(columns, lines, left=3),
        Heading("Data and versions", 3),
        Table(("data", "rows", "SHA-256 of the packed rows"), data),
        Text(f"Made with: {made}. One thread per result."),
    ]


def _place(record: Record) -> tuple[str, ...]:
    s = record["settings"]
    return s["experiment"], f"{title(s['problem'])} {s['hidden']}", algorithm_of(record).label, f"{s['learning_rate']}"


def _line(place: tuple[str, ...], same: Sequence[Record]) -> tuple[str, ...]:
    s, seconds = same[0]["settings"], sum(r["times"]["seconds"] for r in same)
    return (*place, str(s["batch_size"]), f"{s['iterations']:,}", str(len(same)), f"{seconds:,.0f}")
