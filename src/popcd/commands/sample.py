"""`popcd sample`."""

from pathlib import Path
from typing import Any

import click

from popcd.commands.models import load_model, model, seed, threshold
from popcd.commands.options import as_json, image_shape, print_result, readable_errors

_TYPED = click.core.ParameterSource.COMMANDLINE
_PICTURED = 400


@click.command()
@model
@click.option("-n", "--number", "n", type=click.IntRange(min=1), default=100, show_default=True, help="States to draw.")
@click.option("--method", type=click.Choice(("auto", "exact", "gibbs", "tempering")), default="auto", show_default=True)
@click.option(
    "--from", "source", type=click.Choice(("data", "base", "coins")), default="coins", help="Where Gibbs chains start."
)
@click.option("--data", help="For --from data or base (independent units with the data's means): a shipped set or a file.")
@click.option(
    "--sweeps", type=click.IntRange(min=1), default=1_000, show_default=True, help="Of Gibbs chains and of --complete."
)
@click.option(
    "--complete",
    "partial",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help=".npy, .npz or .csv of rows with NaN where values are missing: draws these, given the rest.",
)
@image_shape("Draw a grid of images of this shape, at most 400 of them, as .png.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), default=Path("samples.npz"), show_default=True)
@threshold
@seed
@as_json
@click.pass_context
def sample(
    context: click.Context,
    model: Path,
    n: int,
    method: str,
    source: str,
    data: str | None,
    sweeps: int,
    partial: Path | None,
    shape: tuple[int, int] | None,
    out: Path,
    threshold: float | None,
    seed: int,
    as_json: bool,
) -> None:
    """Draw states of MODEL, a file or the folder of a run, into an .npz file with the array `samples`.

    \b
    Examples:
      popcd sample runs/a -n 64 --image 16x8
      popcd sample runs/a --method gibbs --from data --data letters --sweeps 10
      popcd sample runs/a --complete half.npy --image 16x8 --out completed.npz
    """
    if out.suffix != ".npz":
        raise click.BadParameter(f"{out} must end in .npz; a picture goes beside it", param_hint="--out")
    import popcd

    with readable_errors(ValueError, TypeError, OSError):
        rbm = load_model(model)
        if shape is not None and shape[0] * shape[1] != rbm.n_visible:
            raise ValueError(
                f"--image {shape[0]}x{shape[1]} has {shape[0] * shape[1]} pixels, the machine {rbm.n_visible} units"
            )
        if partial is not None:
            _only(context, "--complete", ("n", "method", "source", "data", "threshold"))
            drawn = popcd.complete(rbm, _partial(partial), sweeps=sweeps, seed=seed)
        elif method == "gibbs":
            if source == "coins":
                _only(context, "--from coins", ("data", "threshold"))
            start = None if source == "coins" else _start(rbm, n, source, data, threshold, seed)
            drawn = popcd.sample(rbm, n, seed, method="gibbs", start=start, sweeps=sweeps)
        else:
            _only(context, f"--method {method}", ("source", "data", "threshold", "sweeps"))
            drawn = popcd.sample(rbm, n, seed, method=method)  # type: ignore[arg-type]
        files = _write(drawn, out, shape)
    result = {"model": str(model), "samples": len(drawn), "mean": float(drawn.mean()), "files": files}
    print_result(result, as_json, lambda r: "\n".join([f"{r['samples']} states drawn, mean {r['mean']:.4f}", *r["files"]]))


def _only(context: click.Context, way: str, others: tuple[str, ...]) -> None:
    """Refuse options that would be ignored."""
    given = [p for p in context.command.params if p.name in others and context.get_parameter_source(p.name) is _TYPED]
    if given:
        raise click.UsageError(f"{', '.join(max(p.opts, key=len) for p in given)} has no use with {way}: leave it out")


def _start(rbm: Any, n: int, source: str, data: str | None, threshold: float | None, seed: int) -> Any:
    import numpy as np

    from popcd.commands.models import load_data

    if data is None:
        raise click.UsageError(f"--from {source} needs --data")
    rows, chance = load_data(data, threshold, rbm).train, np.random.default_rng(seed)
    if source == "data":
        return rows[chance.choice(len(rows), n, replace=n > len(rows))]
    return chance.random((n, rows.shape[1])) < rows.mean(axis=0)


def _partial(path: Path) -> Any:
    """Rows with NaN; in a CSV file an empty field or `nan`."""
    import numpy as np

    from popcd.datasets.files import read_csv
    from popcd.foreign import read_npz

    if path.suffix not in (".npy", ".npz", ".csv"):
        raise ValueError(f"{path} must end in .npy, .npz or .csv")
    if path.suffix == ".csv":
        return read_csv(path)
    if path.suffix == ".npz":
        arrays = list(read_npz(path).values())
        if len(arrays) != 1:
            raise ValueError(f"{path} must hold one array, got {len(arrays)}")
        return arrays[0]
    try:
        return np.load(path, allow_pickle=False)
    except EOFError as error:
        raise ValueError(f"{path} is empty") from error


def _write(drawn: Any, out: Path, shape: tuple[int, int] | None) -> list[str]:
    import io

    import numpy as np

    from popcd.files import write_atomically

    content = io.BytesIO()
    np.savez_compressed(content, samples=drawn)
    write_atomically(out, content.getvalue())
    files = [out]
    if shape is not None:
        from popcd.report.figures import save_figure, tiles

        files.append(out.with_suffix(".png"))
        columns = max(1, min(len(drawn), round((len(drawn) * shape[0] / shape[1]) ** 0.5)))
        save_figure(tiles(drawn[:_PICTURED], shape, min(columns, 20), "", symmetric=False), files[1])
    return [str(file) for file in files]
