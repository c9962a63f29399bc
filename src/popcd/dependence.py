"""How strongly visible and hidden units depend on each other, and what that means for pop-CD.

    mutual + lautum information = sum_ij W_ij Cov(v_i, h_j)
    lautum = KL(p(v) p(h) || p(v, h)) = mean over p(v) p(h) of E(v, h) - F(v) - F(h) - log Z

Single-proposal pop-CD weighs a pair (v, h) with p(v) p(h) / p(v, h); even for perfect chains its effective sample size is
at most `exp(-lautum)` of the particles. Reference: Palomar and Verdu (2008) for lautum information.
"""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

import popcd.sampling as sampling
from popcd.checks import instance_of, positive_int
from popcd.evaluation.exact import exact_moments
from popcd.evaluation.likelihood import AUTO_UNITS, log_partition
from popcd.rbm import RBM


@dataclass(frozen=True)
class Information:
    """In nats, each with its standard error: `total` = `mutual` + `lautum`; `ess_bound` = exp(-lautum).

    `ess_bound` bounds the effective sample size per particle of single-proposal pop-CD. `method` is "exact" where the total is,
    "sampled" elsewhere; `trustworthy` and `reason` are those of log Z.
    """

    total: float
    total_stderr: float
    mutual: float
    mutual_stderr: float
    lautum: float
    lautum_stderr: float
    ess_bound: float
    method: str
    trustworthy: bool
    reason: str


def information(rbm: RBM, *, n_samples: int = 2_000, seed: int = 0, **options: Any) -> Information:
    """Mutual and lautum information between the visible and the hidden units.

    Parameters
    ----------
    rbm : the machine. Up to 20 units on the smaller side the total is exact and samples are independent draws of
        the model; beyond, samples come from parallel tempering and log Z from AIS.
    n_samples : pairs of draws of the model.
    seed, options : as in `log_partition`.

    Examples
    --------
    >>> import numpy as np, popcd
    >>> round(popcd.information(popcd.RBM(np.zeros((3, 2)), np.ones(3), np.ones(2))).ess_bound, 5)
    1.0
    """
    instance_of("rbm", rbm, RBM)
    exact = min(rbm.n_visible, rbm.n_hidden) <= AUTO_UNITS
    groups = positive_int("n_samples", n_samples, least=2) if exact else sampling.LADDERS
    n = -(-n_samples // groups) * groups
    log_z = log_partition(rbm, seed=seed, **options)
    visible, hidden = sampling.sample_pairs(rbm, 2 * n, seed)
    # Draws of one half with hidden states of the other, of another ladder where they are tempered: samples of p(v) p(h)
    other = jnp.roll(hidden[n:], 1, axis=0)
    visible, hidden = visible[:n], hidden[:n]
    apart = rbm.energy(visible, other)
    lautum = np.asarray(apart - rbm.free_energy(visible) - rbm.mirror().free_energy(other), np.float64) - log_z.value
    total = np.asarray(apart - rbm.energy(visible, hidden), np.float64)
    known = (_exact_total(rbm), 0.0) if exact else _mean(total, groups)
    value, error = _mean(lautum, groups)
    return Information(
        total=known[0],
        total_stderr=known[1],
        mutual=known[0] - value,
        mutual_stderr=float(np.hypot(error if exact else _mean(total - lautum, groups)[1], log_z.stderr)),
        lautum=value,
        lautum_stderr=float(np.hypot(error, log_z.stderr)),
        ess_bound=float(np.exp(-value)),
        method="exact" if exact else "sampled",
        trustworthy=log_z.trustworthy,
        reason=log_z.reason,
    )


def _exact_total(rbm: RBM) -> float:
    moments = exact_moments(rbm)
    covariance = moments.weights - np.outer(moments.visible_bias, moments.hidden_bias)
    return float((np.asarray(rbm.weights, np.float64) * covariance).sum())


def _mean(values: np.ndarray, groups: int) -> tuple[float, float]:
    """Mean and standard error of values whose i-th, (i + groups)-th, ... depend on each other."""
    means = values.reshape(-1, groups).mean(axis=0)
    return float(means.mean()), float(means.std(ddof=1) / np.sqrt(groups))
