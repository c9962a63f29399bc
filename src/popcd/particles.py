"""Weighted particles: what every estimator hands to the one gradient."""

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
from jax import Array


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Particles:
    """Negative particles, `E_model[f] ~ sum_i weights_i f(visible_i)`; a frozen pytree.

    Parameters
    ----------
    visible : particles x visible.
    log_weights : one number per particle, up to a common constant.
    log_normalizer : what the weights are divided by, in logs; None divides by their sum.
    hidden : particles x hidden when the particles are pairs with a given hidden state; None when the hidden units
        are integrated out.
    info : what the estimator's kernel knows, such as swap rates.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> particles = Particles(jnp.eye(3), jnp.log(jnp.array([1.0, 1.0, 2.0])))
    >>> particles.weights.round(6).tolist(), round(float(particles.ess), 4)
    ([0.25, 0.25, 0.5], 2.6667)
    """

    visible: Array
    log_weights: Array
    log_normalizer: Array | None = None
    hidden: Array | None = None
    info: dict[str, Array] = field(default_factory=dict)

    @property
    def weights(self) -> Array:
        """The factor of each particle in the sum."""
        if self.log_normalizer is None:
            return jax.nn.softmax(self.log_weights)
        return jnp.exp(self.log_weights - self.log_normalizer)

    @property
    def ess(self) -> Array:
        """Effective sample size of Kong (1992), `(sum w)^2 / sum w^2`: from 1 to the number of particles."""
        return 1 / jnp.sum(jnp.square(jax.nn.softmax(self.log_weights)))

    @property
    def largest_weight(self) -> Array:
        """The share of the heaviest particle in the total weight, `1 / sum_i (w_i / max w)`."""
        return 1 / jnp.sum(jnp.exp(self.log_weights - jnp.max(self.log_weights)))


def leave_one_out(log_weights: Array) -> Array:
    """`log_normalizer` of equation 9 of the paper: `N/(N-1) sum_{j != i} w_j` for particle i, in logs.

    >>> import jax.numpy as jnp
    >>> jnp.exp(leave_one_out(jnp.log(jnp.array([1.0, 2.0, 3.0])))).round(4).tolist()
    [7.5, 6.0, 4.5]
    """
    n = log_weights.shape[0]
    top = jnp.argmax(log_weights)
    # The heaviest particle is left out by a sum of its own: log(1 - share) has no digits left where its share is near 1.
    without_top = jax.nn.logsumexp(jnp.where(jnp.arange(n) == top, -jnp.inf, log_weights))
    share = jax.nn.softmax(log_weights)
    others = jax.nn.logsumexp(log_weights) + jnp.log1p(-jnp.minimum(share, 0.5))
    return jnp.log(n / (n - 1)) + jnp.where(jnp.arange(n) == top, without_top, others)
