"""Small machines that can be enumerated. Asymmetric on purpose: a swapped axis or a missing bias must show."""

import numpy as np

import popcd


def machine(n_visible, n_hidden, scale=1.2):
    """Couplings and biases of both signs, strong enough that chains mix visibly slowly; NumPy float64 parameters."""
    rng = np.random.default_rng([n_visible, n_hidden])
    return popcd.RBM(
        weights=scale * rng.normal(size=(n_visible, n_hidden)),
        visible_bias=0.5 * rng.normal(size=n_visible),
        hidden_bias=0.5 * rng.normal(size=n_hidden),
    )


WIDE = machine(5, 3)
TALL = machine(3, 5, scale=2.0)
SHAPES = [WIDE, TALL]
SQUARE = machine(4, 4)  # unit i of one side has the number of unit i of the other: random bits that both share would show
MILD = [machine(5, 3, scale=0.7), machine(3, 5, scale=0.7)]  # importance weights stay below about ten


def weaker(rbm):
    """The broken twin of a machine: couplings 10 % too weak."""
    return popcd.RBM(0.9 * rbm.weights, rbm.visible_bias, rbm.hidden_bias)
