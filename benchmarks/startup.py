"""How long popcd takes to start: `python benchmarks/startup.py` prints one JSON object, medians of new processes.

"import" is `import popcd`, which must load no JAX; "names" is what the first use of a name then loads, JAX with it; "first
update" is `popcd.train` with one update, compiled without programs that another process kept.
"""

import json
import os
import subprocess
import sys
import tempfile

import numpy as np

from popcd.benchmark import LARGEST, SIZES, Size, environment, random_rows

PROCESSES = 3
IMPORT = """
import json, sys, time
start = time.perf_counter()
import popcd
imported = time.perf_counter()
jax = "jax" in sys.modules
popcd.train
print(json.dumps({"import": imported - start, "names": time.perf_counter() - imported, "import loads JAX": jax}))
"""
UPDATE = """
import json, sys, time, numpy as np, popcd
rows = np.load(sys.argv[1])
rbm = popcd.RBM.create(rows.shape[1], int(sys.argv[2]))
start = time.perf_counter()
popcd.train(rbm, rows, popcd.BUILDER(), iterations=1, batch_size=int(sys.argv[3]))
print(json.dumps(time.perf_counter() - start))
"""


def median(code: str, *arguments: str) -> dict | float:
    """The median of what new processes print, one number or several by name."""
    command, words = [sys.executable, "-c", code, *arguments], os.environ | {"JAX_ENABLE_COMPILATION_CACHE": "false"}
    runs = [subprocess.run(command, env=words, capture_output=True, check=True) for _ in range(PROCESSES)]
    found = [json.loads(run.stdout) for run in runs]
    if isinstance(found[0], dict):
        return {name: float(np.median([one[name] for one in found])) for name in found[0]}
    return float(np.median(found))


def first_updates(size: Size, path: str) -> dict[str, float]:
    print(size, file=sys.stderr)
    np.save(path, random_rows(size, batches=2))
    words = path, str(size.hidden), str(size.batch)
    return {name: median(UPDATE.replace("BUILDER", name), *words) for name in ("cd", "pcd", "pop_cd")}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        updates = {str(size): first_updates(size, f"{folder}/rows.npy") for size in (*SIZES, LARGEST)}
    print(json.dumps({"seconds": median(IMPORT), "first update, seconds": updates} | environment(), indent=2))
