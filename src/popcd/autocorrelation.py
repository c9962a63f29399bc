"""How fast Gibbs chains forget where they were.

    tau = 1 + 2 sum_{t >= 1} rho(t),   rho the autocorrelation of a feature along chains at equilibrium

n states of a chain are worth n / tau independent ones. The sum is cut at the first window of 5 tau (Sokal 1997). Features are
the free energy and the projections of the visible units on the leading principal components of samples, because modes of
equal free energy differ in these; the slowest feature counts.
"""

import functools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from popcd.checks import instance_of, positive_int
from popcd.kernels.gibbs import sweep
from popcd.prng import fold_in, root_key, stream
from popcd.rbm import RBM
from popcd.sampling import sample

_WINDOW, _COMPONENTS, _SAMPLES = 5, 5, 512


@dataclass(frozen=True)
class Mixing:
    """`autocorrelation_time` in sweeps, with its standard error over chains; `reached` is False where chains were too short."""

    autocorrelation_time: float
    stderr: float
    chains: int
    sweeps: int
    reached: bool


def mixing(rbm: RBM, *, n_chains: int = 64, sweeps: int = 2_000, seed: int = 0) -> Mixing:
    """The longest autocorrelation time of a feature along Gibbs chains that start at samples of the model.

    Parameters
    ----------
    rbm : the machine.
    n_chains, sweeps : how many chains and how long.
    seed : the same seed gives the same figure.

    References
    ----------
    Sokal (1997), Monte Carlo methods in statistical mechanics.

    Examples
    --------
    >>> import numpy as np, popcd
    >>> free = popcd.RBM(np.zeros((5, 3)), np.ones(5), np.zeros(3))  # every sweep forgets everything
    >>> round(popcd.mixing(free).autocorrelation_time)
    1
    """
    instance_of("rbm", rbm, RBM)
    n_chains, sweeps = positive_int("n_chains", n_chains, least=2), positive_int("sweeps", sweeps, least=10)
    drawn = sample(rbm, max(n_chains, _SAMPLES), seed).astype(np.float32)
    directions = np.linalg.svd(drawn - drawn.mean(axis=0), full_matrices=False)[2][:_COMPONENTS].T
    rbm = jax.tree.map(lambda leaf: jnp.asarray(leaf, rbm.dtype), rbm)
    key, start = stream(root_key(seed), "mixing"), jnp.asarray(drawn[-n_chains:], rbm.dtype)
    features = np.asarray(_features(key, start, rbm, jnp.asarray(directions, rbm.dtype), sweeps), np.float64)
    found = [_time(features[..., i]) for i in range(features.shape[-1])]
    tau, stderr, reached = max(found)
    return Mixing(tau, stderr, n_chains, sweeps, reached)


def _time(feature: np.ndarray) -> tuple[float, float, bool]:
    """tau of a feature (sweeps x chains), its standard error by a jackknife over chains, whether chains were long enough."""
    sweeps, n_chains = feature.shape
    centred = feature - feature.mean()  # one mean for all chains: a chain stuck in a mode must show
    if not centred.any():
        return 1.0, 0.0, True
    spectrum = np.fft.rfft(centred, 2 * sweeps, axis=0)
    overlap = np.arange(sweeps, 0, -1)[:, None]
    products = (np.fft.irfft(np.abs(spectrum) ** 2, axis=0)[:sweeps] / overlap)[: sweeps // 2]  # lags x chains
    tau, window = _summed(products.mean(axis=1))
    without = [_summed((products.sum(axis=1) - products[:, c]) / (n_chains - 1))[0] for c in range(n_chains)]
    return tau, float(np.sqrt((n_chains - 1) * np.var(without))), window is not None and 20 * tau < sweeps


def _summed(covariances: np.ndarray) -> tuple[float, int | None]:
    """tau and the window it was summed over, None if there was none."""
    tau = 2 * np.cumsum(covariances / covariances[0]) - 1
    ends = np.flatnonzero(np.arange(len(tau)) >= _WINDOW * tau)
    return (float(tau[ends[0]]), int(ends[0])) if len(ends) else (float(tau[-1]), None)


@functools.partial(jax.jit, static_argnames="n")
def _features(key: Array, visible: Array, rbm: RBM, directions: Array, n: int) -> Array:
    """Features along the chains, sweeps x chains x features."""

    def one(visible: Array, i: Array) -> tuple[Array, Array]:
        visible = sweep(fold_in(key, i), visible, rbm)[0]
        return visible, jnp.concatenate([rbm.free_energy(visible)[:, None], visible @ directions], axis=1)

    return jax.lax.scan(one, visible, jnp.arange(n))[1]
