"""`popcd data`."""

from pathlib import Path
from typing import Any

import click

from popcd.commands.models import threshold
from popcd.commands.options import as_json, print_result, readable_errors


@click.command()
@click.argument("name", required=False)
@threshold
@click.option("--export", type=click.Path(dir_okay=False, path_type=Path), help="Write it as .npz with train (and test).")
@as_json
def data(name: str | None, threshold: float | None, export: Path | None, as_json: bool) -> None:
    """Describe a data set, by NAME or file; without NAME, list the shipped ones.

    \b
    Examples:
      popcd data
      popcd data letters
      popcd data scans.csv --threshold 127 --export scans.npz
    """
    with readable_errors(ValueError, TypeError, OSError):
        from popcd.datasets import NAMES, load

        options = {} if threshold is None else {"threshold": threshold}
        if name is None and (threshold is not None or export is not None):
            raise click.UsageError("name a data set")
        sets = [load(n) for n in NAMES] if name is None else [load(name, **options)]
        result: dict[str, Any] = {"data": [_described(one) for one in sets]}
        if export is not None:
            _export(sets[0], export)
            result["files"] = [str(export)]
    print_result(result, as_json, _table)


def _described(one: Any) -> dict[str, Any]:
    from popcd.datasets import fingerprint

    found = {"name": one.name, "visible": one.train.shape[1], "train": len(one.train)}
    found |= {"test": None if one.test is None else len(one.test), "mean": float(one.train.mean())}
    return found | {"sha256": fingerprint(one.train)}


def _export(one: Any, path: Path) -> None:
    import io

    import numpy as np

    from popcd.files import write_atomically

    content = io.BytesIO()
    np.savez_compressed(content, train=one.train, **({} if one.test is None else {"test": one.test}))
    write_atomically(path, content.getvalue())


def _table(result: dict[str, Any]) -> str:
    lines = [f"{'name':<20}{'visible':>8}{'train':>9}{'test':>9}{'mean':>8}  SHA-256 of train"]
    for one in result["data"]:
        test = "" if one["test"] is None else f"{one['test']:,}"
        lines.append(
            f"{one['name']:<20}{one['visible']:>8}{one['train']:>9,}{test:>9}{one['mean']:>8.3f}  {one['sha256'][:16]}"
        )
    return "\n".join(lines + [f"written: {file}" for file in result.get("files", [])])
