import jax.numpy as jnp
import numpy as np
import pytest

from popcd.particles import Particles, leave_one_out


def particles(log_weights, **kwargs):
    return Particles(jnp.zeros((len(log_weights), 2)), jnp.asarray(log_weights, jnp.float32), **kwargs)


def test_weights_ess_and_largest_weight():
    uniform = particles(np.full(8, 700.0))
    np.testing.assert_allclose(uniform.weights, 1 / 8)
    np.testing.assert_allclose([uniform.ess, uniform.largest_weight], [8, 1 / 8])
    one = particles([0.0, -1000.0, -np.inf])
    np.testing.assert_allclose([one.ess, one.largest_weight, one.weights.sum()], [1, 1, 1])


@pytest.mark.parametrize("shift", [0.0, 500.0, -500.0])
def test_leave_one_out_is_equation_9(shift):
    w = np.array([0.5, 3.0, 1e-12, 4.0, 0.25])
    expected = [len(w) / (len(w) - 1) * (w.sum() - w[i]) for i in range(len(w))]
    np.testing.assert_allclose(
        leave_one_out(jnp.asarray(np.log(w) + shift, jnp.float32)) - shift, np.log(expected), rtol=1e-4, atol=1e-4
    )


def test_leave_one_out_keeps_its_digits_where_one_particle_holds_all_the_weight():
    found = leave_one_out(jnp.array([60.0, 0.0, 0.0]))
    np.testing.assert_allclose(found, np.log(1.5) + np.array([np.log(2), 60, 60]), rtol=1e-6)
    loo = particles([60.0, 0.0, 0.0], log_normalizer=found)
    np.testing.assert_allclose(loo.weights[0], np.exp(60) / 3, rtol=1e-4)
