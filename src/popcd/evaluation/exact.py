"""Exact log Z by enumeration of the smaller side in blocks of constant memory, in float64.

    log Z = log sum_h exp(h'c) prod_i (1 + exp(y_i)),   y = b + Wh

The enumerated side is split into low units, whose states make up one block, and high units, one state of which is
added per block. Each factor is written `exp(max(y, 0)) (1 + exp(-|y|))`: the second parts lie in [1, 2], so up to 1,000 of them
multiply without overflow and need one logarithm together.
"""

from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from popcd.checks import binary_matrix, one_of
from popcd.estimators.exact import all_states
from popcd.evaluation.estimate import Estimate
from popcd.rbm import RBM

MOST_UNITS = 30
_BLOCK = 2**18  # numbers in a block: about 2 MB, the size of a processor's cache
_FACTORS = 1000
_ROWS = 4096


@jax.jit
def _log_partition(rbm: RBM) -> Array:
    """log Z of a machine whose hidden side is enumerated."""
    n_hidden, n_visible = rbm.n_hidden, rbm.n_visible
    n_low = min(n_hidden, max(4, (_BLOCK // n_visible).bit_length() - 1))
    low = all_states(n_low, rbm.dtype)
    low_logits = low @ rbm.weights.T[:n_low] + rbm.visible_bias[None, :]
    low_bias = low @ rbm.hidden_bias[:n_low]
    high_units = jnp.arange(n_hidden - n_low)

    def block(number: Array, total: Array) -> Array:
        high = (number >> high_units & 1).astype(rbm.dtype)
        logits = low_logits + (high @ rbm.weights.T[n_low:])[None, :]
        log_terms = low_bias + high @ rbm.hidden_bias[n_low:] + jnp.sum(jnp.maximum(logits, 0), axis=1)
        for first in range(0, n_visible, _FACTORS):
            log_terms += jnp.log(jnp.prod(1 + jnp.exp(-jnp.abs(logits[:, first : first + _FACTORS])), axis=1))
        return jnp.logaddexp(total, jax.nn.logsumexp(log_terms))

    return jax.lax.fori_loop(0, 2 ** (n_hidden - n_low), block, jnp.asarray(-jnp.inf, rbm.dtype))


@jax.jit
def _sum_free_energy(rbm: RBM, rows: Array) -> Array:
    return jnp.sum(rbm.free_energy(rows))


def _in_float64(rbm: RBM) -> RBM:
    return RBM(*(np.asarray(leaf, np.float64) for leaf in jax.tree.leaves(rbm)))


def log_partition(rbm: RBM, method: Literal["auto", "exact"] = "auto") -> Estimate:
    """log Z of the machine, by enumeration of its smaller side in float64.

    Parameters
    ----------
    rbm : at most 30 units on its smaller side; each unit doubles the time.
    method : "exact", or "auto", which is the same.

    Examples
    --------
    >>> import numpy as np, popcd
    >>> rbm = popcd.RBM(weights=np.zeros((5, 3)), visible_bias=np.zeros(5), hidden_bias=np.zeros(3))
    >>> round(popcd.log_partition(rbm).value, 6)  # 8 log 2
    5.545177
    """
    one_of("method", method, ("auto", "exact"))
    smaller = min(rbm.n_visible, rbm.n_hidden)
    if smaller > MOST_UNITS:
        raise ValueError(
            f"the smaller side of this {rbm.n_visible} x {rbm.n_hidden} machine has {smaller} units: enumeration would sum "
            f"2**{smaller} states; at most {MOST_UNITS} units are taken"
        )
    with jax.enable_x64(True):
        machine = _in_float64(rbm)
        value = float(_log_partition(machine if rbm.n_hidden <= rbm.n_visible else machine.mirror()))
    return Estimate(value, 0.0, value, value, "exact", None)


def log_likelihood(rbm: RBM, data: Any, method: Literal["auto", "exact"] = "auto") -> Estimate:
    """Mean over the rows of `data` of `log p(v) = -F(v) - log Z`.

    Parameters
    ----------
    rbm : the machine.
    data : rows x visible of zeros and ones.
    method : how log Z is computed, see `log_partition`. The standard error and the bracket are those of log Z.

    Examples
    --------
    >>> import numpy as np, popcd
    >>> rbm = popcd.RBM(weights=np.zeros((4, 2)), visible_bias=np.zeros(4), hidden_bias=np.zeros(2))
    >>> round(popcd.log_likelihood(rbm, np.eye(4)).value, 6)  # -4 log 2
    -2.772589
    """
    rows = binary_matrix("data", data, rbm.n_visible)
    log_z = log_partition(rbm, method)
    with jax.enable_x64(True):
        machine = _in_float64(rbm)
        blocks = (rows[first : first + _ROWS] for first in range(0, len(rows), _ROWS))
        mean = -sum(float(_sum_free_energy(machine, block)) for block in blocks) / len(rows)
    return Estimate(mean - log_z.value, log_z.stderr, mean - log_z.upper, mean - log_z.lower, log_z.method, log_z.ess)
