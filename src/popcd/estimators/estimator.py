"""What an estimator is: a name, its settings, and a pair of functions."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from popcd.particles import Particles
from popcd.rbm import RBM


@dataclass(frozen=True)
class Estimator:
    """Where the negative particles and their log-weights come from.

    The factories build one object for each choice of settings, so that equal settings share one compiled program.

    name, settings : what it is, as words; `str()` gives a label.
    init : `init(key, rbm, batch) -> state`, before the first step.
    step : `step(key, state, rbm, batch) -> (state, Particles)`. Chains that start at data start at the rows of `batch`.
    n_starts : how many chains start at data, when that is not the size of the batch; `popcd.train` then hands over so
        many training rows, those of the batch first.
    sampled : whether the particles are draws, whose effective sample size matters; False where they are all states.
    """

    name: str
    settings: tuple[tuple[str, Any], ...]
    init: Callable[[Array, RBM, ArrayLike], Any] = field(repr=False)
    step: Callable[[Array, Any, RBM, ArrayLike], tuple[Any, Particles]] = field(repr=False)
    n_starts: int | None = None
    sampled: bool = True

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Estimators of popcd are built again from their settings in other processes, because their functions do not travel."""
        if _rebuilt(self.name, self.settings) is self:
            return _rebuilt, (self.name, self.settings)
        return Estimator, tuple(getattr(self, field.name) for field in fields(self))

    def __copy__(self) -> "Estimator":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "Estimator":
        return self

    def __str__(self) -> str:
        words = [f"{key}={value}" for key, value in self.settings if value is not None]
        return f"{self.name}({', '.join(words)})"


def _rebuilt(name: str, settings: tuple[tuple[str, Any], ...]) -> Estimator | None:
    from popcd.estimators import BUILDERS

    given = {key: value for key, value in settings if key != "n_temperatures" or "betas" not in dict(settings)}
    return BUILDERS[name](**given) if name in BUILDERS else None


def stateless(key: Array, rbm: RBM, batch: ArrayLike) -> None:
    """The `init` of an estimator that carries nothing from step to step."""
    return None


def start_at(rbm: RBM, batch: ArrayLike, n: int | None) -> Array:
    """The first `n` rows of the batch as starts of chains, from its beginning again where it has fewer; None is all."""
    # NumPy converts its own arrays: nothing to compile
    rows = jax.device_put(batch.astype(rbm.dtype)) if isinstance(batch, np.ndarray) else jnp.asarray(batch, rbm.dtype)
    return rows if n is None or n == len(rows) else jnp.resize(rows, (n, rows.shape[1]))
