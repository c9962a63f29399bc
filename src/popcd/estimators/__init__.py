"""Estimators of the log-likelihood gradient, one file each: `step(key, state, rbm, batch) -> (state, Particles)`."""

from collections.abc import Callable

from popcd.estimators.cd import cd
from popcd.estimators.estimator import Estimator
from popcd.estimators.exact import exact
from popcd.estimators.pcd import pcd
from popcd.estimators.pop_cd import pop_cd
from popcd.estimators.pt import pt

# By the words of the command line and of configuration files
BUILDERS: dict[str, Callable[..., Estimator]] = {"cd": cd, "pcd": pcd, "pt": pt, "pop-cd": pop_cd, "exact": exact}

__all__ = ["BUILDERS", "Estimator", "cd", "exact", "pcd", "pop_cd", "pt"]
