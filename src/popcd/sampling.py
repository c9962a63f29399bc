"""Draws of the model, free or with some visible units given."""

import functools
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from popcd.checks import binary_matrix, instance_of, one_of, positive_int
from popcd.evaluation.exact import exact_draws
from popcd.evaluation.likelihood import AUTO_UNITS
from popcd.evaluation.tempered import temper
from popcd.kernels.gibbs import sweeps as gibbs_sweeps
from popcd.kernels.tempering import uniform_ladder
from popcd.prng import bernoulli, fold_in, root_key, stream
from popcd.rbm import RBM

LADDERS = 32
_TEMPERATURES, _SPACING, _LEAST_SWEEPS = 40, 10, 1000

Method = Literal["auto", "exact", "gibbs", "tempering"]


def sample(
    rbm: RBM, n: int, seed: int = 0, *, method: Method = "auto", start: Any = None, sweeps: int = _LEAST_SWEEPS
) -> np.ndarray:
    """`n` visible states of the model, n x visible as uint8.

    Parameters
    ----------
    rbm : the machine.
    n : number of states.
    seed : the same seed gives the same states.
    method : "exact" draws independently by enumeration of the smaller side, at most 20 units; "tempering" takes the beta = 1
        states of 32 ladders of 40 temperatures, every 10 sweeps or more after as many sweeps of burn-in; "gibbs" runs `n`
        chains; "auto" is exact where that is possible and tempering elsewhere.
    start : for "gibbs", rows x visible, taken in turn; by default fair coins.
    sweeps : for "gibbs", sweeps of every chain.

    Examples
    --------
    >>> import popcd
    >>> popcd.sample(popcd.RBM.create(6, 3), n=4).shape
    (4, 6)
    """
    instance_of("rbm", rbm, RBM)
    n = positive_int("n", n)
    one_of("method", method, ("auto", "exact", "gibbs", "tempering"))
    if method == "gibbs":
        return _gibbs(rbm, n, seed, start, positive_int("sweeps", sweeps))
    if start is not None:
        raise ValueError(f"start is where chains of method 'gibbs' begin; method {method!r} has none")
    smaller = min(rbm.n_visible, rbm.n_hidden)
    if method == "exact" and smaller > AUTO_UNITS:
        raise ValueError(f"exact draws enumerate the smaller side, at most {AUTO_UNITS} units, got {smaller}; use 'tempering'")
    return np.asarray(sample_pairs(rbm, n, seed, exact=method != "tempering")[0]).astype(np.uint8)


def sample_pairs(rbm: RBM, n: int, seed: int, exact: bool = True) -> tuple[Array, Array]:
    """Visible and hidden states drawn together, n x visible and n x hidden; tempered ones with ladders as the faster axis."""
    key = stream(root_key(seed), "sample")
    if exact and min(rbm.n_visible, rbm.n_hidden) <= AUTO_UNITS:
        states, are_visible = exact_draws(rbm, n, seed)
        given = jnp.asarray(states, rbm.dtype)
        if are_visible:
            return given, bernoulli(key, rbm.hidden_logits(given))
        return bernoulli(key, rbm.visible_logits(given)), given
    snapshots = -(-n // LADDERS)
    spacing = max(_SPACING, _LEAST_SWEEPS // (2 * snapshots))
    base = np.zeros(rbm.n_visible)  # the uniform distribution, which favours no mode
    drawn = temper(fold_in(key, 0), rbm, base, uniform_ladder(_TEMPERATURES), LADDERS, snapshots, spacing).visible
    visible = jnp.asarray(drawn.reshape(-1, rbm.n_visible)[-n:], rbm.dtype)
    return visible, bernoulli(fold_in(key, 1), rbm.hidden_logits(visible))


def _gibbs(rbm: RBM, n: int, seed: int, start: Any, sweeps: int) -> np.ndarray:
    key = stream(root_key(seed), "gibbs")
    if start is None:
        first = bernoulli(fold_in(key, 0), jnp.zeros((n, rbm.n_visible), rbm.dtype))
    else:
        first = jnp.asarray(np.resize(binary_matrix("start", start, rbm.n_visible), (n, rbm.n_visible)), rbm.dtype)
    last = jax.jit(gibbs_sweeps)(fold_in(key, 1), first, rbm, sweeps)
    return np.asarray(last).astype(np.uint8)


def complete(rbm: RBM, partial: Any, *, sweeps: int = _LEAST_SWEEPS, seed: int = 0) -> np.ndarray:
    """Draw what is missing from rows, given what is there: `v_missing ~ p(v_missing | v_known)`.

    Gibbs sweeps in which the known units keep their values; during the first half of them the machine cools from
    beta = 0 to 1, so that distant modes are found.

    Parameters
    ----------
    rbm : the machine.
    partial : rows x visible of 0, 1, and NaN where a value is missing.
    sweeps : of every row.
    seed : the same seed gives the same draws.

    Returns
    -------
    rows x visible as uint8, with the known values as they were.

    References
    ----------
    Smolensky (1986) calls it completion.

    Examples
    --------
    >>> import numpy as np, popcd
    >>> rows = popcd.complete(popcd.RBM.create(4, 2), np.array([[1, 0, np.nan, np.nan]]))
    >>> rows[0, :2].tolist(), rows.shape
    ([1, 0], (1, 4))
    """
    instance_of("rbm", rbm, RBM)
    rows = np.asarray(partial)
    if rows.dtype.kind not in "biuf":
        raise TypeError(f"partial must hold 0, 1 and NaN as numbers, got dtype {rows.dtype}")
    missing = np.isnan(rows) if rows.dtype.kind == "f" else np.zeros(rows.shape, bool)
    known = binary_matrix("partial (where it is not NaN)", np.where(missing, 0, rows), rbm.n_visible)
    rbm = jax.tree.map(lambda leaf: jnp.asarray(leaf, rbm.dtype), rbm)
    key = stream(root_key(seed), "complete")
    first = bernoulli(fold_in(key, 0), jnp.zeros(known.shape, rbm.dtype))
    clamped = jnp.where(missing, first, known.astype(rbm.dtype))
    drawn = _completed(fold_in(key, 1), clamped, jnp.asarray(missing), rbm, positive_int("sweeps", sweeps))
    return np.asarray(drawn).astype(np.uint8)


@functools.partial(jax.jit, static_argnames="n")
def _completed(key: Array, visible: Array, missing: Array, rbm: RBM, n: int) -> Array:
    cooled = max(1, n // 2)

    def sweep(i: Array, visible: Array) -> Array:
        beta = jnp.minimum((i + 1) / cooled, 1).astype(rbm.dtype)
        return clamped_sweep(fold_in(key, i), visible, missing, rbm.anneal(beta, jnp.zeros_like(rbm.visible_bias)))

    return jax.lax.fori_loop(0, n, sweep, visible)


def clamped_sweep(key: Array, visible: Array, missing: Array, rbm: RBM) -> Array:
    """A Gibbs sweep that leaves the units as they are where nothing is missing."""
    hidden = bernoulli(key, rbm.hidden_logits(visible), site=0)
    return jnp.where(missing, bernoulli(key, rbm.visible_logits(hidden), site=1), visible)
