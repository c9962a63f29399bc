"""The one gradient of the mean log-likelihood, and the change of coordinates that centres it."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from popcd.devices import shards
from popcd.particles import Particles
from popcd.rbm import RBM, unchecked

_NARROW = 4  # so many times more rows than hidden units: turning the product's result costs little then
_FEW = 256  # visible units up to which turning them costs less than a product of columns


def gradient(rbm: RBM, batch: ArrayLike, particles: Particles) -> RBM:
    """Estimate of the gradient of the mean log-likelihood of `batch`, in the shape of an RBM (uphill).

    With f(v) the derivatives of -F(v), that is `v p(h|v)'` for the weights, `v` and `p(h|v)` for the biases,

        gradient = mean_batch f(v) - sum_i weights_i f(v_i).

    Hidden units are integrated out (Rao-Blackwellised) on both sides, or taken as given where particles are pairs.
    The batch is rows x visible. Whether the estimate is biased depends on the particles alone.

    Examples
    --------
    >>> import jax, popcd
    >>> data = popcd.datasets.load("bars-and-stripes").train
    >>> rbm = popcd.RBM.create(16, 16)
    >>> _, particles = popcd.exact().step(jax.random.key(0), None, rbm, data)
    >>> gradient(rbm, data, particles).weights.shape
    (16, 16)
    """
    rows = jnp.asarray(batch, rbm.dtype)
    hidden = jax.nn.sigmoid(rbm.hidden_logits(rows))
    model_hidden = particles.hidden
    if model_hidden is None:
        model_hidden = jax.nn.sigmoid(rbm.hidden_logits(particles.visible))
    # Data and particles in one sum with signed weights: one matrix product, and one pass over its result, instead of two
    visible = _together(rows, particles.visible)
    weights = _together(jnp.full(len(rows), 1 / len(rows), rbm.dtype), -particles.weights)
    return weighted_statistics(weights, visible, _together(hidden, model_hidden))


def weighted_statistics(weights: Array, visible: Array, hidden: Array) -> RBM:
    """`sum_i weights_i (v_i h_i', v_i, h_i)` in the shape of an RBM; weights of particles, states particles x units.

    >>> import jax.numpy as jnp
    >>> found = weighted_statistics(jnp.array([1.0, 2.0]), jnp.array([[1.0, 0.0], [1.0, 1.0]]), jnp.array([[0.5], [1.0]]))
    >>> found.weights.tolist(), found.visible_bias.tolist(), found.hidden_bias.tolist()
    ([[2.5], [2.0]], [3.0, 2.0], [2.5])
    """
    weights = weights[:, None]
    weighted_hidden = weights * hidden
    return unchecked(
        weights=_product(visible, weighted_hidden),
        visible_bias=(weights * visible).sum(axis=0),
        hidden_bias=weighted_hidden.sum(axis=0),
    )


def _product(visible: Array, hidden: Array) -> Array:
    """`visible.T @ hidden`, in the order that XLA computes fastest on a processor (docs/speed.md)."""
    if hidden.shape[1] <= visible.shape[1] and _NARROW * hidden.shape[1] < len(hidden):
        return jax.lax.optimization_barrier(hidden.T @ visible).T  # without the barrier XLA turns the product back
    if visible.shape[1] <= _FEW:
        return jax.lax.optimization_barrier(visible.T) @ hidden
    return visible.T @ hidden


def _together(rows: Array, particles: Array) -> Array:
    """Both in one array, in an order in which each device has the rows and the particles that it had."""
    groups = math.gcd(shards(), len(rows), len(particles))
    parts = [x.reshape(groups, -1, *x.shape[1:]) for x in (rows, particles)]
    return jnp.concatenate(parts, axis=1).reshape(-1, *rows.shape[1:])


class Offsets(NamedTuple):
    """What centring subtracts: `visible` (mu, the data means) and `hidden` (lambda, running hidden means)."""

    visible: Any
    hidden: Any


def to_centred(plain: RBM, offsets: Offsets) -> RBM:
    """A gradient in the coordinates of the centred machine (Melchior, Fischer, Wiskott 2016).

    The centred energy `-(v - mu)'W(h - lambda) - v'b~ - h'c~` describes the same machine with
    `b = b~ - W lambda` and `c = c~ - W'mu`; the chain rule gives the derivative by W at fixed b~, c~.
    """
    weights = plain.weights - jnp.outer(offsets.visible, plain.hidden_bias) - jnp.outer(plain.visible_bias, offsets.hidden)
    return unchecked(weights, plain.visible_bias, plain.hidden_bias)


def from_centred(change: RBM, offsets: Offsets) -> RBM:
    """A change of the centred machine's parameters as a change of the plain ones."""
    return unchecked(
        weights=change.weights,
        visible_bias=change.visible_bias - jnp.sum(change.weights * offsets.hidden[None, :], axis=1),
        hidden_bias=change.hidden_bias - jnp.sum(change.weights * offsets.visible[:, None], axis=0),
    )
