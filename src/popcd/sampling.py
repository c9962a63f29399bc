"""Draws of the model: independent ones by enumeration where that is possible, parallel tempering elsewhere."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from popcd.checks import positive_int
from popcd.evaluation.exact import exact_draws
from popcd.evaluation.likelihood import AUTO_UNITS
from popcd.evaluation.tempered import temper
from popcd.kernels.tempering import uniform_ladder
from popcd.prng import bernoulli, fold_in, stream
from popcd.rbm import RBM

LADDERS = 32
_TEMPERATURES, _SPACING, _LEAST_SWEEPS = 40, 10, 1000


def sample(rbm: RBM, n: int, seed: int = 0) -> np.ndarray:
    """`n` visible states of the model, n x visible as uint8.

    With at most 20 units on the smaller side the draws are exact and independent. Beyond, they are the beta = 1 states of 32
    ladders of 40 temperatures, taken every 10 sweeps or more after as many sweeps of burn-in.

    >>> import popcd
    >>> popcd.sample(popcd.RBM.create(6, 3), n=4).shape
    (4, 6)
    """
    return np.asarray(sample_pairs(rbm, positive_int("n", n), seed)[0]).astype(np.uint8)


def sample_pairs(rbm: RBM, n: int, seed: int) -> tuple[Array, Array]:
    """Visible and hidden states drawn together, n x visible and n x hidden; tempered ones with ladders as the faster axis."""
    key = stream(jax.random.key(seed), "sample")
    if min(rbm.n_visible, rbm.n_hidden) <= AUTO_UNITS:
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
