"""Compiled programs that outlive a process: the next one that needs them starts sooner."""

import hashlib
import os
import platform
import sys
from pathlib import Path

from popcd.processor import processor_line

_LEAST_SECONDS = 0.02  # what compiles faster is not worth a file


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
