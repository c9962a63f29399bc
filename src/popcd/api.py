"""The public names of `popcd`, re-exports only."""

import popcd.datasets as datasets
import popcd.estimators as estimators
import popcd.evaluation as evaluation
import popcd.kernels as kernels
from popcd.estimators import Estimator, cd, exact, pcd, pop_cd, pt
from popcd.evaluation import Estimate, log_likelihood, log_partition
from popcd.particles import Particles
from popcd.rbm import RBM
from popcd.training import LowESSWarning, Run, TrainingDivergedError, train
from popcd.updates import TrainState

__all__ = [
    "RBM",
    "Estimate",
    "Estimator",
    "LowESSWarning",
    "Particles",
    "Run",
    "TrainState",
    "TrainingDivergedError",
    "cd",
    "datasets",
    "estimators",
    "evaluation",
    "exact",
    "kernels",
    "log_likelihood",
    "log_partition",
    "pcd",
    "pop_cd",
    "pt",
    "train",
]
