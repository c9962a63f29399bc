"""Commands of popcd as processes of their own."""

import sys


def command(*arguments, largest_file=None):
    """`python -m popcd` with these arguments; `largest_file` limits what it can write, as a full disk does."""
    words = ["-m", "popcd", *(str(a) for a in arguments)]
    if largest_file is None:
        return [sys.executable, *words]
    code = (
        f"import os, resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({largest_file}, {largest_file})); "
        "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    )
    return [sys.executable, "-c", code, *words]
