import jax
import jax.numpy as jnp
import numpy as np
import pytest

import popcd
import reference
from machines import SHAPES, WIDE
from popcd.rbm import softplus_sum

both = pytest.mark.parametrize("rbm", SHAPES, ids=["5x3", "3x5"])
pytestmark = pytest.mark.usefixtures("float64")


@both
def test_energy_is_the_log_of_the_joint_table(rbm):
    v, h = reference.states(rbm.n_visible), reference.states(rbm.n_hidden)
    pairs = np.repeat(v, len(h), axis=0), np.tile(h, (len(v), 1))
    expected = np.log(reference.table(rbm))
    np.testing.assert_allclose(-rbm.energy(*pairs).reshape(expected.shape), expected, rtol=1e-10)


@both
def test_free_energies_are_the_logs_of_its_sums(rbm):
    joint = reference.table(rbm)
    v, h = reference.states(rbm.n_visible), reference.states(rbm.n_hidden)
    np.testing.assert_allclose(-rbm.free_energy(v), np.log(joint.sum(axis=1)), rtol=1e-10)
    np.testing.assert_allclose(-rbm.mirror().free_energy(h), np.log(joint.sum(axis=0)), rtol=1e-10)


@both
def test_conditionals_come_from_the_table(rbm):
    joint = reference.table(rbm)
    v, h = reference.states(rbm.n_visible), reference.states(rbm.n_hidden)
    for j, row in enumerate(h):
        given = np.log(joint[:, j] / joint[:, j].sum())
        np.testing.assert_allclose(rbm.log_prob_visible(v, np.tile(row, (len(v), 1))), given, rtol=1e-10)
    for i, row in enumerate(v):
        mean_hidden = joint[i] / joint[i].sum() @ h
        np.testing.assert_allclose(jax.nn.sigmoid(rbm.hidden_logits(row)), mean_hidden, rtol=1e-10)


@both
@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
def test_anneal_interpolates_the_log_of_the_joint_table(rbm, beta):
    base = np.linspace(-1, 2, rbm.n_visible)
    v = reference.states(rbm.n_visible)
    expected = (1 - beta) * (v @ base)[:, None] + beta * np.log(reference.table(rbm))
    np.testing.assert_allclose(np.log(reference.table(rbm.anneal(beta, base))), expected, rtol=1e-10, atol=1e-12)
    uniform = beta * np.log(reference.table(rbm))
    np.testing.assert_allclose(np.log(reference.table(rbm.anneal(beta))), uniform, rtol=1e-10, atol=1e-12)


def test_states_of_any_rank_and_dtype():
    v = reference.states(5).reshape(4, 8, 5)
    for dtype in (np.uint8, bool, np.float32):
        np.testing.assert_array_equal(WIDE.free_energy(v.astype(dtype)), WIDE.free_energy(v))
    assert WIDE.hidden_logits(v).shape == (4, 8, 3)
    assert WIDE.free_energy(v[0, 0]).shape == ()


def test_softplus_survives_huge_logits():
    huge = popcd.RBM(weights=np.full((2, 1), 1000.0), visible_bias=np.zeros(2), hidden_bias=np.zeros(1))
    np.testing.assert_allclose(huge.free_energy(np.array([[0, 0], [1, 1]])), [-np.log(2), -2000], rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 95, 96, 97, 100, 128, 784, 1000])  # alone, few, the most of few, a prime, and many
def test_sums_of_softplus_are_exact_to_rounding(n, dtype):
    x = (30 * np.random.default_rng(n).standard_normal((3, 5, n))).astype(dtype)
    x[0, 0], x[0, 1], x[0, 2] = 1000, -1000, 0
    true = np.logaddexp(0, x.astype(np.longdouble)).sum(axis=-1)
    # each of n factors is off by a few roundings, and so is each addition, of 96 terms or of a quarter of them at most
    rounding = np.finfo(dtype).eps * (4 * n + max(96, n / 4) * true)
    assert (abs(np.asarray(softplus_sum(x)) - true) <= rounding).all()


@pytest.mark.parametrize("n", [5, 784])
def test_the_derivative_of_a_sum_of_softplus_is_the_sigmoid(n):
    x = 3 * np.random.default_rng(n).standard_normal((2, n))
    np.testing.assert_allclose(jax.vmap(jax.grad(softplus_sum))(x), jax.nn.sigmoid(x), rtol=1e-12)


def test_paper_start_is_uniform_with_biases_included():
    rbm = popcd.RBM.create(300, 200, seed=3)
    for leaf in jax.tree.leaves(rbm):
        assert -0.1 < leaf.min() < -0.09
        assert 0.09 < leaf.max() < 0.1
    other = popcd.RBM.create(300, 200, seed=4)
    assert not jnp.array_equal(rbm.weights, other.weights)


def test_data_driven_start_models_the_means():
    data = np.random.default_rng(0).random((1000, 4)) < [0.1, 0.5, 0.9, 0.0]
    rbm = popcd.RBM.create(4, 3000, seed=0, data=data)
    means = data.mean(axis=0)
    np.testing.assert_allclose(jax.nn.sigmoid(rbm.visible_bias[:3]), means[:3], rtol=1e-5)
    np.testing.assert_allclose(jax.nn.sigmoid(rbm.visible_bias[3]), 0.001, rtol=1e-5)
    assert not np.any(rbm.hidden_bias)
    assert 0.009 < rbm.weights.std() < 0.011


def test_parameters_are_copied_and_keep_their_precision():
    weights = np.full((2, 1), 1 / 3)
    rbm = popcd.RBM(weights, np.zeros(2), np.zeros(1))
    weights[0, 0] = 7
    assert rbm.weights[0, 0] == 1 / 3
    with pytest.raises(ValueError, match="read-only"):
        rbm.weights[0, 0] = 7


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"weights": np.zeros((3, 2))}, ValueError, r"visible x hidden = \(2, 3\).*got \(3, 2\)"),
        ({"weights": np.zeros(6)}, ValueError, r"weights must have 2 .*got shape \(6,\)"),
        ({"weights": np.full((2, 3), np.nan)}, ValueError, r"weights must be finite, got nan at index \(0, 0\) \(6 in all\)"),
        ({"hidden_bias": np.array([0, np.inf, 0])}, ValueError, r"hidden_bias must be finite, got inf at index \(1,\)"),
        ({"visible_bias": np.array([object(), None])}, TypeError, "visible_bias must hold real numbers.*object"),
        ({"visible_bias": np.array([1j, 0])}, TypeError, "visible_bias must hold real numbers.*complex"),
        ({"visible_bias": np.zeros(0)}, ValueError, "must not be empty"),
    ],
)
def test_bad_parameters_are_named(change, error, words):
    good = {"weights": np.zeros((2, 3)), "visible_bias": np.zeros(2), "hidden_bias": np.zeros(3)}
    with pytest.raises(error, match=words):
        popcd.RBM(**(good | change))


def test_mixed_precision_is_widened_and_integers_are_numbers():
    rbm = popcd.RBM(np.zeros((2, 1), np.float32), np.full(2, 0.1), jnp.arange(1))
    assert {leaf.dtype for leaf in jax.tree.leaves(rbm)} == {np.dtype(np.float64)}
    assert rbm.visible_bias[0] == 0.1
    assert rbm.mirror().weights.dtype == np.float64
    with pytest.raises(TypeError, match="float32, float64 or int, got an array of dtype float16"):
        popcd.RBM(np.zeros((2, 1), np.float16), np.zeros(2), np.zeros(1))


def test_a_machine_can_be_built_inside_a_transformation():
    def free_energy(weights):
        return popcd.RBM(weights, jnp.zeros(2), jnp.zeros(3)).free_energy(jnp.ones(2))

    np.testing.assert_allclose(jax.jit(free_energy)(jnp.zeros((2, 3))), -3 * np.log(2), rtol=1e-12)
    with pytest.raises(ValueError, match="visible x hidden"):
        jax.jit(free_energy)(jnp.zeros((3, 2)))


@pytest.mark.parametrize("sizes", [(0, 3), (3, -1), (3, 2.5), (True, 2)])
def test_bad_sizes_are_refused(sizes):
    with pytest.raises((ValueError, TypeError), match="whole number of at least 1, got"):
        popcd.RBM.create(*sizes)


def test_create_checks_the_width_of_the_data():
    with pytest.raises(ValueError, match="data has 3 columns, but the machine has 4 visible units"):
        popcd.RBM.create(4, 2, data=np.eye(3))
