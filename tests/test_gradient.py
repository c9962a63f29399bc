import jax
import jax.numpy as jnp
import numpy as np
import pytest

import popcd
import reference
from machines import SHAPES, WIDE
from popcd.gradient import Offsets, from_centred, gradient, to_centred

both = pytest.mark.parametrize("rbm", SHAPES, ids=["5x3", "3x5"])
pytestmark = pytest.mark.usefixtures("float64")


def some_data(rbm, rows=7):
    return np.random.default_rng(1).integers(0, 2, (rows, rbm.n_visible))


def all_particles(rbm, probabilities):
    return popcd.Particles(jnp.asarray(reference.states(rbm.n_visible)), jnp.log(jnp.asarray(probabilities)))


@both
def test_all_states_as_particles_give_the_derivative_of_the_exact_log_likelihood(rbm):
    data = some_data(rbm)

    def log_likelihood(rbm):
        log_p = -rbm.free_energy(reference.states(rbm.n_visible))
        return jnp.mean(-rbm.free_energy(data)) - jax.nn.logsumexp(log_p)

    by_autodiff = jax.grad(log_likelihood)(rbm)
    ours = gradient(rbm, data, all_particles(rbm, reference.p_visible(rbm)))
    np.testing.assert_allclose(reference.flat(ours), reference.flat(by_autodiff), rtol=1e-10, atol=1e-14)


@both
@pytest.mark.parametrize("k", [1, 2, 10])
def test_the_gradient_of_a_law_of_particles_is_its_expectation(rbm, k):
    data = some_data(rbm)
    law = np.linalg.matrix_power(reference.gibbs_matrix(rbm), k)[reference.index(data)].mean(axis=0)
    ours = gradient(rbm, data, all_particles(rbm, law))
    np.testing.assert_allclose(reference.flat(ours), reference.expected_gradient(rbm, data, law), rtol=1e-10, atol=1e-14)


def test_weights_that_do_not_sum_to_one_scale_the_negative_phase_only():
    data, p = some_data(WIDE), reference.p_visible(WIDE)
    half = popcd.Particles(jnp.asarray(reference.states(5)), jnp.log(p), log_normalizer=jnp.full(32, jnp.log(2.0)))
    expected = reference.expected_gradient(WIDE, data, p / 2)
    np.testing.assert_allclose(reference.flat(gradient(WIDE, data, half)), expected, rtol=1e-10, atol=1e-14)


def test_a_centred_update_is_that_of_the_centred_machine():
    """Melchior et al. (2016), written out: parameters W, b~, c~ of the energy -(v-mu)'W(h-lam) - v'b~ - h'c~."""
    w, b, c = reference.parameters(WIDE)
    data, p, v = some_data(WIDE), reference.p_visible(WIDE), reference.states(5)
    mu, lam, rate = np.linspace(0.1, 0.9, 5), np.array([0.3, 0.5, 0.8]), 0.07

    def hidden_mean(rows):
        return 1 / (1 + np.exp(-(rows @ w + c)))

    by_data = ((data - mu)[:, :, None] * (hidden_mean(data) - lam)[:, None, :]).mean(axis=0)
    by_model = np.einsum("s,si,sj->ij", p, v - mu, hidden_mean(v) - lam)
    new_w = w + rate * (by_data - by_model)
    new_b_tilde = b + w @ lam + rate * (data.mean(axis=0) - p @ v)
    new_c_tilde = c + mu @ w + rate * (hidden_mean(data).mean(axis=0) - p @ hidden_mean(v))
    expected = popcd.RBM(new_w, new_b_tilde - new_w @ lam, new_c_tilde - mu @ new_w)

    offsets = Offsets(jnp.asarray(mu), jnp.asarray(lam))
    uphill = to_centred(gradient(WIDE, data, all_particles(WIDE, p)), offsets)
    change = from_centred(jax.tree.map(lambda g: rate * g, uphill), offsets)
    ours = jax.tree.map(jnp.add, WIDE, change)
    np.testing.assert_allclose(reference.flat(ours), reference.flat(expected), rtol=1e-10)


def test_centring_with_zero_offsets_changes_nothing():
    plain = gradient(WIDE, some_data(WIDE), all_particles(WIDE, reference.p_visible(WIDE)))
    none = Offsets(jnp.zeros(5), jnp.zeros(3))
    np.testing.assert_array_equal(reference.flat(from_centred(to_centred(plain, none), none)), reference.flat(plain))
