"""`popcd bench`."""

import click

from popcd.commands.options import as_json, print_result
from popcd.commands.progress import Progress, quiet


@click.command()
@click.option("--rounds", type=click.IntRange(min=1), default=7, show_default=True, help="Medians are over this many rounds.")
@quiet
@as_json
def bench(rounds: int, silent: bool, as_json: bool) -> None:
    """Time one update of every estimator as a multiple of the five bare matrix products of CD-1, side by side.

    Takes about two minutes on two cores. The largest size is timed in at most three rounds. On a machine with other work to
    do, give everything one thread: processor time is measured then, to which that work does not add.

    \b
    Examples:
      popcd bench --json
      NPROC=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 popcd bench
    """
    from popcd import benchmark

    sizes = []
    every = (*benchmark.SIZES, benchmark.LARGEST)
    with Progress("timing", len(every), silent) as bar:
        for number, size in enumerate(every):
            bar.at(number, str(size))
            sizes.append(benchmark.compare(size, rounds))
        bar.at(len(every))
    print_result({"rounds": rounds, "sizes": sizes} | benchmark.environment(), as_json, benchmark.table)
