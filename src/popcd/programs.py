"""What shortens the way to the first result: compiled programs that outlive a process, and programs that compile sooner."""

import contextlib
import gc
import hashlib
import os
import platform
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from popcd.processor import available_processors, processor_line

_LEAST_SECONDS = 0.02  # what compiles faster is not worth a file
_SOONER = {
    "xla_cpu_use_fusion_emitters": False,
    "xla_backend_optimization_level": 1,
    "xla_cpu_parallel_codegen_split_count": min(32, available_processors()),  # more parts than threads cost more than they save
}
_LOCK, _MANY, _NEVER = threading.Lock(), 20_000, 1 << 30
_COLLECTING: list[tuple[int, int, int]] = []  # what the thresholds were, for each fit under way


def keep_compiled_programs() -> None:
    """Let JAX keep compiled programs in the user's cache folder, unless it was told where or a folder cannot be made there.

    A program is made for one kind of processor, and home folders are shared between machines: each kind has a folder.
    """
    if os.environ.get("JAX_COMPILATION_CACHE_DIR") is not None:
        return
    processor = f"{platform.machine()} {processor_line('flags', 'Features')}"  # with the instructions that it has
    try:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = home / "popcd" / "programs" / hashlib.sha256(processor.encode()).hexdigest()[:16]
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # not writable; nobody's home
        return
    words = {"JAX_COMPILATION_CACHE_DIR": str(folder), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": str(_LEAST_SECONDS)}
    if "jax" not in sys.modules:  # JAX reads them when it is imported
        os.environ.update(words)
        return
    import jax

    if jax.config.jax_compilation_cache_dir is None:  # type: ignore[attr-defined]
        jax.config.update("jax_compilation_cache_dir", str(folder))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", _LEAST_SECONDS)


class CompiledSooner:
    """A jitted function that compiles sooner, to a slower program.

    XLA's older emitters make its kernels, and LLVM optimises them less. These are words for processors: on other devices, and
    by an XLA that does not know them, it is compiled as ever.
    """

    def __init__(self, jitted: Any, static_argnames: str):
        import jax

        self._jitted = jitted
        self._program = jax.jit(jitted.__wrapped__, static_argnames=static_argnames, compiler_options=dict(_SOONER))

    def __call__(self, *arguments: Any) -> Any:
        import jax

        if jax.default_backend() != "cpu":
            return self._jitted(*arguments)
        try:
            return self._program(*arguments)
        except jax.errors.JaxRuntimeError as error:
            if "No such compile option" not in str(error):
                raise
            self._program = self._jitted
        return self._program(*arguments)


@contextlib.contextmanager
def without_full_collections() -> Iterator[None]:
    """Python's collector goes through young objects only, and seldom: tracing would have it go through all modules ever loaded.

    What it leaves is collected after the fit, or the last of several in threads.
    """
    with _LOCK:
        _COLLECTING.append(gc.get_threshold())
        young, middle, _ = _COLLECTING[0]
        gc.set_threshold(young and max(_MANY, young), middle, _NEVER)  # 0 is how a user switches the collector off
    try:
        yield
    finally:
        with _LOCK:
            if len(_COLLECTING) == 1:
                gc.set_threshold(*_COLLECTING[0])
            _COLLECTING.pop()
