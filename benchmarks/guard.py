"""Whether updates became slow: `python benchmarks/guard.py` exits with 1 if a ratio is more than twice the one in guard.json.

Ratios to the bare products are measured in one run, side by side. Both have one thread and are measured in time of the
processor, not of the clock, so that other work on the machine does not count. After a change that is meant to be slower,
`python benchmarks/guard.py --write` puts the new ratios into the file.
"""

import argparse
import json
import os
import sys
from pathlib import Path

from popcd.processor import ONE_THREAD

os.environ |= ONE_THREAD  # before NumPy and JAX read them

from popcd import cd, pop_cd
from popcd.benchmark import SIZES, bare_products, interleaved, random_rows, ratios, updates

ROUNDS = 5
MARGIN = 2.0
FILE = Path(__file__).with_suffix(".json")


def measured() -> dict[str, dict[str, float]]:
    """Ratios by size and estimator; the largest of the usual sizes is left out, where the products are nearly all there is."""
    found = {}
    for size in SIZES[1:]:
        works = {"bare": bare_products(size)}
        works |= {e.name: updates(e, random_rows(size), size) for e in (cd(), pop_cd())}
        found[str(size)] = ratios(interleaved(works, ROUNDS))["ratio"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="Commit to what is measured now.")
    write, found = parser.parse_args().write, measured()
    if write:
        FILE.write_text(json.dumps({s: {n: round(r, 2) for n, r in of.items()} for s, of in found.items()}, indent=2) + "\n")
        return
    slow = []
    for size, committed in json.loads(FILE.read_text()).items():
        for name, ratio in committed.items():
            words = f"{size}: {name} takes {found[size][name]:.2f} times its bare products, committed {ratio:.2f}"
            print(words)
            if found[size][name] > MARGIN * ratio:
                slow.append(words)
    if slow:
        sys.exit("updates became slow, more than twice what guard.json says:\n  " + "\n  ".join(slow))


if __name__ == "__main__":
    main()
