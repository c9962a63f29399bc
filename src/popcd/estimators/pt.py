"""Parallel tempering: persistent ladders of tempered chains; the particles are the states at beta = 1.

    sum over particles = mean of f over the beta = 1 states of all ladders after each sweep

References: Desjardins et al. (2010); Salakhutdinov (2009). As PCD unbiased in the limit of a small learning rate, but
its chains cross between modes; one sweep costs as many Gibbs sweeps as there are temperatures.
"""

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from popcd.checks import positive_int
from popcd.estimators.estimator import Estimator, start_at
from popcd.kernels.tempering import TemperingState, check_ladder, tempering, uniform_ladder
from popcd.particles import Particles
from popcd.prng import fold_in
from popcd.rbm import RBM


def pt(
    n_temperatures: int = 10,
    n_ladders: int | None = None,
    sweeps: int = 1,
    betas: Sequence[float] | None = None,
) -> Estimator:
    """Parallel tempering over uniform inverse temperatures in [0, 1].

    Parameters
    ----------
    n_temperatures : replicas per ladder.
    n_ladders : ladders side by side, every replica started at a training row; None takes as many as the batch has rows.
        The paper's form is `n_ladders=1` with as many `sweeps` as the batch has rows, one after the other.
    sweeps : tempered sweeps per update; each gives one particle per ladder.
    betas : another ladder of inverse temperatures, increasing and ending at 1, in place of the uniform one.

    Examples
    --------
    >>> import jax, popcd
    >>> key, batch, rbm = jax.random.key(0), popcd.datasets.load("bars-and-stripes").train, popcd.RBM.create(16, 4)
    >>> estimator = popcd.pt(n_temperatures=5, n_ladders=1, sweeps=32)
    >>> state, particles = estimator.step(key, estimator.init(key, rbm, batch), rbm, batch)
    >>> particles.visible.shape, particles.info["swap_rates"].shape
    ((32, 16), (4,))
    """
    ladder = uniform_ladder(n_temperatures) if betas is None else check_ladder(betas)
    if n_ladders is not None:
        n_ladders = positive_int("n_ladders", n_ladders)
    return _pt(ladder, n_ladders, positive_int("sweeps", sweeps), uniform=betas is None)


@functools.cache
def _pt(ladder: tuple[float, ...], n_ladders: int | None, sweeps: int, uniform: bool) -> Estimator:
    kernel = tempering(ladder)

    def init(key: Array, rbm: RBM, batch: ArrayLike) -> TemperingState:
        starts = start_at(rbm, batch, n_ladders)
        return kernel.init(jnp.repeat(starts[:, None, :], len(ladder), axis=1))

    def step(key: Array, state: TemperingState, rbm: RBM, batch: ArrayLike) -> tuple[TemperingState, Particles]:
        def one(state: TemperingState, i: Array) -> tuple[TemperingState, tuple[Array, dict[str, Array]]]:
            state, info = kernel.step(fold_in(key, i), state, rbm)
            return state, (state.visible[:, -1], info)

        state, (visible, info) = jax.lax.scan(one, state, jnp.arange(sweeps))
        visible = visible.reshape(-1, rbm.n_visible)
        info = jax.tree.map(lambda x: x.mean(axis=0), info)
        return state, Particles(visible, jnp.zeros(len(visible), rbm.dtype), info=info)

    settings = (("n_temperatures", len(ladder)), ("n_ladders", n_ladders), ("sweeps", sweeps))
    return Estimator("pt", settings if uniform else (*settings, ("betas", ladder)), init, step, n_ladders)
