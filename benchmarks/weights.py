"""What its weights cost pop-CD: an update of pop-CD-1 as a multiple of one of CD-1, the two in turn.

    python benchmarks/weights.py [--rounds 31]                                            # all threads, time that passed
    NPROC=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/weights.py         # one thread, processor time

A line per size: the median of the ratios of neighbours, and their quartiles.
"""

import argparse

import numpy as np

from popcd import cd, pop_cd
from popcd.benchmark import LARGEST, SIZES, environment, interleaved, random_rows, updates

_LARGEST_ROUNDS = 7  # an update takes a second


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=31)
    words = parser.parse_args()
    print(f"pop-CD-1 over CD-1: median (quartiles) of {words.rounds} rounds, time {environment()['time']}", flush=True)
    for size in (*SIZES, LARGEST):
        rows = random_rows(size)
        works = {name: updates(estimator, rows, size) for name, estimator in (("cd", cd()), ("pop-cd", pop_cd()))}
        times = interleaved(works, _LARGEST_ROUNDS if size.large else words.rounds)
        least, middle, most = np.quantile(np.divide(times["pop-cd"], times["cd"]), (0.25, 0.5, 0.75))
        print(f"{size!s:<20}{middle:6.3f} ({least:.3f}-{most:.3f})", flush=True)


if __name__ == "__main__":
    main()
