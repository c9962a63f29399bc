"""How long popcd takes to start: `python benchmarks/startup.py` prints one JSON object, medians of new processes.

"import" is `import popcd`, which must load no JAX; "names" is what the first use of a name then loads, JAX with it; "first
update" is `popcd.train` with one update, compiled without programs that another process kept: seconds that passed, and
seconds of processors, to which other work on the machine does not add.
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
start, used = time.perf_counter(), time.process_time()
import popcd
passed, processors = time.perf_counter() - start, time.process_time() - used
jax, start, used = "jax" in sys.modules, time.perf_counter(), time.process_time()
popcd.train
print(json.dumps({
    "import, passed": passed, "import, processors": processors, "import loads JAX": jax,
    "names, passed": time.perf_counter() - start, "names, processors": time.process_time() - used,
}))
"""
UPDATE = """
import json, sys, time, numpy as np, popcd
rows = np.load(sys.argv[1])
rbm = popcd.RBM.create(rows.shape[1], int(sys.argv[2]))
start, used = time.perf_counter(), time.process_time()
popcd.train(rbm, rows, popcd.BUILDER(), iterations=1, batch_size=int(sys.argv[3]))
print(json.dumps({"passed": time.perf_counter() - start, "processors": time.process_time() - used}))
"""


def median(code: str, *arguments: str) -> dict[str, float]:
    """The medians of what new processes print, numbers by name."""
    command, words = [sys.executable, "-c", code, *arguments], os.environ | {"JAX_ENABLE_COMPILATION_CACHE": "false"}
    runs = [subprocess.run(command, env=words, capture_output=True, check=True) for _ in range(PROCESSES)]
    found = [json.loads(run.stdout) for run in runs]
    return {name: float(np.median([one[name] for one in found])) for name in found[0]}


def first_updates(size: Size, path: str) -> dict[str, dict[str, float]]:
    print(size, file=sys.stderr)
    np.save(path, random_rows(size, batches=2))
    words = path, str(size.hidden), str(size.batch)
    return {name: median(UPDATE.replace("BUILDER", name), *words) for name in ("cd", "pcd", "pop_cd")}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        updates = {str(size): first_updates(size, f"{folder}/rows.npy") for size in (*SIZES, LARGEST)}
    print(json.dumps({"seconds": median(IMPORT), "first update, seconds": updates} | environment(), indent=2))
