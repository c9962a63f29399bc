"""How strongly visible and hidden units depend on each other, and what that means for pop-CD.

    mutual + lautum information = sum_ij W_ij Cov(v_i, h_j)
    lautum = KL(p(v) p(h) || p(v, h)) = mean over p(v) p(h) of E(v, h) - F(v) - F(h) - log Z

Single-proposal pop-CD weighs a pair (v, h) with p(v) p(h) / p(v, h); even for perfect chains its effective sample size is
at most `exp(-lautum)` of the particles. Reference: Palomar and Verdu (2008) for lautum information.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from popcd.checks import positive_int
from popcd.evaluation.exact import exact_moments
from popcd.evaluation.likelihood import AUTO_UNITS, log_partition
from popcd.rbm import RBM
from popcd.sampling import sample_pairs


@dataclass(frozen=True)
class Information:
    """In nats: `total` is mutual + lautum information; `ess_bound` = exp(-lautum) bounds pop-CD's ESS per particle.

    The split into `mutual` and `lautum` has the standard error `stderr`; the total has none where it is exact.
    """

    total: float
    mutual: float
    lautum: float
    stderr: float
    ess_bound: float
    method: str


def information(rbm: RBM, *, n_samples: int = 2_000, seed: int = 0, **options: Any) -> Information:
    """Mutual and lautum information between the visible and the hidden units.

    Parameters
    ----------
    rbm : the machine. Up to 20 units on the smaller side the total is exact and samples are independent draws of
        the model; beyond, samples come from parallel tempering and log Z from AIS.
    n_samples : draws of the model, at least 2, for the mean in the lautum information.
    seed, options : as in `log_partition`.

    Examples
    --------
    >>> import numpy as np, popcd
    >>> round(popcd.information(popcd.RBM(np.zeros((3, 2)), np.ones(3), np.ones(2))).ess_bound, 5)
    1.0
    """
    visible, hidden = sample_pairs(rbm, positive_int("n_samples", n_samples), seed)
    exact = min(rbm.n_visible, rbm.n_hidden) <= AUTO_UNITS
    moments = exact_moments(rbm) if exact else _sample_moments(visible, hidden)
    covariance = moments.weights - np.outer(moments.visible_bias, moments.hidden_bias)
    total = float((np.asarray(rbm.weights, np.float64) * covariance).sum())
    # A visible and a hidden state of two different draws: a sample of p(v) p(h)
    hidden = jnp.roll(hidden, len(hidden) // 2, axis=0)
    log_ratio = rbm.energy(visible, hidden) - rbm.free_energy(visible) - rbm.mirror().free_energy(hidden)
    log_ratios = np.asarray(log_ratio, np.float64)
    log_z = log_partition(rbm, seed=seed, **options)
    lautum = float(log_ratios.mean() - log_z.value)
    error = float(np.hypot(log_ratios.std() / np.sqrt(len(log_ratios)), log_z.stderr))
    return Information(total, total - lautum, lautum, error, float(np.exp(-lautum)), "exact" if exact else "sampled")


def _sample_moments(visible: jax.Array, hidden: jax.Array) -> RBM:
    v, h = np.asarray(visible, np.float64), np.asarray(hidden, np.float64)
    return RBM(v.T @ h / len(v), v.mean(axis=0), h.mean(axis=0))
