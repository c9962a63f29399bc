"""`log_partition` and `log_likelihood`: exact where enumeration is possible, a bracketed estimate elsewhere."""

from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from popcd.checks import binary_matrix, one_of, positive_int, real_array
from popcd.evaluation.ais import Progress, anneal, base_log_partition, base_samples, check_schedule, linear_schedule
from popcd.evaluation.estimate import Estimate
from popcd.evaluation.exact import exact_log_partition, in_float64, log_unnormalised
from popcd.evaluation.tempered import Tempered, bennett_log_ratio, temper
from popcd.evaluation.weights import LogMean, log_mean
from popcd.kernels.tempering import uniform_ladder
from popcd.prng import fold_in
from popcd.rbm import RBM

Method = Literal["auto", "exact", "ais"]
AUTO_UNITS = 20
_WIDEST, _LARGEST_K, _LEAST_ESS = 1.0, 0.7, 10
_LEAST_EXCHANGES = 10
_MARGIN = 1e-3


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
    base_bias : visible logits of the base-rate model, in place of those of `data` or of samples of the machine.
    n_chains, n_steps : AIS chains and equal steps of each direction. The paper uses 512 and 50,000.
    betas : another schedule, from 0 to 1; see `popcd.evaluation.schedule_2008`.
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
    one_of("method", method, ("auto", "exact", "ais"))
    in_float64(rbm)  # refuses non-finite parameters
    if method == "exact" or (method == "auto" and min(rbm.n_visible, rbm.n_hidden) <= AUTO_UNITS):
        value = exact_log_partition(rbm)
        return Estimate(value, 0.0, value, value, "exact", None)
    schedule = linear_schedule(positive_int("n_steps", n_steps)) if betas is None else check_schedule(betas)
    rows = None if data is None else binary_matrix("data", data, rbm.n_visible)
    n_chains, n_ladders = positive_int("n_chains", n_chains), positive_int("n_ladders", n_ladders)
    report = _Share(progress, 2 * (len(schedule) - 1), positive_int("sweeps", sweeps))
    key = jax.random.key(seed)

    ladder_base = _base_bias(rbm, rows, base_bias, otherwise=np.asarray(rbm.visible_bias, np.float64))
    samples = _temper(fold_in(key, 0), rbm, ladder_base, n_temperatures, n_ladders, n_chains, sweeps, report)
    drawn = samples.visible.reshape(-1, rbm.n_visible)
    base = _base_bias(rbm, rows, base_bias, otherwise=base_rate(drawn))

    start = base_samples(fold_in(key, 1), rbm, jnp.asarray(base, rbm.dtype), n_chains)
    forward = log_mean(anneal(fold_in(key, 2), rbm, start, schedule, base, report.part(0)))
    last = jnp.asarray(drawn[-n_chains:], rbm.dtype)
    backward = log_mean(anneal(fold_in(key, 3), rbm, last, schedule[::-1], base, report.part(1)))
    bennett, bennett_error = bennett_log_ratio(samples)
    return _combine(
        rbm,
        rows,
        forward=forward._replace(value=forward.value + base_log_partition(rbm, base)),
        reverse=backward._replace(value=base_log_partition(rbm, base) - backward.value),
        bennett=(bennett + base_log_partition(rbm, ladder_base), bennett_error),
        exchanges=float(samples.exchanges.min(initial=np.inf)),
    )


class _Share:
    """One progress report over the tempering and the two directions of AIS."""

    def __init__(self, progress: Progress | None, annealing: int, sweeps: int):
        self.progress, self.half, self.sweeps = progress, annealing // 2, sweeps

    def tempering(self, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(self.sweeps * done // total, self.sweeps + 2 * self.half)

    def part(self, number: int) -> Progress:
        def report(done: int, total: int) -> None:
            if self.progress is not None:
                self.progress(self.sweeps + number * self.half + done, self.sweeps + 2 * self.half)

        return report


def _temper(
    key: jax.Array,
    rbm: RBM,
    base: np.ndarray,
    n_temperatures: int,
    n_ladders: int,
    n_chains: int,
    sweeps: int,
    report: _Share,
) -> Tempered:
    snapshots = max(1, -(-n_chains // n_ladders))
    spacing = max(1, sweeps // (2 * snapshots))
    return temper(key, rbm, base, uniform_ladder(n_temperatures), n_ladders, snapshots, spacing, report.tempering)


def base_rate(rows: np.ndarray) -> np.ndarray:
    """The logits of the means of binary rows, kept 0.001 away from 0 and 1."""
    means = rows.mean(axis=0).clip(_MARGIN, 1 - _MARGIN)
    return np.log(means) - np.log1p(-means)


def _base_bias(rbm: RBM, rows: np.ndarray | None, given: Any, otherwise: np.ndarray) -> np.ndarray:
    if given is not None:
        base = np.asarray(real_array("base_bias", given, 1), np.float64)
        if len(base) != rbm.n_visible:
            raise ValueError(f"base_bias has {len(base)} numbers, but the machine has {rbm.n_visible} visible units")
        return base
    return otherwise if rows is None else base_rate(rows)


def _combine(
    rbm: RBM,
    rows: np.ndarray | None,
    forward: LogMean,
    reverse: LogMean,
    bennett: tuple[float, float],
    exchanges: float,
) -> Estimate:
    """Forward AIS as the value, and everything that speaks against it."""
    errors = [max(side.stderr, side.bootstrap) for side in (forward, reverse)]
    lower, upper = forward.value - 2 * errors[0], reverse.value + 2 * errors[1]
    details = {
        "forward": forward.value,
        "forward_stderr": errors[0],
        "forward_stderr_delta": forward.stderr,
        "forward_stderr_bootstrap": forward.bootstrap,
        "forward_pareto_k": forward.pareto_k,
        "reverse": reverse.value,
        "reverse_stderr": errors[1],
        "reverse_pareto_k": reverse.pareto_k,
        "bennett": bennett[0],
        "bennett_stderr": bennett[1],
        "least_exchanges": exchanges,
    }
    reasons = []
    if not upper - lower <= _WIDEST:
        reasons.append(f"the bracket from {lower:.2f} to {upper:.2f} is wider than {_WIDEST:g} nat")
    if lower > upper:
        reasons.append(f"the lower bound {lower:.2f} lies above the upper bound {upper:.2f}: the samples miss modes")
    if forward.ess < _LEAST_ESS:
        reasons.append(f"the effective sample size of forward AIS is only {forward.ess:.1f}")
    if forward.pareto_k > _LARGEST_K:
        reasons.append(f"the largest weights are too heavy for their mean to be believed (Pareto k {forward.pareto_k:.2f})")
    if exchanges < _LEAST_EXCHANGES:
        reasons.append(f"tempered replicas exchanged only {exchanges:.0f} times across one gap: samples may miss modes")
    gap = abs(bennett[0] - forward.value)
    if gap > _WIDEST / 2 + 3 * (bennett[1] + errors[0]):
        reasons.append(f"Bennett's estimate {bennett[0]:.2f} is {gap:.2f} nat away")
    if rows is not None:
        log_p = log_unnormalised(rbm, np.unique(rows, axis=0))
        mass = float(np.logaddexp.reduce(log_p) - upper)
        if mass > 0:
            reasons.append(f"the distinct data rows alone would have probability exp({mass:.2f}) > 1")
    advice = ": use more steps, chains or sweeps" if reasons else ""
    return Estimate(
        forward.value, errors[0], lower, upper, "ais", forward.ess, not reasons, "; ".join(reasons) + advice, details
    )


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
