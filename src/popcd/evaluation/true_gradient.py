"""The gradient of the mean log-likelihood over all data: exact, or by long parallel tempering.

mean over data of f(v) - E_model[f(v)],   f(v) = (v p(h|v)', v, p(h|v))
"""

from dataclasses import dataclass
from typing import Any

import jax

from popcd.checks import binary_matrix, instance_of, positive_int
from popcd.evaluation.bracket import base_rate
from popcd.evaluation.exact import data_moments, exact_gradient
from popcd.evaluation.likelihood import AUTO_UNITS
from popcd.evaluation.tempered import tempered_moments
from popcd.prng import root_key, stream
from popcd.rbm import RBM


@dataclass(frozen=True, eq=False)
class TrueGradient:
    """A reference for `gradient_error`.

    gradient : one number per parameter, in the form of a machine.
    kind : "exact", "tempered" or "given".
    noise : mean variance per parameter of a tempered one, 0 otherwise.
    swap_rate : the least swap rate of a tempered one.
    """

    gradient: RBM
    kind: str
    noise: float = 0.0
    swap_rate: float | None = None


def true_gradient(
    rbm: RBM, data: Any, *, n_temperatures: int = 40, n_ladders: int = 32, sweeps: int = 2_000, seed: int = 0
) -> TrueGradient:
    """The gradient over all of `data`: exact up to 20 units on the smaller side, and by long parallel tempering beyond.

    Parameters
    ----------
    rbm : the machine.
    data : rows x visible.
    n_temperatures, n_ladders, sweeps : the parallel tempering of larger machines; half is burn-in. The paper uses 100
        temperatures and 250,000 sweeps of one ladder.
    seed : the same seed gives the same gradient.

    References
    ----------
    Krause, Fischer, Igel (2016), section 4.

    Examples
    --------
    >>> import popcd
    >>> found = true_gradient(popcd.RBM.create(16, 4), popcd.datasets.load("bars-and-stripes").train)
    >>> found.kind, found.gradient.weights.shape
    ('exact', (16, 4))
    """
    instance_of("rbm", rbm, RBM)
    rows = binary_matrix("data", data, rbm.n_visible)
    n_temperatures = positive_int("n_temperatures", n_temperatures, least=2)
    n_ladders, sweeps = positive_int("n_ladders", n_ladders), positive_int("sweeps", sweeps)
    if min(rbm.n_visible, rbm.n_hidden) <= AUTO_UNITS:
        return TrueGradient(exact_gradient(rbm, rows), "exact")
    key = stream(root_key(seed), "truth")
    model, noise, swap_rate = tempered_moments(key, rbm, base_rate(rows), n_temperatures, n_ladders, sweeps)
    means = data_moments(rbm, rows)
    found = RBM(*(a - b for a, b in zip(jax.tree.leaves(means), jax.tree.leaves(model), strict=True)))
    return TrueGradient(found, "tempered", noise, swap_rate)
