"""Estimators of the log-likelihood gradient, one file each: `step(key, state, rbm, batch) -> (state, Particles)`."""

from popcd.estimators.cd import cd
from popcd.estimators.estimator import Estimator
from popcd.estimators.exact import exact
from popcd.estimators.pcd import pcd
from popcd.estimators.pop_cd import pop_cd
from popcd.estimators.pt import pt

__all__ = ["Estimator", "cd", "exact", "pcd", "pop_cd", "pt"]
