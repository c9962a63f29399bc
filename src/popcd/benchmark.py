"""One update as a multiple of its five bare matrix products, measured side by side.

Where everything has one thread, processor time is measured: other work on the machine does not add to it, as it does to the
time that passes. NumPy is told by OPENBLAS_NUM_THREADS=1, PyTorch by OMP_NUM_THREADS=1, XLA by NPROC=1.
"""

import os
import platform
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any, NamedTuple

import jax
import numpy as np

from popcd.chunks import prepare
from popcd.estimators import Estimator, cd, exact, pcd, pop_cd, pt
from popcd.processor import processor_line
from popcd.rbm import RBM

_ALONE = all(os.environ.get(name) == "1" for name in ("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"))
clock = time.process_time if _ALONE else time.perf_counter
PAUSE = 0.1  # seconds: idle threads of NumPy's BLAS spin on for a while and would take a core from what is timed next
_SECONDS = 0.15  # that each side runs, at least
_MOST_UPDATES = 5_000
_MOST_ENUMERATED = 16
_LARGE = 10**10  # multiply-adds of a product from which an update takes seconds: fewer estimators and rounds
_LARGE_ROUNDS = 3


class Size(NamedTuple):
    """Units of both sides and rows of a batch."""

    visible: int
    hidden: int
    batch: int

    def __str__(self) -> str:
        return f"{self.visible} x {self.hidden}, {self.batch}"

    @property
    def large(self) -> bool:
        return self.visible * self.hidden * self.batch >= _LARGE


SIZES = (Size(784, 500, 500), Size(784, 16, 500), Size(128, 100, 246), Size(16, 16, 32))
LARGEST = Size(784, 4096, 4096)

Work = Callable[[int], Any]  # does so many updates


def estimators(size: Size) -> dict[str, Estimator]:
    """Those that are timed at a size, by name."""
    few = {"cd": cd(), "pcd": pcd(), "pop-cd": pop_cd()}
    if size.large:
        return few
    more = few | {"pop-cd mixture": pop_cd(proposal="mixture"), "pt": pt()}
    return more | {"exact": exact()} if min(size.visible, size.hidden) <= _MOST_ENUMERATED else more


def compare(size: Size, rounds: int) -> dict[str, Any]:
    """Microseconds of an update of every estimator, and ratios to the bare products."""
    rows = random_rows(size)
    works: dict[str, Work] = {"bare": bare_products(size)}
    works |= {name: updates(estimator, rows, size) for name, estimator in estimators(size).items()}
    return size._asdict() | ratios(interleaved(works, min(rounds, _LARGE_ROUNDS) if size.large else rounds))


def random_rows(size: Size, batches: int = 10) -> np.ndarray:
    """Binary rows for a size."""
    return np.random.default_rng(0).integers(0, 2, (batches * size.batch, size.visible), np.uint8)


def bare_products(size: Size) -> Work:
    """The products that an update of CD-1 cannot do without, in float32 NumPy: three for the chain, two for the gradient."""
    rng = np.random.default_rng(0)
    visible, hidden = (rng.random((size.batch, n), np.float32) for n in (size.visible, size.hidden))
    weights = rng.random((size.visible, size.hidden), np.float32)

    def products(n: int) -> None:
        for _ in range(n):
            visible @ weights
            hidden @ weights.T
            visible @ weights
            visible.T @ hidden
            visible.T @ hidden

    return products


def updates(estimator: Estimator, rows: np.ndarray, size: Size) -> Work:
    """Training as `popcd.train` does it, always from the same start."""
    training = prepare(RBM.create(size.visible, size.hidden), rows, estimator, batch_size=size.batch, learning_rate=0.01)
    return lambda n: training.rows.advance(training.first, n)[0].rbm.weights.block_until_ready()


def interleaved(works: Mapping[str, Work], rounds: int) -> dict[str, list[float]]:
    """Seconds per update of works that take turns, so that what else the machine does meets all of them."""
    counts = {name: _count(work) for name, work in works.items()}
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            times[name].append(_seconds(work, counts[name]) / counts[name])
    return times


def _count(work: Work) -> int:
    """Updates that take long enough to be timed; what is not compiled yet is compiled here."""
    work(1)
    n = 1
    while (seconds := _seconds(work, n)) < _SECONDS and n < _MOST_UPDATES:
        n = min(_MOST_UPDATES, max(2 * n, int(1.2 * n * _SECONDS / seconds)))
    return n


def _seconds(work: Work, n: int) -> float:
    time.sleep(PAUSE)
    start = clock()
    work(n)
    return clock() - start


def ratios(times: Mapping[str, list[float]]) -> dict[str, Any]:
    """Medians in microseconds; medians, least and largest of the ratios to "bare" of the same round."""
    found = {n: np.divide(values, times["bare"]) for n, values in times.items() if n != "bare"}
    return {
        "microseconds": {name: 1e6 * float(np.median(values)) for name, values in times.items()},
        "ratio": {name: float(np.median(r)) for name, r in found.items()},
        "range": {name: [float(r.min()), float(r.max())] for name, r in found.items()},
    }


def environment(*further: str) -> dict[str, Any]:
    """The machine, and versions of what was measured; `further` packages may be named."""
    names = ("popcd", "jax", "jaxlib", "numpy", *further)
    return {
        "cpu": processor_line("model name") or platform.machine(),
        "cores": os.cpu_count(),
        "time": "of the processor, one thread" if _ALONE else "that passed, all threads",
        "device": str(jax.devices()[0]),
        "versions": {"python": platform.python_version()} | {name: version(name) for name in names},
    }


def table(result: dict[str, Any]) -> str:
    """Ratios for people: a column per size, a line per kind of update."""
    kinds = list(dict.fromkeys(name for size in result["sizes"] for name in size["ratio"]))
    places = [str(Size(size["visible"], size["hidden"], size["batch"])) for size in result["sizes"]]
    wide = max(map(len, kinds)) + 2
    lines = [
        f"one update as a multiple of its five bare products in NumPy: median (least-largest) of {result['rounds']} rounds",
        f"time {result['time']}; {result['cpu']}, {result['cores']} cores, {result['device']}; "
        + ", ".join(f"{name} {number}" for name, number in result["versions"].items()),
        "",
        " " * wide + "".join(f"{place:>21}" for place in places),
        f"{'bare':<{wide}}" + "".join(f"{size['microseconds']['bare']:>18,.0f} us" for size in result["sizes"]),
    ]
    lines += [f"{kind:<{wide}}" + "".join(f"{_cell(size, kind):>21}" for size in result["sizes"]) for kind in kinds]
    return "\n".join(lines)


def _cell(size: dict[str, Any], kind: str) -> str:
    if kind not in size["ratio"]:
        return "-"
    middle, least, largest = (f"{r:.2f}" if r < 100 else f"{r:.0f}" for r in (size["ratio"][kind], *size["range"][kind]))
    return f"{middle} ({least}-{largest})"
