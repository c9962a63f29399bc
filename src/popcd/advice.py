"""A recommendation in words from measured figures: which estimator, how many steps, which batch and rate, and why."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_HARMLESS = 0.01  # of the variance of one estimate: a bias below it is lost in the noise of a hundred updates
_LEAST_ESS = 0.05  # of the particles
_SLOW = 50  # sweeps of autocorrelation from which on persistent chains cannot follow the model


@dataclass(frozen=True)
class Measured:
    """What `diagnose` found of one estimator: bias corrected for noise, variance, ESS as a share of the particles."""

    label: str
    estimator: str
    k: int
    proposal: str | None
    bias: float
    bias_stderr: float
    variance: float
    ess_share: float

    @property
    def harmless(self) -> bool:
        """Its bias is surely too small to show in a hundred updates."""
        return self.bias + 3 * self.bias_stderr < _HARMLESS * self.variance

    @property
    def cost(self) -> tuple[int, bool, bool]:
        """Steps first; weights and the mixture cost a little more."""
        return self.k, self.estimator != "cd", self.proposal == "mixture"


def advise(found: Sequence[Measured], autocorrelation_time: float, least_swap_rate: float | None, batch_size: int) -> list[str]:
    """Sentences, the recommendation first."""
    if not found:
        return ["Nothing was measured, so nothing is recommended."]
    weighted = [m for m in found if m.estimator == "pop-cd"]
    usable = [m for m in found if m.estimator != "pop-cd" or m.ess_share >= _LEAST_ESS]
    lines = []
    if weighted and not any(m in usable for m in weighted):
        top = max(weighted, key=lambda m: m.ess_share)
        lines.append(f"pop-CD rests on too few particles here: an effective {top.ess_share:.1%} of them at best ({top.label}).")
    harmless = [m for m in usable if m.harmless]
    least = min((m.bias + 3 * m.bias_stderr for m in usable), default=0.0)
    alike = [m for m in usable if m.bias - 3 * m.bias_stderr <= least]  # none is surely worse than the best
    best = min(harmless or alike, key=lambda m: m.cost, default=None)
    if best is None or (best.estimator == "cd" and not best.harmless):
        return lines + _chains(best, autocorrelation_time, least_swap_rate)
    size = f"its bias of {best.bias:.2g} per parameter"
    why = "is too small to show in its noise" if best.harmless else "is among the smallest measured"
    share = f"; its effective sample size is {best.ess_share:.0%} of the particles" if best.estimator == "pop-cd" else ""
    return [*lines, f"Use {best.label}: {size} {why}{share}.", _rate(best, found), _batch(best, batch_size)]


def _chains(best: Measured | None, time: float, least_swap_rate: float | None) -> list[str]:
    """Persistent chains, where neither CD nor weights will do."""
    bias = "" if best is None else f"the bias of {best.label}, {best.bias:.2g} per parameter, is not small against its noise; "
    if time < _SLOW:
        why = f"{bias}Gibbs chains forget in {time:.0f} sweeps, so persistent ones follow the model"
        return [
            f"Use pcd: {why}.",
            "Let the learning rate fall to zero (--schedule linear); take as many chains as the batch has rows.",
        ]
    lines = [f"Use pt: {bias}Gibbs chains need {time:.0f} sweeps or more to forget, so pcd would get stuck."]
    if least_swap_rate is not None and least_swap_rate < 0.1:
        lines.append(f"With 10 temperatures neighbours exchange in {least_swap_rate:.1%} of sweeps: use more temperatures.")
    return [*lines, "Let the learning rate fall to zero (--schedule linear)."]


def _rate(best: Measured, found: Sequence[Measured]) -> str:
    cd = next((m for m in found if m.estimator == "cd"), None)
    ratio = 1.0 if cd is None else best.variance / cd.variance
    if ratio < 3 or cd is None:
        return "Rate: 0.1 on small machines, 0.05 falling to zero on large ones, is a good start."
    return f"Rate: its variance is {ratio:.0f} times that of {cd.label}, so use a smaller one, or let it fall to zero."


def _batch(best: Measured, batch_size: int) -> str:
    if best.estimator == "cd" or best.harmless:
        return f"Batch: {batch_size}, as measured; a larger one lowers the noise only."
    return f"Batch: more than {batch_size} rows or particles lower its bias and variance in proportion."


def recommendation(found: Sequence[dict[str, Any]], mixing: dict[str, Any], batch_size: int) -> list[str]:
    """`advise` on the rows that `popcd diagnose` prints."""
    rows = [
        Measured(
            row["label"],
            row["estimator"],
            row["k"],
            row["proposal"],
            row["bias_corrected"],
            row["bias_stderr"],
            row["variance"],
            row["ess_share"],
        )
        for row in found
    ]
    return advise(rows, mixing["autocorrelation_time"], mixing["least_swap_rate"], batch_size)
