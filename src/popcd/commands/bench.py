"""`popcd bench`."""

import time
from collections.abc import Callable
from typing import Any

import click

from popcd.commands.options import as_json, print_result
from popcd.commands.progress import Progress, quiet

_SIZES = ((784, 500, 500), (784, 16, 500), (128, 100, 246), (16, 16, 32))
_PAUSE = 0.05  # idle threads of NumPy's BLAS spin on for a while


@click.command()
@click.option("--rounds", type=click.IntRange(min=1), default=7, show_default=True, help="Medians are over this many rounds.")
@quiet
@as_json
def bench(rounds: int, silent: bool, as_json: bool) -> None:
    """Time one update of CD-1, PCD-1 and pop-CD-1 as a multiple of its five bare matrix products, side by side.

    \b
    Example:
      popcd bench --json
    """
    with Progress("timing", len(_SIZES), silent) as bar:
        sizes = []
        for number, size in enumerate(_SIZES):
            sizes.append(_compare(*size, rounds))
            bar.at(number + 1)
    import jax
    import numpy as np

    from popcd import __version__

    device = str(jax.devices()[0])
    result = {
        "rounds": rounds,
        "sizes": sizes,
        "device": device,
        "jax": jax.__version__,
        "numpy": np.__version__,
        "popcd": __version__,
    }
    print_result(result, as_json, _table)


def _compare(n_visible: int, n_hidden: int, batch_size: int, rounds: int) -> dict[str, Any]:
    """Microseconds per update, interleaved."""
    import numpy as np

    rng = np.random.default_rng(0)
    rows = rng.integers(0, 2, (10 * batch_size, n_visible)).astype(np.uint8)
    updates = int(np.clip(3e9 / (n_visible * n_hidden * batch_size), 10, 5_000))
    ways: dict[str, Callable[[], Any]] = {"bare": _bare(n_visible, n_hidden, batch_size, updates)}
    ways |= {word: _updates(word, rows, n_hidden, batch_size, updates) for word in ("cd", "pcd", "pop-cd")}
    for way in ways.values():
        way()
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            time.sleep(_PAUSE)
            start = time.perf_counter()
            way()
            times[name].append(1e6 * (time.perf_counter() - start) / updates)
    found = {name: float(np.median(values)) for name, values in times.items()}
    ratios = {n: [t / b for t, b in zip(times[n], times["bare"], strict=True)] for n in times if n != "bare"}
    return {
        "visible": n_visible,
        "hidden": n_hidden,
        "batch": batch_size,
        "microseconds": found,
        "ratio": {name: float(np.median(r)) for name, r in ratios.items()},
        "range": {name: [min(r), max(r)] for name, r in ratios.items()},
    }


def _bare(n_visible: int, n_hidden: int, batch_size: int, updates: int) -> Callable[[], None]:
    import numpy as np

    rng = np.random.default_rng(0)
    visible, hidden = (rng.random((batch_size, n)).astype(np.float32) for n in (n_visible, n_hidden))
    weights = rng.random((n_visible, n_hidden)).astype(np.float32)

    def products() -> None:
        for _ in range(updates):
            visible @ weights
            hidden @ weights.T
            visible @ weights
            visible.T @ hidden
            visible.T @ hidden

    return products


def _updates(word: str, rows: Any, n_hidden: int, batch_size: int, updates: int) -> Callable[[], Any]:
    from popcd import RBM
    from popcd.chunks import prepare
    from popcd.runs.configuration import Configuration
    from popcd.runs.run import build_estimator

    estimator = build_estimator(Configuration("-", n_hidden, word))
    training = prepare(RBM.create(rows.shape[1], n_hidden), rows, estimator, batch_size=batch_size, learning_rate=0.01)
    return lambda: training.rows.advance(training.first, updates)[0].rbm.weights.block_until_ready()


def _table(result: dict[str, Any]) -> str:
    names = list(result["sizes"][0]["ratio"])
    lines = [f"one update as a multiple of its five bare products in NumPy ({result['device']}, {result['rounds']} rounds)"]
    lines.append(f"{'visible x hidden, batch':<26}{'bare':>12}" + "".join(f"{name:>22}" for name in names))
    for size in result["sizes"]:
        place = f"{size['visible']} x {size['hidden']}, {size['batch']}"
        cells = [f"{size['ratio'][n]:.2f} ({size['range'][n][0]:.2f}-{size['range'][n][1]:.2f})" for n in names]
        lines.append(f"{place:<26}{size['microseconds']['bare']:>9.0f} us" + "".join(f"{cell:>22}" for cell in cells))
    return "\n".join(lines)
