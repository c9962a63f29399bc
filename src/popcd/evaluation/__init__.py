"""Log-likelihoods with what is known of their errors."""

from popcd.evaluation.estimate import Estimate
from popcd.evaluation.exact import log_likelihood, log_partition

__all__ = ["Estimate", "log_likelihood", "log_partition"]
