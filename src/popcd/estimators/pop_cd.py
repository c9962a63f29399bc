"""Population Contrastive Divergence: CD's chain, its last draw reweighted towards the model.

    h_i from k - 1 Gibbs sweeps,   v_i ~ p(v | h_i),   w_i = p~(v_i) / kappa(v_i),   sum_i w_i f(v_i) / sum_j w_j

Reference: Krause, Fischer, Igel (2016), sections 3 to 3.4. Consistent: bias and variance fall as one over the number of
particles, whatever the chain; the variance is higher than CD's, and grows with the number of hidden units.
"""

import functools

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from popcd.checks import one_of, positive_int
from popcd.estimators.estimator import Estimator, start_at, stateless
from popcd.kernels.gibbs import sweep, sweeps
from popcd.particles import Particles, leave_one_out
from popcd.rbm import RBM, softplus_sum

_BLOCK = 4096  # proposals of a mixture that are in memory together


def single_log_weights(rbm: RBM, visible: Array, hidden: Array) -> Array:
    """`log p~(v) - log p(v | h)`: the proposal is the conditional that drew v.

    With x = v'W + c and y = Wh + b it is `sum_j softplus(x_j) + sum_i softplus(y_i) - v'Wh`.
    """
    products = visible @ rbm.weights
    logits = products + rbm.hidden_bias[None, :]
    return softplus_sum(logits) + softplus_sum(rbm.visible_logits(hidden)) - jnp.sum(products * hidden, axis=-1)


def joint_log_weights(rbm: RBM, start: Array, hidden: Array) -> Array:
    """`log p~(h) - log p(h | v')`: the proposal draws the pair (h, v) from the chain's last visible state v'."""
    mirror = rbm.mirror()
    return -mirror.free_energy(hidden) - mirror.log_prob_visible(hidden, start)


def mixture_log_weights(rbm: RBM, visible: Array, hidden: Array, size: int) -> Array:
    """`log p~(v) - log mean_l p(v | h_l)` over groups of `size` hidden samples that stand together."""
    logits = rbm.visible_logits(hidden).reshape(-1, size, rbm.n_visible)
    grouped = visible.reshape(-1, size, rbm.n_visible)
    log_mixture = _log_sums(grouped, logits) - jnp.log(size)
    return -rbm.free_energy(visible) - log_mixture.reshape(-1)


def _log_sums(visible: Array, logits: Array) -> Array:
    """`log sum_l p(v | y_l)` of every v in a group over the logits y_l of its group; groups x size.

    A group's products are size x size numbers: beyond a block of logits they are summed block by block.
    """

    def log_sum(block: Array, log_norm: Array) -> Array:
        return jax.nn.logsumexp(jnp.einsum("gvi,ghi->gvh", visible, block) - log_norm[:, None, :], axis=-1)

    log_norms = softplus_sum(logits)
    groups, size, n_visible = logits.shape
    if size <= _BLOCK:
        return log_sum(logits, log_norms)
    n_blocks, short = -(-size // _BLOCK), -size % _BLOCK
    padded = jnp.pad(logits, ((0, 0), (0, short), (0, 0))).reshape(groups, n_blocks, _BLOCK, n_visible)
    norms = jnp.pad(log_norms, ((0, 0), (0, short)), constant_values=jnp.inf).reshape(groups, n_blocks, _BLOCK)

    def add(total: Array, block: tuple[Array, Array]) -> tuple[Array, None]:
        return jnp.logaddexp(total, log_sum(*block)), None

    nothing = jnp.full((groups, size), -jnp.inf, logits.dtype)
    return jax.lax.scan(add, nothing, (padded.swapaxes(0, 1), norms.swapaxes(0, 1)))[0]


def pop_cd(
    k: int = 1,
    normalizer: str = "self",
    proposal: str = "single",
    mixture_size: int | None = None,
    n_particles: int | None = None,
) -> Estimator:
    """pop-CD-k.

    Parameters
    ----------
    k : Gibbs sweeps per update, the last of which is the proposal.
    normalizer : "self" divides by the sum of all weights; "leave-one-out" divides each by the others' (equation 9):
        right direction, but its length can be off by orders of magnitude.
    proposal : "single" is `p(v | h_i)`, the paper's choice; "joint" is `p(h | v_i') p(v | h)`; "mixture" is the mean
        of `p(v | h_l)` over `mixture_size` chains, at the price of one more matrix product.
    mixture_size : chains per mixture, a divisor of the number of particles; None takes all of them.
    n_particles : size of the population; None takes the batch. More start at further training rows.

    Examples
    --------
    >>> import jax, popcd
    >>> batch = popcd.datasets.load("bars-and-stripes").train
    >>> _, particles = popcd.pop_cd(n_particles=1000).step(jax.random.key(0), None, popcd.RBM.create(16, 4), batch)
    >>> particles.visible.shape, bool(1 <= particles.ess <= 1000)
    ((1000, 16), True)
    """
    one_of("normalizer", normalizer, ("self", "leave-one-out"))
    one_of("proposal", proposal, ("single", "joint", "mixture"))
    if n_particles is not None:
        n_particles = positive_int("n_particles", n_particles)
    if mixture_size is not None:
        mixture_size = positive_int("mixture_size", mixture_size)
        if proposal != "mixture":
            raise ValueError(f'mixture_size={mixture_size} needs proposal="mixture", got proposal={proposal!r}')
    return _pop_cd(positive_int("k", k), normalizer, proposal, mixture_size, n_particles)


@functools.cache
def _pop_cd(k: int, normalizer: str, proposal: str, mixture_size: int | None, n_particles: int | None) -> Estimator:
    def step(key: Array, state: None, rbm: RBM, batch: ArrayLike) -> tuple[None, Particles]:
        start = start_at(rbm, batch, n_particles)
        _check_population(len(start), mixture_size, normalizer)
        start = sweeps(key, start, rbm, k - 1)
        visible, hidden = sweep(key, start, rbm, k - 1)
        if proposal == "single":
            log_weights = single_log_weights(rbm, visible, hidden)
        elif proposal == "joint":
            log_weights = joint_log_weights(rbm, start, hidden)
        else:
            log_weights = mixture_log_weights(rbm, visible, hidden, mixture_size or len(start))
        log_normalizer = leave_one_out(log_weights) if normalizer == "leave-one-out" else None
        return None, Particles(visible, log_weights, log_normalizer)

    settings = {"normalizer": normalizer, "proposal": proposal, "mixture_size": mixture_size, "n_particles": n_particles}
    return Estimator("pop-cd", (("k", k), *settings.items()), stateless, step, n_starts=n_particles)


def _check_population(n: int, mixture_size: int | None, normalizer: str) -> None:
    if mixture_size is not None and n % mixture_size:
        raise ValueError(f"mixture_size must divide the number of particles, got {mixture_size} for {n} particles")
    if normalizer == "leave-one-out" and n < 2:
        raise ValueError(f"the leave-one-out normaliser needs at least 2 particles, got {n}")
