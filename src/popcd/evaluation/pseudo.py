"""Pseudo-log-likelihood: every visible unit given all others, summed over the units."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from popcd.checks import binary_matrix, instance_of
from popcd.evaluation.estimate import Estimate
from popcd.rbm import RBM, softplus

_NUMBERS = 2**18


@jax.jit
def _pseudo(rbm: RBM, rows: Array) -> Array:
    """`sum_i log sigmoid(F(v with unit i flipped) - F(v))`, which for binary rows is `sum_i log p(v_i | all others)`."""
    visible = jnp.asarray(rows, rbm.dtype)
    logits = rbm.hidden_logits(visible)
    before = softplus(logits)

    def site(total: Array, unit: tuple[Array, Array, Array]) -> tuple[Array, None]:
        value, weights, bias = unit
        change = 1 - 2 * value
        fall = change * bias + jnp.sum(softplus(logits + change[:, None] * weights[None, :]) - before, axis=-1)
        return total - softplus(fall), None

    total, _ = jax.lax.scan(site, jnp.zeros(len(visible), rbm.dtype), (visible.T, rbm.weights, rbm.visible_bias))
    return total


def pseudo_log_likelihood(rbm: RBM, data: Any) -> Estimate:
    """Mean over rows of `sum_i log p(v_i | all other units)`, exact over all units and without randomness.

    It needs no log Z, but rows x visible x hidden steps; it is no bound of the log-likelihood.

    Parameters
    ----------
    rbm : the machine.
    data : rows x visible of zeros and ones.

    References
    ----------
    Besag (1975), Statistical analysis of non-lattice data.

    Examples
    --------
    >>> import numpy as np, popcd
    >>> rbm = popcd.RBM(weights=np.zeros((4, 2)), visible_bias=np.zeros(4), hidden_bias=np.zeros(2))
    >>> round(popcd.pseudo_log_likelihood(rbm, np.eye(4)).value, 5)  # -4 log 2
    -2.77259
    """
    instance_of("rbm", rbm, RBM)
    values = pseudo_rows(rbm, binary_matrix("data", data, rbm.n_visible))
    mean = float(values.mean())
    error = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
    return Estimate(mean, 0.0, mean, mean, "exact", None, rows=values, rows_stderr=error)


def pseudo_rows(rbm: RBM, rows: np.ndarray) -> np.ndarray:
    """The pseudo-log-likelihood of every row, in blocks; grey values v are flipped to 1 - v."""
    size = max(1, _NUMBERS // rbm.n_hidden)
    blocks = [np.asarray(_pseudo(rbm, rows[i : i + size]), np.float64) for i in range(0, len(rows), size)]
    return np.concatenate(blocks)
