"""Transition kernels that leave the machine's distribution as it is: `step(key, state, rbm) -> (state, info)`."""

from popcd.kernels.gibbs import gibbs, sweep
from popcd.kernels.kernel import Kernel
from popcd.kernels.tempering import tempering, uniform_ladder

__all__ = ["Kernel", "gibbs", "sweep", "tempering", "uniform_ladder"]
