"""Restricted Boltzmann Machines with gradients whose bias is known: Population Contrastive Divergence and its peers.

The public names live in `popcd.api`, which loads on first use, so that `popcd --help` does not wait for JAX.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from popcd.api import *  # noqa: F403

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if not name.startswith("_"):
        api = import_module("popcd.api")
        if name in api.__all__:
            return getattr(api, name)
    raise AttributeError(f"module 'popcd' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*import_module("popcd.api").__all__, "__version__"]
