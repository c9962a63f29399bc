"""log Z from both ends: forward and reverse AIS, Bennett's ratio, and what speaks against them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from popcd.evaluation.ais import Progress, anneal, base_log_partition, base_samples
from popcd.evaluation.estimate import Estimate
from popcd.evaluation.exact import log_unnormalised
from popcd.evaluation.tempered import bennett_log_ratio, temper
from popcd.evaluation.weights import LogMean, log_mean
from popcd.kernels.tempering import uniform_ladder
from popcd.prng import fold_in
from popcd.rbm import RBM, mean_logits

_WIDEST = 1.0  # nat between the bounds
_LEAST_ESS = 10
_LEAST_SWAP_RATE = 0.01
BASE_MARGIN = 0.01  # the base rates of data stay this far from 0 and 1
_COARSER = 4  # the schedule from the uniform distribution has every fourth step


class Effort(NamedTuple):
    """How long to anneal and to temper."""

    schedule: np.ndarray
    n_chains: int
    n_temperatures: int
    n_ladders: int
    sweeps: int


def base_rate(rows: np.ndarray) -> np.ndarray:
    """The base-rate model of binary rows: the logits of their means."""
    return mean_logits(rows.mean(axis=0), BASE_MARGIN)


def bracketed_log_partition(
    key: jax.Array,
    rbm: RBM,
    rows: np.ndarray | None,
    base_bias: np.ndarray | None,
    effort: Effort,
    progress: Progress | None,
) -> Estimate:
    """Samples by tempering, then AIS up from the base-rate model and down from the samples, and a coarse one from uniform.

    A base-rate model that all but excludes a mode hides it from everything that starts there; chains from the uniform
    distribution may still find it, and any forward AIS far above the upper bound refutes it.

    Without data or a given base the ladder begins at the uniform distribution, which favours no mode, and AIS at the
    means of the samples, kept well away from 0 and 1.
    """
    if base_bias is None and rows is not None:
        base_bias = base_rate(rows)
    ladder_base = np.zeros(rbm.n_visible) if base_bias is None else base_bias
    steps = len(effort.schedule) - 1
    coarse = np.append(effort.schedule[:-1:_COARSER], 1.0)
    parts = _parts(progress, [effort.sweeps, steps, steps, len(coarse) - 1])
    snapshots = -(-effort.n_chains // effort.n_ladders)
    samples = temper(
        fold_in(key, 0),
        rbm,
        ladder_base,
        uniform_ladder(effort.n_temperatures),
        effort.n_ladders,
        snapshots,
        max(1, effort.sweeps // (2 * snapshots)),
        parts[0],
    )
    drawn = samples.visible.reshape(-1, rbm.n_visible)
    base = mean_logits(drawn.mean(axis=0), 0.05) if base_bias is None else base_bias

    start = base_samples(fold_in(key, 1), rbm, jnp.asarray(base, rbm.dtype), effort.n_chains)
    up = log_mean(anneal(fold_in(key, 2), rbm, start, effort.schedule, base, parts[1]))
    falls = anneal(fold_in(key, 3), rbm, jnp.asarray(drawn, rbm.dtype), effort.schedule[::-1], base, parts[2])
    down = log_mean(falls.reshape(samples.visible.shape[:2]))
    flat = np.zeros(rbm.n_visible)
    anywhere = base_samples(fold_in(key, 4), rbm, jnp.asarray(flat, rbm.dtype), effort.n_chains)
    uniform = log_mean(anneal(fold_in(key, 5), rbm, anywhere, coarse, flat, parts[3]))
    bennett, bennett_stderr = bennett_log_ratio(samples)
    return combine(
        forward=up._replace(value=up.value + base_log_partition(rbm, base)),
        reverse=down._replace(value=base_log_partition(rbm, base) - down.value),
        uniform=uniform._replace(value=uniform.value + base_log_partition(rbm, flat)),
        bennett=bennett + base_log_partition(rbm, ladder_base),
        bennett_stderr=bennett_stderr,
        swap_rate=float(samples.swap_rates.min(initial=1.0)),
        log_mass=None if rows is None else float(np.logaddexp.reduce(log_unnormalised(rbm, np.unique(rows, axis=0)))),
    )


def combine(
    forward: LogMean,
    reverse: LogMean,
    uniform: LogMean,
    bennett: float,
    bennett_stderr: float,
    swap_rate: float,
    log_mass: float | None,
) -> Estimate:
    """Forward AIS as the value, the bounds, and everything that speaks against them.

    `log_mass` is the log of the summed p~ of distinct data rows: log Z can never be smaller.
    """
    forward_stderr, reverse_stderr = (max(side.stderr, side.bootstrap) for side in (forward, reverse))
    lower, upper = forward.value - 2 * forward_stderr, reverse.value + 2 * reverse_stderr
    reasons = []
    if log_mass is not None:
        excess = log_mass - forward.value - 2 * forward_stderr
        if excess > 0:
            reasons.append(f"the distinct data rows alone would have probability exp({excess:.2f}) > 1")
        lower = max(lower, log_mass)
    if not upper - lower <= _WIDEST:
        reasons.append(f"the bracket from {lower:.2f} to {upper:.2f} is wider than {_WIDEST:g} nat")
    if lower > upper:
        reasons.append(f"the lower bound {lower:.2f} lies above the upper bound {upper:.2f}")
    if forward.ess < _LEAST_ESS:
        reasons.append(f"the effective sample size of forward AIS is only {forward.ess:.1f}")
    for name, side in (("forward", forward), ("reverse", reverse)):
        if side.pareto_k > side.pareto_limit:
            reasons.append(f"the largest {name} weights are too heavy for their mean (Pareto k {side.pareto_k:.2f})")
    if swap_rate < _LEAST_SWAP_RATE:
        reasons.append(f"tempered replicas exchange in only {swap_rate:.2%} of sweeps across one gap")
    found = uniform.value - 3 * max(uniform.stderr, uniform.bootstrap)
    if found > upper:
        reasons.append(f"AIS from the uniform distribution finds more, {uniform.value:.2f}: the base rate hides modes")
    gap = abs(bennett - forward.value)
    if gap > _WIDEST / 2 + 3 * (bennett_stderr + forward_stderr):
        reasons.append(f"Bennett's estimate {bennett:.2f} is {gap:.2f} nat away")
    details = {
        "forward": forward.value,
        "forward_stderr_delta": forward.stderr,
        "forward_stderr_bootstrap": forward.bootstrap,
        "forward_pareto_k": forward.pareto_k,
        "reverse": reverse.value,
        "reverse_stderr_delta": reverse.stderr,
        "reverse_stderr_bootstrap": reverse.bootstrap,
        "reverse_pareto_k": reverse.pareto_k,
        "uniform": uniform.value,
        "uniform_stderr": max(uniform.stderr, uniform.bootstrap),
        "bennett": bennett,
        "bennett_stderr": bennett_stderr,
        "least_swap_rate": swap_rate,
    }
    reason = "; ".join(reasons) + ": use more steps, chains, temperatures or sweeps" if reasons else ""
    return Estimate(forward.value, forward_stderr, lower, upper, "ais", forward.ess, not reasons, reason, details)


def _parts(progress: Progress | None, work: Sequence[int]) -> list[Progress | None]:
    """One progress report per piece of work, which together make up the whole."""
    if progress is None:
        return [None] * len(work)

    def part(before: int, size: int) -> Any:
        return lambda done, total: progress(before + size * done // total, sum(work))

    return [part(sum(work[:i]), size) for i, size in enumerate(work)]
