"""The binary Restricted Boltzmann Machine: three arrays and the formulas that follow from its energy."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from popcd.checks import column_means, positive_int, real_array, training_matrix
from popcd.prng import host_generator

_FEW, _FEWEST_FACTORS, _MOST_FACTORS = 96, 4, 16  # up to so many factors share one logarithm; of more, so many share each
_LANES = 8  # numbers that a processor computes with together: with as many groups it leaves none over
_MEAN_MARGIN = 1e-3  # data means are kept this far from 0 and 1, so that their logits stay within about 7


def softplus(x: Array) -> Array:
    """log(1 + exp(x)) without overflow."""
    return jnp.maximum(x, 0) + jnp.log1p(jnp.exp(-jnp.abs(x)))


@jax.custom_jvp
def softplus_sum(x: Array) -> Array:
    """`sum_i log(1 + exp(x_i))` over the last axis; factors share logarithms.

    Each factor `1 + exp(-|x_i|)` is at most 2, so a product of up to 96 is a float. One that is rounded to 1 adds nothing
    where it should add less than the rounding error of 1: the error is absolute, not relative.

    >>> print((softplus_sum(jnp.zeros(1024)) / 1024).round(5))  # log 2
    0.69315
    """
    n, larger = x.shape[-1], jnp.maximum(x, 0)
    if n <= _FEW:
        # -|x| in other words: XLA would share the exponentials with a draw, and to keep so few costs more than to repeat them
        return jnp.sum(larger, axis=-1) + jnp.log(jnp.prod(1 + jnp.exp(jnp.minimum(x, -x)), axis=-1))
    divisors = [d for d in range(1, _MOST_FACTORS + 1) if n % d == 0]  # filling groups up costs more than it saves
    factors = max(divisors, key=lambda d: (d >= _MOST_FACTORS - 4 and n // d % _LANES == 0, d))
    if factors < _FEWEST_FACTORS:
        return jnp.sum(softplus(x), axis=-1)
    groups, product = (*x.shape[:-1], factors, -1), 1 + jnp.exp(-jnp.abs(x))
    # Both in one reduction, so that the numbers are read once
    larger, product = jax.lax.reduce(
        (larger.reshape(groups), product.reshape(groups)),
        (jnp.zeros((), x.dtype), jnp.ones((), x.dtype)),
        lambda one, other: (one[0] + other[0], one[1] * other[1]),
        (x.ndim - 1,),
    )
    return jnp.sum(larger + jnp.log(product), axis=-1)


@softplus_sum.defjvp
def _softplus_sum_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (x,), (change,) = primals, tangents
    return softplus_sum(x), jnp.sum(jax.nn.sigmoid(x) * change, axis=-1)


@dataclass(frozen=True, eq=False)
class RBM:
    """A binary RBM, `p(v, h) = exp(v'Wh + v'b + h'c) / Z`; a frozen pytree.

    Parameters
    ----------
    weights : visible x hidden, the W of the energy.
    visible_bias : one number per visible unit, b.
    hidden_bias : one number per hidden unit, c.

    NumPy arrays are copied and keep their precision; computation is in float32 unless JAX's 64-bit mode is on. All methods
    take states with the batch axis first and the units last, as any numeric dtype.

    References
    ----------
    Smolensky (1986), Information processing in dynamical systems: foundations of harmony theory.

    Examples
    --------
    >>> import numpy as np
    >>> rbm = RBM(weights=np.zeros((3, 2)), visible_bias=np.zeros(3), hidden_bias=np.zeros(2))
    >>> rbm.n_visible, rbm.n_hidden
    (3, 2)
    >>> print(rbm.free_energy(np.ones((1, 3))))  # -2 log 2
    [-1.3862944]
    """

    weights: Any
    visible_bias: Any
    hidden_bias: Any

    def __post_init__(self) -> None:
        ranks = {"weights": 2, "visible_bias": 1, "hidden_bias": 1}
        arrays = {name: real_array(name, getattr(self, name), ndim) for name, ndim in ranks.items()}
        widest = np.result_type(*(array.dtype for array in arrays.values()))
        for name, array in arrays.items():
            object.__setattr__(self, name, array if array.dtype == widest else np.asarray(array, widest))
        expected = (len(self.visible_bias), len(self.hidden_bias))
        if self.weights.shape != expected:
            raise ValueError(
                f"weights must be visible x hidden = {expected} to fit biases of these lengths, got {self.weights.shape}"
            )

    @classmethod
    def create(cls, n_visible: int, n_hidden: int, seed: int = 0, data: Any = None) -> "RBM":
        """A machine to start training from.

        Without data, every parameter, biases included, is uniform in (-0.1, 0.1), as in the paper's experiments. With
        data, the weights are normal with standard deviation 0.01, the visible biases are the logits of the data means
        (kept 0.001 away from 0 and 1) and the hidden biases are zero (Hinton 2012, A practical guide to training RBMs).

        >>> RBM.create(n_visible=16, n_hidden=8, seed=0).weights.shape
        (16, 8)
        >>> import numpy as np
        >>> print(RBM.create(2, 3, data=np.array([[0, 1], [1, 1], [0, 1], [0, 1]])).visible_bias.round(2))
        [-1.1   6.91]
        """
        shape = positive_int("n_visible", n_visible), positive_int("n_hidden", n_hidden)
        if data is not None:
            return start_from_means(column_means("data", training_matrix("data", data, n_visible)), n_hidden, seed)
        chance = host_generator(seed, "create")
        return cls(*(chance.uniform(-0.1, 0.1, s).astype(np.float32) for s in (shape, shape[:1], shape[1:])))

    @property
    def n_visible(self) -> int:
        return self.weights.shape[0]

    @property
    def n_hidden(self) -> int:
        return self.weights.shape[1]

    @property
    def dtype(self) -> Any:
        """The dtype JAX computes in: that of the weights, float32 at most unless 64-bit mode is on."""
        return jnp.result_type(self.weights)

    def hidden_logits(self, visible: ArrayLike) -> Array:
        """`v'W + c`: the logits of p(h = 1 | v); (..., visible) to (..., hidden).

        >>> RBM.create(3, 2).hidden_logits(np.ones((5, 3))).shape
        (5, 2)
        """
        return _affine(visible, self.weights, self.hidden_bias, self.dtype)

    def visible_logits(self, hidden: ArrayLike) -> Array:
        """`Wh + b`: the logits of p(v = 1 | h); (..., hidden) to (..., visible).

        >>> RBM.create(3, 2).visible_logits(np.ones((5, 2))).shape
        (5, 3)
        """
        return _affine(hidden, jnp.transpose(self.weights), self.visible_bias, self.dtype)

    def energy(self, visible: ArrayLike, hidden: ArrayLike) -> Array:
        """`E(v, h) = -v'Wh - v'b - h'c`; (..., visible) and (..., hidden) to (...).

        >>> print(RBM(np.ones((2, 2)), np.ones(2), np.ones(2)).energy(np.array([1, 0]), np.array([1, 1])))
        -5.0
        """
        visible, hidden = jnp.asarray(visible, self.dtype), jnp.asarray(hidden, self.dtype)
        return -jnp.sum(visible * self.visible_logits(hidden), axis=-1) - _dot(hidden, self.hidden_bias)

    def free_energy(self, visible: ArrayLike) -> Array:
        """`F(v) = -log sum_h exp(-E(v, h)) = -v'b - sum_j softplus(c_j + (v'W)_j)`; (..., visible) to (...).

        >>> print(RBM(np.zeros((2, 1)), np.zeros(2), np.zeros(1)).free_energy(np.array([1, 0])))  # -log 2
        -0.6931472
        """
        visible = jnp.asarray(visible, self.dtype)
        return -_dot(visible, self.visible_bias) - softplus_sum(self.hidden_logits(visible))

    def log_prob_visible(self, visible: ArrayLike, hidden: ArrayLike) -> Array:
        """`log p(v | h) = sum_i v_i y_i - softplus(y_i)`, y = Wh + b; (..., visible) and (..., hidden) to (...).

        >>> print(RBM(np.zeros((1, 1)), np.zeros(1), np.zeros(1)).log_prob_visible(np.array([1]), np.array([0])))
        -0.6931472
        """
        logits = self.visible_logits(hidden)
        return jnp.sum(jnp.asarray(visible, self.dtype) * logits, axis=-1) - softplus_sum(logits)

    def mirror(self) -> "RBM":
        """The same distribution with the two sides swapped: what holds for visible units serves hidden ones.

        >>> RBM.create(3, 2).mirror().weights.shape
        (2, 3)
        """
        return unchecked(self.weights.T, self.hidden_bias, self.visible_bias)

    def anneal(self, beta: ArrayLike, base_bias: ArrayLike | None = None) -> "RBM":
        """The machine between a base-rate model (beta = 0) and this one (beta = 1).

        `log p~_beta(v, h) = (1 - beta) v'b0 - beta E(v, h)`: an RBM again, with weights `beta W` and biases
        `(1 - beta) b0 + beta b` and `beta c`. The base-rate model has independent visible units with
        logits `base_bias` = b0 (zero, the uniform distribution, by default) and fair hidden units.

        >>> rbm = RBM.create(3, 2)
        >>> float(abs(rbm.anneal(0.0).weights).max())
        0.0
        """
        beta = jnp.asarray(beta, self.dtype)
        base = jnp.zeros_like(self.visible_bias) if base_bias is None else jnp.asarray(base_bias, self.dtype)
        return unchecked(beta * self.weights, (1 - beta) * base + beta * self.visible_bias, beta * self.hidden_bias)


def start_from_means(means: np.ndarray, n_hidden: int, seed: int) -> RBM:
    """The data-driven start of `RBM.create`, from the means of the visible units."""
    weights = host_generator(seed, "create").normal(0, 0.01, (len(means), n_hidden))
    arrays = (weights, mean_logits(means, _MEAN_MARGIN), np.zeros(n_hidden))
    return RBM(*(array.astype(np.float32) for array in arrays))


def mean_logits(means: np.ndarray, margin: float) -> np.ndarray:
    """The logits of means of units, which are kept `margin` away from 0 and 1 so that no unit is frozen."""
    kept = means.clip(margin, 1 - margin)
    return np.log(kept) - np.log1p(-kept)


def _affine(states: ArrayLike, matrix: Any, bias: Any, dtype: Any) -> Array:
    product = jnp.asarray(states, dtype) @ matrix
    return product + jnp.expand_dims(bias, tuple(range(product.ndim - 1)))


def _dot(states: Array, bias: Any) -> Array:
    """`states @ bias` as a sum that fuses with its neighbours instead of a matrix product of one column."""
    return jnp.sum(states * jnp.expand_dims(bias, tuple(range(states.ndim - 1))), axis=-1)


def unchecked(weights: Any, visible_bias: Any, hidden_bias: Any) -> RBM:
    """An RBM-shaped triple without checks: gradients, updates, and what transformations put into a pytree."""
    rbm = object.__new__(RBM)
    object.__setattr__(rbm, "weights", weights)
    object.__setattr__(rbm, "visible_bias", visible_bias)
    object.__setattr__(rbm, "hidden_bias", hidden_bias)
    return rbm


_FIELDS = ("weights", "visible_bias", "hidden_bias")
jax.tree_util.register_pytree_with_keys(
    RBM,
    lambda rbm: (tuple((jax.tree_util.GetAttrKey(name), getattr(rbm, name)) for name in _FIELDS), None),
    lambda _, children: unchecked(*children),
    lambda rbm: ((rbm.weights, rbm.visible_bias, rbm.hidden_bias), None),
)
