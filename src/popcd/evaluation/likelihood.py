"""`log_partition` and `log_likelihood`: exact where enumeration is possible, a bracketed estimate elsewhere."""

from typing import Any, Literal

import numpy as np

from popcd.checks import binary_matrix, instance_of, one_of, positive_int, real_array
from popcd.evaluation.ais import Progress, check_schedule, schedule_2008
from popcd.evaluation.bracket import Effort, bracketed_log_partition
from popcd.evaluation.estimate import Estimate
from popcd.evaluation.exact import exact_log_partition, in_float64, log_unnormalised
from popcd.prng import root_key, stream
from popcd.rbm import RBM

Method = Literal["auto", "exact", "ais"]
AUTO_UNITS = 20


def log_partition(
    rbm: RBM,
    method: Method = "auto",
    *,
    data: Any = None,
    base_bias: Any = None,
    n_chains: int = 256,
    n_steps: int = 10_000,
    betas: Any = None,
    n_temperatures: int = 40,
    n_ladders: int = 32,
    sweeps: int = 1000,
    seed: int = 0,
    progress: Progress | None = None,
) -> Estimate:
    """log Z, the logarithm of the sum of `exp(-E(v, h))` over all states.

    "exact" enumerates the smaller side in float64. "ais" anneals chains from a base-rate model to the machine (a stochastic
    lower bound of log Z, the value), anneals samples of the machine back (an upper bound), and takes Bennett's acceptance
    ratio across the tempering ladder that drew these samples as a third estimate. "auto" is exact up to 20 units on the
    smaller side.

    Parameters
    ----------
    rbm : the machine.
    method : "auto", "exact" or "ais".
    data : rows x visible; their means make the base-rate model, and their total probability is checked not to exceed 1.
    base_bias : visible logits of the base-rate model, in place of those of `data` or, without data, of samples of the machine.
    n_chains, n_steps : AIS chains and steps of each direction. Most steps lie near 1, as in `popcd.evaluation.schedule_2008`.
    betas : another schedule, from 0 to 1. The paper has 512 chains and `popcd.evaluation.linear_schedule(50_000)`.
    n_temperatures, n_ladders, sweeps : the parallel tempering that draws samples of the machine; half is burn-in.
    seed : the same seed gives the same estimate.
    progress : called with the work done and the work in all, as two numbers.

    Returns
    -------
    Estimate. `trustworthy` is False, with a reason, where the bracket is wide, the weights degenerate or probabilities
    of the data add up to more than 1.

    Examples
    --------
    >>> import numpy as np, popcd
    >>> rbm = popcd.RBM(weights=np.zeros((5, 3)), visible_bias=np.zeros(5), hidden_bias=np.zeros(3))
    >>> round(popcd.log_partition(rbm).value, 6)  # 8 log 2
    5.545177
    """
    instance_of("rbm", rbm, RBM)
    one_of("method", method, ("auto", "exact", "ais"))
    in_float64(rbm)  # refuses non-finite parameters
    rows = None if data is None else binary_matrix("data", data, rbm.n_visible)
    base = None if base_bias is None else np.asarray(real_array("base_bias", base_bias, 1), np.float64)
    if base is not None and len(base) != rbm.n_visible:
        raise ValueError(f"base_bias has {len(base)} numbers, but the machine has {rbm.n_visible} visible units")
    effort = Effort(
        schedule_2008(positive_int("n_steps", n_steps)) if betas is None else check_schedule(betas),
        positive_int("n_chains", n_chains, least=2),
        positive_int("n_temperatures", n_temperatures, least=2),
        positive_int("n_ladders", n_ladders, least=2),
        positive_int("sweeps", sweeps),
    )
    if method == "exact" or (method == "auto" and min(rbm.n_visible, rbm.n_hidden) <= AUTO_UNITS):
        value = exact_log_partition(rbm)
        return Estimate(value, 0.0, value, value, "exact", None)
    return bracketed_log_partition(stream(root_key(seed), "log_partition"), rbm, rows, base, effort, progress)


def log_likelihood(rbm: RBM, data: Any, method: Method = "auto", **options: Any) -> Estimate:
    """Mean over the rows of `data` of `log p(v) = -F(v) - log Z`.

    Parameters
    ----------
    rbm : the machine.
    data : rows x visible of zeros and ones, of any length.
    method, options : how log Z is estimated, see `log_partition`; `data` serves as its base rate unless another is given.

    Returns
    -------
    Estimate of the mean. `stderr` and the bracket are those of log Z; `rows` has the value of every row and `rows_stderr`
    the standard error over rows, as if they were drawn from a larger set.

    Examples
    --------
    >>> import numpy as np, popcd
    >>> rbm = popcd.RBM(weights=np.zeros((4, 2)), visible_bias=np.zeros(4), hidden_bias=np.zeros(2))
    >>> round(popcd.log_likelihood(rbm, np.eye(4)).value, 6)  # -4 log 2
    -2.772589
    """
    instance_of("rbm", rbm, RBM)
    log_p = log_unnormalised(rbm, data)
    log_z = log_partition(rbm, method, **({"data": data} | options))
    mean = float(log_p.mean())
    return Estimate(
        mean - log_z.value,
        log_z.stderr,
        mean - log_z.upper,
        mean - log_z.lower,
        log_z.method,
        log_z.ess,
        log_z.trustworthy,
        log_z.reason,
        log_z.details,
        rows=log_p - log_z.value,
        rows_stderr=float(log_p.std(ddof=1) / np.sqrt(len(log_p))) if len(log_p) > 1 else float("nan"),
    )
