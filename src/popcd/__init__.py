"""Restricted Boltzmann Machines with gradients whose bias is known: Population Contrastive Divergence and its peers.

Names load on first use, so that `import popcd` and `popcd --help` do not wait for JAX.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from popcd import datasets, estimators, evaluation, kernels
    from popcd.estimators import Estimator, cd, exact, pcd, pop_cd, pt
    from popcd.evaluation import Estimate, log_likelihood, log_partition
    from popcd.particles import Particles
    from popcd.rbm import RBM
    from popcd.training import LowESSWarning, Run, TrainingDiverged, TrainState, train

__version__ = "0.1.0"

_HOMES = {
    "popcd.estimators": ("Estimator", "cd", "exact", "pcd", "pop_cd", "pt"),
    "popcd.evaluation": ("Estimate", "log_likelihood", "log_partition"),
    "popcd.particles": ("Particles",),
    "popcd.rbm": ("RBM",),
    "popcd.training": ("LowESSWarning", "Run", "TrainState", "TrainingDiverged", "train"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}
_MODULES = ("datasets", "estimators", "evaluation", "kernels")

__all__ = [*_HOME, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    elif name in _MODULES:
        value = import_module(f"popcd.{name}")
    else:
        raise AttributeError(f"module 'popcd' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
