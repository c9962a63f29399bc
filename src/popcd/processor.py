"""The processor: what Linux says of it, and how to keep libraries to one thread of it."""

import os
from pathlib import Path

# NumPy's OpenBLAS, PyTorch and XLA read these when they are loaded
ONE_THREAD = {"NPROC": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def processor_line(*names: str) -> str:
    """What the first line of /proc/cpuinfo with one of these names says; nothing where there is none.

    >>> processor_line("no such name")
    ''
    """
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(names)), "")


def available_processors() -> int:
    """How many processors this process may use.

    >>> available_processors() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
