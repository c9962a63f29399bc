"""Persistent Contrastive Divergence: Gibbs chains that go on from update to update.

    sum over particles = mean_i f(v_i),   v_i(t+1) = k sweeps from v_i(t)

Reference: Tieleman (2008). Unbiased in the limit of a learning rate so small that the chains follow the model;
otherwise biased, and it can diverge.
"""

import functools

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from popcd.checks import positive_int
from popcd.estimators.estimator import Estimator, start_at
from popcd.kernels.gibbs import GibbsState, gibbs
from popcd.particles import Particles
from popcd.rbm import RBM


def pcd(k: int = 1, n_chains: int | None = None) -> Estimator:
    """PCD-k.

    Parameters
    ----------
    k : Gibbs sweeps per update.
    n_chains : persistent chains, started at training rows; None takes as many as the batch has rows.

    Examples
    --------
    >>> import jax, popcd
    >>> key, batch, rbm = jax.random.key(0), popcd.datasets.load("bars-and-stripes").train, popcd.RBM.create(16, 4)
    >>> estimator = popcd.pcd(k=1, n_chains=100)
    >>> chains, particles = estimator.step(key, estimator.init(key, rbm, batch), rbm, batch)
    >>> particles.visible.shape
    (100, 16)
    """
    if n_chains is not None:
        n_chains = positive_int("n_chains", n_chains)
    return _pcd(positive_int("k", k), n_chains)


@functools.cache
def _pcd(k: int, n_chains: int | None) -> Estimator:
    kernel = gibbs(k)

    def init(key: Array, rbm: RBM, batch: ArrayLike) -> GibbsState:
        return kernel.init(start_at(rbm, batch, n_chains))

    def step(key: Array, state: GibbsState, rbm: RBM, batch: ArrayLike) -> tuple[GibbsState, Particles]:
        state, info = kernel.step(key, state, rbm)
        return state, Particles(state.visible, jnp.zeros(len(state.visible), rbm.dtype), info=info)

    return Estimator("pcd", (("k", k), ("n_chains", n_chains)), init, step, n_starts=n_chains)
