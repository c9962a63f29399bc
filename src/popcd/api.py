"""The public names of `popcd`, re-exports only."""

from typing import TYPE_CHECKING, Any

import popcd.datasets as datasets
import popcd.estimators as estimators
import popcd.evaluation as evaluation
import popcd.kernels as kernels
from popcd.autocorrelation import Mixing, mixing
from popcd.chunks import LowESSWarning, Run, TrainingDivergedError
from popcd.dependence import Information, information
from popcd.estimators import Estimator, cd, exact, pcd, pop_cd, pt
from popcd.evaluation import (
    Estimate,
    GradientError,
    gradient_error,
    log_likelihood,
    log_partition,
    pseudo_log_likelihood,
)
from popcd.foreign import FileError
from popcd.io import load, save
from popcd.particles import Particles
from popcd.rbm import RBM
from popcd.sampling import complete, sample
from popcd.training import train
from popcd.updates import TrainState

if TYPE_CHECKING:
    from popcd.scikit import BernoulliRBM

__all__ = [
    "RBM",
    "BernoulliRBM",
    "Estimate",
    "Estimator",
    "FileError",
    "GradientError",
    "Information",
    "LowESSWarning",
    "Mixing",
    "Particles",
    "Run",
    "TrainState",
    "TrainingDivergedError",
    "cd",
    "complete",
    "datasets",
    "estimators",
    "evaluation",
    "exact",
    "gradient_error",
    "information",
    "kernels",
    "load",
    "log_likelihood",
    "log_partition",
    "mixing",
    "pcd",
    "pop_cd",
    "pseudo_log_likelihood",
    "pt",
    "sample",
    "save",
    "train",
]


def __getattr__(name: str) -> Any:
    if name == "BernoulliRBM":  # importing scikit-learn takes longer than the rest
        from popcd.scikit import BernoulliRBM

        return BernoulliRBM
    raise AttributeError(f"module 'popcd.api' has no attribute {name!r}")
