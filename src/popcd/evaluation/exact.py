"""Exact log Z and moments by enumeration of the smaller side in blocks of constant memory, in float64.

    log Z = log sum_h exp(h'c) prod_i (1 + exp(y_i)),   y = b + Wh

The enumerated side is split in two: the states of the low units make up one block, and each state of the high units shifts
its logits. Then `exp(y_i) = exp(low_i) exp(high_i)`, so a factor is one multiply-add of numbers computed once, and eight
factors share one logarithm. Where weights are so large that eight factors could overflow, each is written
`exp(max(y, 0)) (1 + exp(-|y|))` instead.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from popcd.checks import binary_matrix
from popcd.estimators.exact import all_states
from popcd.rbm import RBM, unchecked

MOST_UNITS = 30
_FACTORS = 8
_LARGEST_EXPONENT = 700.0
_LOW_UNITS = 8
_ROWS = 4096
_FACTORS_PER_HOUR = 1e13  # on one core of 2024, for what an error says of the cost


class _Halves(NamedTuple):
    """What the low units give, once for all blocks: states x units, visible x states, and one number per state."""

    states: Array
    logits: Array
    factors: Array
    bias: Array


def _halves(rbm: RBM) -> tuple[_Halves, RBM]:
    """The block of the low units, and the machine of the high ones."""
    n_low = min(rbm.n_hidden, _LOW_UNITS)
    states = all_states(n_low, rbm.dtype)
    logits = rbm.weights[:, :n_low] @ states.T + rbm.visible_bias[:, None]
    low = _Halves(states, logits, _grouped(jnp.exp(logits)), states @ rbm.hidden_bias[:n_low])
    return low, unchecked(rbm.weights[:, n_low:], rbm.visible_bias, rbm.hidden_bias[n_low:])


def _grouped(factors: Array) -> Array:
    """visible x ... as groups x 8 x ..., filled up with zeros, whose factors 1 + 0 change nothing."""
    fill = [(0, -len(factors) % _FACTORS), *[(0, 0)] * (factors.ndim - 1)]
    return jnp.pad(factors, fill).reshape(-1, _FACTORS, *factors.shape[1:])


def _block(low: _Halves, high: RBM, number: Array, factored: bool) -> tuple[Array, Array, Array]:
    """State `number` of the high units with every state of the low ones: log p~ of each, the shift, the high state."""
    state = (number >> jnp.arange(high.n_hidden) & 1).astype(high.dtype)
    shift = high.weights @ state
    if factored:
        products = jnp.prod(1 + low.factors * _grouped(jnp.exp(shift))[:, :, None], axis=1)
        log_factors = jnp.sum(jnp.log(products), axis=0)
    else:
        logits = low.logits + shift[:, None]
        log_factors = jnp.sum(jnp.maximum(logits, 0) + jnp.log1p(jnp.exp(-jnp.abs(logits))), axis=0)
    return low.bias + state @ high.hidden_bias + log_factors, shift, state


@functools.partial(jax.jit, static_argnames="factored")
def _log_partition(rbm: RBM, factored: bool) -> Array:
    low, high = _halves(rbm)

    def add(number: Array, total: Array) -> Array:
        return jnp.logaddexp(total, jax.nn.logsumexp(_block(low, high, number, factored)[0]))

    return jax.lax.fori_loop(0, 2**high.n_hidden, add, jnp.asarray(-jnp.inf, rbm.dtype))


@functools.partial(jax.jit, static_argnames="factored")
def _log_terms(rbm: RBM, factored: bool) -> Array:
    low, high = _halves(rbm)
    numbers = jnp.arange(2**high.n_hidden)
    return jax.lax.map(lambda number: _block(low, high, number, factored)[0], numbers).reshape(-1)


@functools.partial(jax.jit, static_argnames="factored")
def _moments(rbm: RBM, log_z: Array, factored: bool) -> RBM:
    low, high = _halves(rbm)

    def add(number: Array, total: RBM) -> RBM:
        log_terms, shift, state = _block(low, high, number, factored)
        p = jnp.exp(log_terms - log_z)
        visible = jax.nn.sigmoid(low.logits + shift[:, None]) * p[None, :]
        mean_visible = visible.sum(axis=1)
        joint = jnp.concatenate([visible @ low.states, jnp.outer(mean_visible, state)], axis=1)
        hidden = jnp.concatenate([p @ low.states, p.sum() * state])
        return jax.tree.map(jnp.add, total, unchecked(joint, mean_visible, hidden))

    return jax.lax.fori_loop(0, 2**high.n_hidden, add, jax.tree.map(jnp.zeros_like, rbm))


def _prepared(rbm: RBM) -> tuple[RBM, bool, bool]:
    """The machine in float64 with the smaller side hidden, whether that mirrored it, and whether factors may multiply."""
    smaller = min(rbm.n_visible, rbm.n_hidden)
    if smaller > MOST_UNITS:
        power = np.log10(2) * smaller + np.log10(max(rbm.n_visible, rbm.n_hidden) / _FACTORS_PER_HOUR)
        raise ValueError(
            f"the smaller side of this {rbm.n_visible} x {rbm.n_hidden} machine has {smaller} units: enumeration would sum "
            f"2**{smaller} states (about 10**{power:.0f} hours); at most {MOST_UNITS} units are taken. Use method='ais'."
        )
    machine = in_float64(rbm)
    mirrored = rbm.n_hidden > rbm.n_visible
    if mirrored:
        machine = RBM(np.asarray(machine.weights).T, machine.hidden_bias, machine.visible_bias)
    largest = np.max(np.abs(machine.visible_bias) + np.abs(machine.weights).sum(axis=1))
    return machine, mirrored, bool(_FACTORS * (largest + 1) < _LARGEST_EXPONENT)


def in_float64(rbm: RBM) -> RBM:
    """The machine with NumPy float64 parameters, checked to be finite."""
    return RBM(*(np.asarray(leaf, np.float64) for leaf in jax.tree.leaves(rbm)))


def exact_log_partition(rbm: RBM) -> float:
    """log Z; each unit of the smaller side doubles the time.

    >>> import numpy as np
    >>> rbm = RBM(weights=np.zeros((5, 3)), visible_bias=np.zeros(5), hidden_bias=np.zeros(3))
    >>> round(exact_log_partition(rbm), 6)  # 8 log 2
    5.545177
    """
    machine, _, factored = _prepared(rbm)
    with jax.enable_x64(True):
        return float(_log_partition(machine, factored))


def exact_draws(rbm: RBM, n: int, seed: int) -> tuple[np.ndarray, bool]:
    """`n` independent draws of the smaller side, and whether that is the visible one."""
    machine, mirrored, factored = _prepared(rbm)
    with jax.enable_x64(True):
        log_terms = np.asarray(_log_terms(machine, factored))
    cumulative = np.cumsum(np.exp(log_terms - log_terms.max()))
    numbers = np.searchsorted(cumulative, np.random.default_rng(seed).random(n) * cumulative[-1], side="right")
    return (numbers[:, None] >> np.arange(machine.n_hidden) & 1).astype(np.uint8), mirrored


def exact_moments(rbm: RBM) -> RBM:
    """`E[v h']`, `E[v]` and `E[h]` under the model, in the shape of an RBM, as NumPy float64.

    >>> import numpy as np
    >>> rbm = RBM(weights=np.zeros((5, 3)), visible_bias=np.zeros(5), hidden_bias=np.zeros(3))
    >>> print(exact_moments(rbm).weights[0])
    [0.25 0.25 0.25]
    """
    machine, mirrored, factored = _prepared(rbm)
    with jax.enable_x64(True):
        found = _moments(machine, _log_partition(machine, factored), factored)
        joint, visible, hidden = (np.asarray(leaf) for leaf in jax.tree.leaves(found))
    return RBM(joint.T, hidden, visible) if mirrored else RBM(joint, visible, hidden)


@jax.jit
def _negative_free_energy(rbm: RBM, rows: Array) -> Array:
    return -rbm.free_energy(rows)


def log_unnormalised(rbm: RBM, data: Any) -> np.ndarray:
    """`log p~(v) = -F(v)` of every row of `data`, in float64 and in blocks of rows."""
    rows = binary_matrix("data", data, rbm.n_visible)
    machine = in_float64(rbm)
    with jax.enable_x64(True):
        blocks = [_negative_free_energy(machine, rows[i : i + _ROWS]) for i in range(0, len(rows), _ROWS)]
        return np.concatenate([np.asarray(block) for block in blocks])


def exact_gradient(rbm: RBM, data: Any) -> RBM:
    """The exact gradient of the mean log-likelihood of all rows of `data`, in blocks of constant memory, as NumPy float64.

    >>> import numpy as np
    >>> rbm = RBM(weights=np.zeros((4, 2)), visible_bias=np.zeros(4), hidden_bias=np.zeros(2))
    >>> print(exact_gradient(rbm, np.eye(4)).visible_bias)  # 1/4 of the rows have the unit on, 1/2 of the states
    [-0.25 -0.25 -0.25 -0.25]
    """
    rows = binary_matrix("data", data, rbm.n_visible)
    model, means = exact_moments(rbm), data_moments(rbm, rows)
    return RBM(*(a - b for a, b in zip(jax.tree.leaves(means), jax.tree.leaves(model), strict=True)))


@jax.jit
def _sum_moments(rbm: RBM, rows: Array) -> RBM:
    visible = jnp.asarray(rows, rbm.dtype)
    hidden = jax.nn.sigmoid(rbm.hidden_logits(visible))
    return unchecked(visible.T @ hidden, visible.sum(axis=0), hidden.sum(axis=0))


def data_moments(rbm: RBM, rows: np.ndarray) -> RBM:
    """Means over binary rows of `v E[h|v]'`, `v` and `E[h|v]`, as NumPy float64."""
    machine = in_float64(rbm)
    with jax.enable_x64(True):
        sums = [_sum_moments(machine, rows[i : i + _ROWS]) for i in range(0, len(rows), _ROWS)]
        return jax.tree.map(lambda *leaves: np.sum([np.asarray(x) for x in leaves], axis=0) / len(rows), *sums)
