"""Log-likelihoods and gradients with what is known of their errors."""

from popcd.evaluation.ais import linear_schedule, schedule_2008
from popcd.evaluation.estimate import Estimate
from popcd.evaluation.exact import exact_gradient, exact_moments
from popcd.evaluation.gradient_error import GradientError, gradient_error
from popcd.evaluation.likelihood import log_likelihood, log_partition
from popcd.evaluation.population import PopulationError, population_error
from popcd.evaluation.pseudo import pseudo_log_likelihood
from popcd.evaluation.true_gradient import TrueGradient, true_gradient

__all__ = [
    "Estimate",
    "GradientError",
    "PopulationError",
    "TrueGradient",
    "exact_gradient",
    "exact_moments",
    "gradient_error",
    "linear_schedule",
    "log_likelihood",
    "log_partition",
    "population_error",
    "pseudo_log_likelihood",
    "schedule_2008",
    "true_gradient",
]
