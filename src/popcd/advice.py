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
        """No bias is seen, or one that the noise of a hundred updates hides."""
        return self.bias < max(3 * self.bias_stderr, _HARMLESS * self.variance)


def advise(found: Sequence[Measured], autocorrelation_time: float, least_swap_rate: float | None, batch_size: int) -> list[str]:
    """Sentences, the recommendation first."""
    cds = [m for m in found if m.estimator == "cd"]
    weighted = [m for m in found if m.estimator == "pop-cd"]
    usable = [m for m in weighted if m.ess_share >= _LEAST_ESS]
    least = min(found, key=lambda m: m.bias, default=None)
    if least is None:
        return ["Nothing was measured, so nothing is recommended."]
    if cds and min(cds, key=lambda m: m.bias).harmless:
        best = min(cds, key=lambda m: (not m.harmless, m.k))
        what = f"its bias of {best.bias:.2g} per parameter is lost in its noise"
        return [f"Use {best.label}: on this model {what}, and nothing is cheaper."]
    lines = []
    if usable:
        best = min(usable, key=lambda m: (m.bias > 2 * max(min(u.bias for u in usable), 0), m.k, m.variance))
        lines.append(
            f"Use {best.label}: its bias is {best.bias:.2g} per parameter"
            + (f", {cds[0].label}'s is {cds[0].bias:.2g}" if cds else "")
            + f"; its effective sample size is {best.ess_share:.0%} of the particles."
        )
        lines += _rate(best, cds)
        if best.bias > _HARMLESS * best.variance:
            lines.append(f"A larger batch or population than {batch_size} lowers bias and variance in proportion.")
        return lines
    if weighted:
        top = max(weighted, key=lambda m: m.ess_share)
        lines.append(f"pop-CD rests on too few particles here: an effective {top.ess_share:.1%} of them at best ({top.label}).")
    if autocorrelation_time < _SLOW:
        lines.append(
            f"Use pcd: Gibbs chains forget in {autocorrelation_time:.0f} sweeps, so persistent chains follow the model."
        )
        lines.append("Let the learning rate fall to zero (--schedule linear).")
    else:
        lines.append(f"Use pt: Gibbs chains need {autocorrelation_time:.0f} sweeps or more to forget, so pcd would get stuck.")
        if least_swap_rate is not None and least_swap_rate < 0.1:
            lines.append(f"With 10 temperatures neighbours exchange in {least_swap_rate:.1%} of sweeps: use more temperatures.")
    return lines


def _rate(best: Measured, cds: Sequence[Measured]) -> list[str]:
    if not cds or best.variance < 3 * cds[0].variance:
        return []
    ratio = best.variance / cds[0].variance
    return [f"Its variance is {ratio:.0f} times that of {cds[0].label}: use a smaller learning rate, or let it fall to zero."]


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
