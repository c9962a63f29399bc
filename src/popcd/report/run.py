"""The report of a training run: curves, filters, samples, evaluation, settings."""

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import popcd.io as io
from popcd.report.document import Block, Heading, Picture, Table, Text
from popcd.report.figures import IMAGE, image, metrics_curves, tiles
from popcd.runs.folder import RunFolder
from popcd.sampling import sample

_SHOWN = 64


def document(path: Path, shape: tuple[int, int] | None = None) -> list[Block]:
    """All blocks of the report of a run; one that has not ended has curves and settings only."""
    folder = RunFolder(path)
    config, rows = folder.configuration(), folder.rows()
    about = json.loads((path / "run.json").read_bytes())
    label = f"{config.estimator} with {config.hidden} hidden units on {about['data']['name']}"
    done = rows[-1]["step"] if rows else 0
    state = f"{done:,} of {config.iterations:,} updates" + ("" if folder.model.exists() else "; the run has not ended")
    blocks: list[Block] = [Heading(f"A run of popcd: {label}", 1), Text(f"{path.name}: {state}.")]
    if rows:
        blocks += [
            Heading("Curves"),
            Picture("curves", image(metrics_curves(rows)), "Metrics over the updates."),
            _last(rows[-1]),
        ]
    evaluations = folder.evaluations()
    if evaluations:
        blocks += [Heading("Evaluation"), *_evaluated(evaluations)]
    if folder.model.exists():
        blocks += _machine(folder.model, shape or IMAGE.get(config.data) or _square(about["data"]["visible"]))
    settings = [(name, str(value)) for name, value in asdict(config).items() if value is not None]
    data = [(name, str(value)) for name, value in about["data"].items()]
    versions = [(name, str(about[name])) for name in ("popcd", "jax", "python", "platform")]
    return [*blocks, Heading("Settings"), Table(("setting", "value"), [*settings, *data, *versions], left=2)]


def _last(row: dict[str, Any]) -> Table:
    shown = [(name.replace("_", " "), f"{value:,.4g}") for name, value in row.items() if name != "step"]
    return Table((f"after update {row['step']:,}", "value"), shown)


def _evaluated(evaluations: list[dict[str, Any]]) -> list[Block]:
    columns = ("data", "rows", "mean log-likelihood", "bracket", "method", "to be trusted")
    lines = []
    for e in evaluations:
        bracket = "exact" if e["method"] == "exact" else f"{e['lower']:.3f} to {e['upper']:.3f}"
        trust = "yes" if e["trustworthy"] else f"no: {e['reason']}"
        lines.append(
            (f"{e['data']} ({e['part']})", f"{e['rows']:,}", f"{e['log_likelihood']:.3f}", bracket, e["method"], trust)
        )
    return [Table(columns, lines)]


def _machine(path: Path, shape: tuple[int, int] | None) -> list[Block]:
    if shape is None:
        return []
    rbm = io.load(path)
    if shape[0] * shape[1] != rbm.n_visible:
        raise ValueError(
            f"images of {shape[0]} x {shape[1]} have {shape[0] * shape[1]} pixels, the machine {rbm.n_visible} units"
        )
    strongest = np.argsort(-np.linalg.norm(np.asarray(rbm.weights), axis=0), kind="stable")[:_SHOWN]
    filters = tiles(np.asarray(rbm.weights).T[strongest], shape, 8, "", symmetric=True)
    drawn = tiles(sample(rbm, n=_SHOWN, seed=0), shape, 8, "", symmetric=False)
    return [
        Heading("Filters and samples"),
        Picture(
            "tiles-filters", image(filters), f"The {len(strongest)} filters of largest norm (blue negative, red positive)."
        ),
        Picture("tiles-samples", image(drawn), "Samples of the model."),
    ]


def _square(visible: int) -> tuple[int, int] | None:
    side = math.isqrt(visible)
    return (side, side) if side * side == visible else None
