"""`load`: one door to every data set."""

from importlib import resources
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from popcd.checks import binary_matrix
from popcd.datasets.files import ENDINGS, Dataset, from_file
from popcd.datasets.synthetic import artificial_modes, bars_and_stripes

OPTIONS: dict[str, tuple[str, ...]] = {
    "bars-and-stripes": ("size", "noise", "seed"),
    "artificial-modes": ("size", "noise", "seed", "rows"),
    "letters": ("test_fold",),
    "mnist": (),
}
NAMES = tuple(OPTIONS)


def load(source: Any, **options: Any) -> Dataset:
    """A data set by name, from a `.npz` or `.npy` file, or from an array.

    Parameters
    ----------
    source : one of

        - "bars-and-stripes": options size=4, noise=0.0, seed=0;
        - "artificial-modes": options size=16, noise=0.001, seed=0, rows=10_000;
        - "letters": 52,152 handwritten letters of 16 x 8 pixels (R. Kassel, B. Taskar). Option test_fold=0 names the
          fold (0 to 9) held out as `test`; None trains on all rows, as the paper does;
        - "mnist": 60,000 + 10,000 digits of 28 x 28 pixels, pixel > 127 (LeCun, Cortes, Burges);
        - the path of a `.npz`, `.h5` or `.mat` with an array `train` (and `test`) or a single array, or of a `.npy` or a
          `.csv`. Option threshold=t takes values above t as 1. A `.npy` of more than 1 GiB stays on disk,
          memory-mapped; with a threshold it takes a byte of memory per value;
        - an array, rows x visible.

    Without a threshold everything must hold exact zeros and ones; nothing is cast or clipped.

    Examples
    --------
    >>> load("bars-and-stripes").train.shape
    (32, 16)
    >>> import numpy as np
    >>> load(np.eye(3)).train.dtype
    dtype('uint8')
    """
    if isinstance(source, str | PathLike):
        builders = {
            "bars-and-stripes": lambda **o: Dataset("bars-and-stripes", bars_and_stripes(**o)),
            "artificial-modes": lambda **o: Dataset("artificial-modes", artificial_modes(**o)),
            "letters": _letters,
            "mnist": _mnist,
        }
        if source in builders:
            unknown = [name for name in options if name not in OPTIONS[str(source)]]
            if unknown:
                knows = ", ".join(OPTIONS[str(source)]) or "none"
                raise TypeError(f"{source} has no option {', '.join(unknown)}: it knows {knows}")
            return builders[str(source)](**options)
        if Path(source).suffix in ENDINGS:
            return from_file(Path(source), **options)
        files = ", ".join(ENDINGS)
        raise ValueError(f"unknown data set {str(source)!r}: expected one of {', '.join(NAMES)}, or a file ending in {files}")
    if options:
        raise TypeError(f"an array takes no options, got {', '.join(options)}")
    return Dataset("array", binary_matrix("data", source))


def _shipped(name: str) -> dict[str, np.ndarray]:
    """The arrays of a file of the package; images are packed eight pixels to a byte."""
    with resources.files("popcd.datasets").joinpath("data", f"{name}.npz").open("rb") as file:
        return dict(np.load(file, allow_pickle=False))


def _letters(test_fold: int | None = 0) -> Dataset:
    arrays = _shipped("letters")
    images, fold = np.unpackbits(arrays["images"], axis=1), arrays["fold"]
    if test_fold is None:
        return Dataset("letters", images)
    if test_fold not in range(10):
        raise ValueError(f"test_fold must be a fold from 0 to 9, or None to train on all rows, got {test_fold!r}")
    return Dataset("letters", images[fold != test_fold], images[fold == test_fold])


def _mnist() -> Dataset:
    arrays = _shipped("mnist")
    return Dataset("mnist", np.unpackbits(arrays["train"], axis=1), np.unpackbits(arrays["test"], axis=1))
