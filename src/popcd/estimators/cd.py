"""Contrastive Divergence: k Gibbs sweeps from each datum, all particles alike.

    sum over particles = mean_i f(v_i^(k)),   v_i^(0) = datum i

Reference: Hinton (2002). Biased for every k, and the bias does not fall with the size of the batch; lowest variance of all.
"""

import functools

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from popcd.checks import positive_int
from popcd.estimators.estimator import Estimator, start_at, stateless
from popcd.kernels.gibbs import sweeps
from popcd.particles import Particles
from popcd.rbm import RBM


def cd(k: int = 1) -> Estimator:
    """CD-k.

    Parameters
    ----------
    k : Gibbs sweeps per update.

    Examples
    --------
    >>> import jax, popcd
    >>> batch = popcd.datasets.load("bars-and-stripes").train
    >>> _, particles = popcd.cd(k=1).step(jax.random.key(0), None, popcd.RBM.create(16, 4), batch)
    >>> particles.visible.shape, round(float(particles.ess))
    ((32, 16), 32)
    """
    return _cd(positive_int("k", k))


@functools.cache
def _cd(k: int) -> Estimator:
    def step(key: Array, state: None, rbm: RBM, batch: ArrayLike) -> tuple[None, Particles]:
        visible = sweeps(key, start_at(rbm, batch, None), rbm, k)
        return None, Particles(visible, jnp.zeros(len(visible), rbm.dtype))

    return Estimator("cd", (("k", k),), stateless, step)
