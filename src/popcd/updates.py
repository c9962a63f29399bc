"""Compiled chunks of updates: `theta <- theta + optimiser(gradient)`, one batch each."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jax.flatten_util import ravel_pytree
from jax.sharding import PartitionSpec
from jax.typing import ArrayLike

from popcd.devices import HIDDEN, PARTICLES, constrained
from popcd.estimators import Estimator
from popcd.gradient import Offsets, from_centred, gradient, to_centred
from popcd.prng import key_at
from popcd.programs import CompiledSooner
from popcd.rbm import RBM

_SLIDING = 0.01  # how fast the hidden offsets of centring follow the hidden means (Melchior et al. 2016)


class TrainState(NamedTuple):
    """All that the next update needs besides the seed and the data."""

    step: Array
    rbm: RBM
    optimizer: Any
    estimator: Any
    offsets: Offsets


class Plan(NamedTuple):
    """What is fixed when updates are compiled; equal plans share one compiled program."""

    estimator: Estimator
    optimizer: optax.GradientTransformation
    batch_size: int
    centered: bool
    brief: bool = False  # so few updates that compiling them sooner saves more than faster ones would

    @property
    def n_starts(self) -> int:
        """Rows that the estimator starts its chains at."""
        return self.estimator.n_starts or self.batch_size

    @property
    def n_further(self) -> int:
        """How many of them lie beyond the batch."""
        return max(0, self.n_starts - self.batch_size)


class Gathered(NamedTuple):
    """Batches of consecutive updates, as numbers of rows of what lies on the device."""

    numbers: ArrayLike
    data: Array

    def at(self, place: Array, plan: Plan) -> tuple[Array, Array]:
        """The batch of update `place`, and the rows that its chains start at."""

        def rows(n: int) -> Array:
            here = jax.lax.dynamic_slice(jnp.asarray(self.numbers), (place * plan.batch_size,), (n,))
            return self.data.at[here].get(mode="promise_in_bounds")

        batch = rows(plan.batch_size)
        return batch, batch if plan.n_starts == plan.batch_size else rows(plan.n_starts)


class Window(NamedTuple):
    """Batches of consecutive updates as they are, updates x rows x visible; `starts` where they are not the batches."""

    batches: Array
    starts: Array | None

    def at(self, place: Array, plan: Plan) -> tuple[Array, Array]:
        """As of `Gathered`."""
        batch = jax.lax.dynamic_index_in_dim(self.batches, place, keepdims=False)
        return batch, batch if self.starts is None else jax.lax.dynamic_index_in_dim(self.starts, place, keepdims=False)


def init(key: Array, rbm: RBM, starts: np.ndarray | Array, offsets: Offsets, plan: Plan) -> TrainState:
    """The state before the first update; `starts` are the first rows of the run.

    Not compiled where there is one device: for PCD and plain gradient ascent it then needs no program at all.
    """
    # NumPy converts its own arrays, and `device_put` needs no program where `jnp.asarray` does
    rbm, offsets = jax.tree.map(lambda leaf: jax.device_put(leaf.astype(rbm.dtype)), (rbm, offsets))
    chains = plan.estimator.init(key, rbm, starts)
    state = TrainState(jax.device_put(np.int32(0)), rbm, plan.optimizer.init(rbm), chains, offsets)
    return jax.tree.map(jnp.asarray, state)  # an estimator of the user's may begin with plain numbers


@functools.partial(jax.jit, static_argnames="plan")
def init_over_devices(key: Array, rbm: RBM, starts: Array, offsets: Offsets, plan: Plan) -> TrainState:
    """As `init`, chains spread over the devices of the mesh in use; what has a number per hidden unit, over those that share
    them."""
    state, width = init(key, rbm, starts, offsets, plan), rbm.n_hidden

    def parameters(leaf: Array) -> PartitionSpec:
        return PartitionSpec(*[None] * (leaf.ndim - 1), HIDDEN) if leaf.ndim and leaf.shape[-1] == width else PartitionSpec()

    chains = constrained(state.estimator, lambda leaf: PartitionSpec(PARTICLES))
    return constrained(state._replace(estimator=None), parameters)._replace(estimator=chains)


@functools.partial(jax.jit, static_argnames="plan")
def advance(
    state: TrainState, stop: int | Array, first: int | Array, batches: Gathered | Window, keys: ArrayLike, plan: Plan
) -> tuple[TrainState, dict[str, Array]]:
    """Updates until step `stop`; the new state, and the sums of what was measured on the way.

    Batches and keys are those of step `first` and of those that follow it.
    """

    @jax.jit  # so that it is traced once, for the shapes of what it measures and for the loop
    def update(state: TrainState) -> tuple[TrainState, dict[str, Array]]:
        place = state.step - first
        after, measured = _update(key_at(keys, place), state, *batches.at(place, plan), plan)
        return after, jax.tree.map(lambda leaf: jnp.asarray(leaf).astype(state.rbm.dtype), measured)

    def body(carry: tuple[TrainState, Array]) -> tuple[TrainState, Array]:
        state, measured = update(carry[0])
        return state, carry[1] + ravel_pytree(measured)[0]

    measured = jax.eval_shape(update, state)[1]
    # All sums in one array: a kernel for each would be compiled on its own and started for every update
    totals, by_name = ravel_pytree(jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), measured))
    state, totals = jax.lax.while_loop(lambda carry: carry[0].step < stop, body, (state, totals))
    return state, by_name(totals)


advance_briefly = CompiledSooner(advance, static_argnames="plan")


def _update(key: Array, state: TrainState, batch: Array, starts: Array, plan: Plan) -> tuple[TrainState, dict[str, Array]]:
    rbm, offsets = state.rbm, state.offsets
    chains, particles = plan.estimator.step(key, state.estimator, rbm, starts)
    uphill = gradient(rbm, batch, particles)
    ess = particles.ess
    measured = {
        "ess": ess,
        "ess_fraction": ess / len(particles.log_weights),
        "largest_weight": particles.largest_weight,
        "gradient_norm": _norm(uphill),
        **particles.info,
    }
    if plan.centered:
        hidden = jax.nn.sigmoid(rbm.hidden_logits(batch)).mean(axis=0)
        offsets = Offsets(offsets.visible, offsets.hidden + _SLIDING * (hidden - offsets.hidden))
        uphill = to_centred(uphill, offsets)
    change, optimizer = plan.optimizer.update(jax.tree.map(jnp.negative, uphill), state.optimizer, rbm)
    if plan.centered:
        change = from_centred(change, offsets)
    rbm = optax.apply_updates(rbm, change)
    return TrainState(state.step + 1, rbm, optimizer, chains, offsets), measured


def _norm(rbm: RBM) -> Array:
    """`optax.tree.norm`, with one sum for both biases."""
    biases = jnp.concatenate([rbm.visible_bias, rbm.hidden_bias])
    return jnp.sqrt(jnp.sum(jnp.square(rbm.weights)) + jnp.sum(jnp.square(biases)))
