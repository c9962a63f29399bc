"""How time and memory of an update grow with visible and hidden units, batch, k, temperatures and rows, two decades each.

    NPROC=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/growth.py > growth.json

takes about five minutes; the plot goes to docs/growth.png. Without the variables all threads take part, and times are those
that passed, to which other work on the machine adds. Every point is a process of its own. Its memory is the peak of the process
less that of one that imported JAX and made the same rows. Exponents are slopes of least squares in log-log, over all points and
over the upper half of them. The fit of memory over all points of CD says how many copies of data, parameters and batch (visible
and hidden states in float32) training holds.
"""

import argparse
import json
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np

DEFAULT = {"visible": 256, "hidden": 256, "batch": 256, "k": 1, "temperatures": 1, "rows": 10_000}
DECADES = {
    "visible": (30, 65, 140, 300, 650, 1400, 3000),
    "hidden": (30, 65, 140, 300, 650, 1400, 3000),
    "batch": (30, 65, 140, 300, 650, 1400, 3000),
    "k": (1, 2, 5, 10, 20, 50, 100),
    "temperatures": (2, 4, 9, 20, 43, 93, 200),
    "rows": (10_000, 21_000, 46_000, 100_000, 210_000, 460_000, 1_000_000),
}
LABELS = {"visible": "visible units", "hidden": "hidden units", "batch": "batch", "k": "k of CD", "rows": "rows of data"}
PLOT = Path(__file__).parents[1] / "docs" / "growth.png"


def point(place: dict[str, int], train: bool) -> dict[str, float]:
    """What this process measures: seconds of an update, and the most bytes it held."""
    import popcd
    from popcd.benchmark import Size, interleaved, updates

    size, found = Size(place["visible"], place["hidden"], place["batch"]), {}
    popcd.RBM.create(1, 1).hidden_logits(np.zeros((1, 1)))  # JAX has begun
    rows = np.random.default_rng(0).integers(0, 2, (place["rows"], size.visible), np.uint8)
    if train:
        estimator = popcd.cd(place["k"]) if place["temperatures"] == 1 else popcd.pt(place["temperatures"])
        times = interleaved({"update": updates(estimator, rows, size)}, rounds=5)["update"]
        found = {"seconds": float(np.median(times))}
    return found | {"bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}


def measured(place: dict[str, int]) -> dict[str, float]:
    """A point in a process of its own, and the memory of one that does not train."""
    command = [sys.executable, __file__, "--point", json.dumps(place)]
    runs = [subprocess.run([*command, *further], capture_output=True, check=True) for further in ((), ("--idle",))]
    trained, idle = (json.loads(run.stdout) for run in runs)
    return {"seconds": trained["seconds"], "bytes": trained["bytes"] - idle["bytes"]}


def exponent(values: tuple[int, ...], found: list[float]) -> float:
    return float(np.polyfit(np.log(values), np.log(found), 1)[0])


def sweep(name: str) -> dict[str, list[float] | float]:
    values = DECADES[name]
    print(f"{name}: {', '.join(map(str, values))}", file=sys.stderr)
    points = [measured(DEFAULT | {name: value}) for value in values]
    seconds = [one["seconds"] for one in points]
    return {
        "values": list(values),
        "microseconds": [1e6 * one for one in seconds],
        "megabytes": [one["bytes"] / 1e6 for one in points],
        "exponent": exponent(values, seconds),
        "exponent of the upper half": exponent(values[3:], seconds[3:]),
    }


def copies(sweeps: dict[str, dict]) -> dict[str, float]:
    """Least squares of the memory of CD: how often data, parameters and batch are held, and what is held once."""
    sizes, held = [], []
    for name in ("visible", "hidden", "batch", "k", "rows"):
        for value, megabytes in zip(sweeps[name]["values"], sweeps[name]["megabytes"], strict=True):
            place = DEFAULT | {name: value}
            v, h = place["visible"], place["hidden"]
            sizes.append((place["rows"] * v / 1e6, 4e-6 * v * h, 4e-6 * place["batch"] * (v + h), 1))
            held.append(megabytes)
    found = np.linalg.lstsq(np.array(sizes), np.array(held), rcond=None)[0]
    names = ("copies of the data beyond the first", "copies of the parameters", "buffers of the batch", "megabytes of the rest")
    return dict(zip(names, map(float, found), strict=True))


def plot(sweeps: dict[str, dict]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, len(sweeps), figsize=(16, 5.6), sharey="row", sharex="col", layout="constrained")
    for column, (name, found) in enumerate(sweeps.items()):
        above, below = axes[:, column]
        above.loglog(found["values"], found["microseconds"], "o-")
        whole, upper = (round(found[name], 2) + 0.0 for name in ("exponent", "exponent of the upper half"))  # no -0.00
        above.set_title(f"{LABELS.get(name, name)}\nexponent {whole:.2f}, upper half {upper:.2f}", fontsize=9)
        below.semilogx(found["values"], found["megabytes"], "s-", color="tab:orange")
        below.set_xlabel(LABELS.get(name, name))
        above.grid(alpha=0.3), below.grid(alpha=0.3)
    axes[0, 0].set_ylabel("microseconds per update")
    axes[1, 0].set_ylabel("MB beyond JAX and the rows")
    axes[1, 0].set_ylim(bottom=0)
    figure.savefig(PLOT, dpi=100)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--point", type=json.loads, help=argparse.SUPPRESS)
    parser.add_argument("--idle", action="store_true", help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.point:
        print(json.dumps(point(words.point, not words.idle)))
    else:
        every = {name: sweep(name) for name in DECADES}
        plot(every)
        print(json.dumps({"held": DEFAULT, "sweeps": every, "memory": copies(every)}, indent=2))
