"""What shortens the way to the first result: compiled programs that outlive a process, and programs that compile sooner."""

import contextlib
import gc
import hashlib
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from popcd.processor import processor_line

_LEAST_SECONDS = 0.02  # what compiles faster is not worth a file
_SOONER = {
    "xla_cpu_use_fusion_emitters": False,
    "xla_backend_optimization_level": 1,
    "xla_cpu_parallel_codegen_split_count": os.cpu_count() or 1,  # more parts than threads cost more than they save
}


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
    """A jitted function that compiles in about half the time, to a program that is up to a tenth slower.

    XLA's older emitters make its kernels, and LLVM optimises them less. An XLA that does not know these words compiles as ever.
    """

    def __init__(self, jitted: Any, static_argnames: str):
        import jax

        self._jitted = jitted
        self._program = jax.jit(jitted.__wrapped__, static_argnames=static_argnames, compiler_options=dict(_SOONER))

    def __call__(self, *arguments: Any) -> Any:
        import jax

        try:
            return self._program(*arguments)
        except jax.errors.JaxRuntimeError as error:
            if "No such compile option" not in str(error):
                raise
            self._program = self._jitted
        return self._program(*arguments)


@contextlib.contextmanager
def collecting_new_objects_only() -> Iterator[None]:
    """Python's collector leaves alone what is there already: tracing would have it go through all modules ever loaded."""
    if gc.get_freeze_count():  # whoever froze objects wants them to stay so
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
