"""Scores of a fitted scikit-learn estimator: log-likelihoods where log Z is at hand, pseudo-likelihoods elsewhere."""

import hashlib
from typing import Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from popcd.checks import binary_matrix, one_of
from popcd.evaluation import Estimate, log_partition
from popcd.evaluation.exact import log_unnormalised
from popcd.evaluation.likelihood import AUTO_UNITS
from popcd.evaluation.pseudo import pseudo_rows
from popcd.fitting import FLOATS, dense
from popcd.rbm import RBM


class ScoreMixin:
    """`score`, `score_samples` and `log_partition_` of an estimator that has the attributes below."""

    components_: np.ndarray
    intercept_visible_: np.ndarray
    intercept_hidden_: np.ndarray
    binary_: bool
    _base_bias: np.ndarray | None

    @property
    def rbm_(self) -> RBM:
        """The machine."""
        check_is_fitted(self)
        return RBM(self.components_.T, self.intercept_visible_, self.intercept_hidden_)

    @property
    def log_partition_(self) -> Estimate:
        """log Z: exact up to 20 units on the smaller side, AIS from both ends beyond; kept until the machine changes."""
        check_is_fitted(self)
        if (known := self._known_log_partition()) is None:
            known = log_partition(self.rbm_, base_bias=self._base_bias)
            self._log_partition = (self._mark(), known)
        return known

    def score_samples(self, X: Any, method: Literal["auto", "log-likelihood", "pseudo-likelihood"] = "auto") -> np.ndarray:
        """The log of the likelihood or of the pseudo-likelihood of every row of X; the same at every call.

        "auto" is the log-likelihood for a machine that was fitted on binary values if its log Z is cheap (at most 20 units on
        the smaller side) or known (`log_partition_` or `score` was called since it was fitted), and the log-pseudo-likelihood
        otherwise: `sum_i log p(v_i | all others)`, which for grey values is the mean over features of what scikit-learn
        computes for a random one. Log-likelihoods need binary rows.
        """
        check_is_fitted(self)
        one_of("method", method, ("auto", "log-likelihood", "pseudo-likelihood"))
        X = validate_data(self, X, accept_sparse="csr", dtype=FLOATS, reset=False)
        if method == "auto":
            cheap = min(self.components_.shape) <= AUTO_UNITS or self._known_log_partition() is not None
            method = "log-likelihood" if self.binary_ and cheap else "pseudo-likelihood"
        if method == "pseudo-likelihood":
            return pseudo_rows(self.rbm_, dense(X))
        return log_unnormalised(self.rbm_, binary_matrix("X", dense(X))) - self.log_partition_.value

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood of X, exact or by AIS with its bracket in `log_partition_`; y is ignored.

        A machine that was fitted on grey values has no likelihood; its score is the mean log-pseudo-likelihood.
        """
        check_is_fitted(self)
        return float(self.score_samples(X, "log-likelihood" if self.binary_ else "pseudo-likelihood").mean())

    def _known_log_partition(self) -> Estimate | None:
        mark, known = getattr(self, "_log_partition", (b"", None))
        return known if mark == self._mark() else None

    def _mark(self) -> bytes:
        """Changes with the machine, whoever changes it."""
        parts = (self.components_, self.intercept_visible_, self.intercept_hidden_)
        return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).digest()
