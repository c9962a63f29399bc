"""What a kernel is."""

from collections.abc import Callable
from typing import Any, NamedTuple

from jax import Array

from popcd.rbm import RBM


class Kernel(NamedTuple):
    """A pair of functions.

    init : `init(visible) -> state`, the state that holds these visible configurations.
    step : `step(key, state, rbm) -> (state, info)`, one step that leaves the target distribution as it is; info is a
        dictionary of what a person wants to see.
    """

    init: Callable[[Array], Any]
    step: Callable[[Array, Any, RBM], tuple[Any, dict[str, Array]]]
