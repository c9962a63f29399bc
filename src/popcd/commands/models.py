"""What the commands on finished machines share: loading a machine and its data."""

from pathlib import Path
from typing import Any

import click

from popcd.commands.progress import tell

model = click.argument("model", type=click.Path(exists=True, path_type=Path))
threshold = click.option("--threshold", type=float, help="Grey data: values above it are 1.")
_ROWS_FROM_DISK = 100_000
seed = click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True)


def load_model(path: Path) -> Any:
    """The machine of a file, or of the folder of a run."""
    import popcd

    return popcd.load(path / "model.safetensors" if path.is_dir() else path)


def load_data(name: str, threshold: float | None, rbm: Any) -> Any:
    """A data set as wide as the machine; of one that lies on disk, rows drawn at random that fit into memory."""
    import numpy as np

    import popcd

    data = popcd.datasets.load(name, **({} if threshold is None else {"threshold": threshold}))
    if data.train.shape[1] != rbm.n_visible:
        raise ValueError(f"{name} has {data.train.shape[1]} columns, but the machine has {rbm.n_visible} visible units")
    if isinstance(data.train, np.memmap):
        n = min(_ROWS_FROM_DISK, len(data.train))
        drawn = np.sort(np.random.default_rng(0).choice(len(data.train), n, replace=False))
        tell(f"{name} stays on disk: {n:,} of its {len(data.train):,} rows, drawn at random, stand for them")
        return popcd.datasets.Dataset(data.name, popcd.datasets.load(data.train[drawn]).train)
    return data
