import functools
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import popcd
import reference
from machines import MILD, SHAPES, WIDE
from popcd.estimators.pop_cd import joint_log_weights, mixture_log_weights, single_log_weights
from popcd.gradient import gradient

both = pytest.mark.parametrize("rbm", SHAPES, ids=["5x3", "3x5"])


def step(estimator, batch, key):
    return jax.jit(estimator.step)(key, None, WIDE, batch)[1]


def log_conditional(joint, axis):
    return np.log(joint / joint.sum(axis=axis, keepdims=True))


@both
@pytest.mark.usefixtures("float64")
def test_single_weights_average_to_z_for_every_hidden_state(rbm):
    joint, v, h = reference.table(rbm), reference.states(rbm.n_visible), reference.states(rbm.n_hidden)
    visible_given_hidden = np.exp(log_conditional(joint, 0))
    for j, row in enumerate(h):
        weights = np.exp(single_log_weights(rbm, jnp.asarray(v), jnp.asarray(np.tile(row, (len(v), 1)))))
        np.testing.assert_allclose(visible_given_hidden[:, j] @ weights, joint.sum(), rtol=1e-10)


@both
@pytest.mark.usefixtures("float64")
def test_joint_weights_average_to_z_for_every_start(rbm):
    joint, v, h = reference.table(rbm), reference.states(rbm.n_visible), reference.states(rbm.n_hidden)
    hidden_given_visible = np.exp(log_conditional(joint, 1))
    for i, row in enumerate(v):
        weights = np.exp(joint_log_weights(rbm, jnp.asarray(np.tile(row, (len(h), 1))), jnp.asarray(h)))
        np.testing.assert_allclose(hidden_given_visible[i] @ weights, joint.sum(), rtol=1e-10)


@both
@pytest.mark.usefixtures("float64")
def test_mixture_weights_average_to_z_for_any_group_of_hidden_states(rbm):
    joint, v, h = reference.table(rbm), reference.states(rbm.n_visible), reference.states(rbm.n_hidden)
    visible_given_hidden = np.exp(log_conditional(joint, 0))
    for group in np.random.default_rng(0).integers(0, len(h), (20, 3)):
        mixture = visible_given_hidden[:, group].mean(axis=1)
        # a group of three draws: each visible state in turn stands in the first place of its group
        visible = np.stack([v, v, v], axis=1).reshape(-1, rbm.n_visible)
        hidden = np.tile(h[group], (len(v), 1))
        weights = np.exp(mixture_log_weights(rbm, jnp.asarray(visible), jnp.asarray(hidden), 3)).reshape(-1, 3)
        np.testing.assert_allclose(mixture @ weights, joint.sum(), rtol=1e-10)


@pytest.mark.usefixtures("float64")
def test_a_mixture_of_one_is_the_single_proposal():
    rng = np.random.default_rng(0)
    v, h = (jnp.asarray(rng.integers(0, 2, (20, n)), float) for n in (5, 3))
    np.testing.assert_allclose(mixture_log_weights(WIDE, v, h, 1), single_log_weights(WIDE, v, h), rtol=1e-10)


def test_the_chain_is_that_of_cd():
    """Same key, same particles: only the weights differ. One particle alone is CD itself."""
    batch, key = reference.states(5)[:9], jax.random.key(3)
    for k in (1, 2, 4):
        plain = step(popcd.cd(k), batch, key)
        for proposal in ("single", "joint", "mixture"):
            weighted = step(popcd.pop_cd(k, proposal=proposal), batch, key)
            np.testing.assert_array_equal(weighted.visible, plain.visible)
            assert float(weighted.ess) < 9
    alone = step(popcd.pop_cd(), batch[:1], key)
    assert alone.weights.tolist() == [1.0]


def test_leave_one_out_divides_by_the_others():
    batch, key = reference.states(5)[:9], jax.random.key(3)
    self_normalised = step(popcd.pop_cd(), batch, key)
    left_out = step(popcd.pop_cd(normalizer="leave-one-out"), batch, key)
    w = np.exp(np.asarray(self_normalised.log_weights, np.float64))
    np.testing.assert_allclose(left_out.weights, [8 / 9 * w[i] / (w.sum() - w[i]) for i in range(9)], rtol=1e-4)


def test_more_particles_than_rows_start_at_them_in_turn():
    batch, key = reference.states(5)[:8], jax.random.key(0)
    assert step(popcd.pop_cd(n_particles=20), batch, key).visible.shape == (20, 5)
    assert step(popcd.pop_cd(n_particles=3), batch, key).visible.shape == (3, 5)


@functools.partial(jax.jit, static_argnums=0)
def gradients(estimator, keys, data, rbm):
    def one(key):
        _, particles = estimator.step(key, None, rbm, data)
        return gradient(rbm, data, particles)

    return jax.vmap(one)(keys)


def bias_of_mean_gradient(estimator, data, rbm, seed, repeats):
    """Squared distance of the mean of many gradients from the exact one, less what their own noise adds, and its error."""

    found = gradients(estimator, jax.random.split(jax.random.key(seed), repeats), data, rbm)
    found = np.concatenate([np.asarray(leaf, np.float64).reshape(repeats, -1) for leaf in reference.parameters(found)], axis=1)
    exact = reference.expected_gradient(rbm, data, reference.p_visible(rbm))
    gap, noise = found.mean(axis=0) - exact, found.var(axis=0) / repeats
    # Var(gap^2) = 2 noise^2 + 4 gap^2 noise for each parameter; they move together, so their errors are added up
    error = np.sqrt(2 * noise**2 + 4 * gap**2 * noise).sum()
    return (gap**2 - noise).sum(), error


@pytest.mark.parametrize("proposal", ["single", "joint", "mixture"])
def test_the_bias_falls_with_the_population_for_pop_cd_and_stalls_for_cd(seed, proposal):
    """With 32 times the particles the squared bias falls 1024 times; 16 times must be beyond doubt, none for CD."""
    start, pop = np.array([[1, 0, 1, 0, 1]]), popcd.pop_cd(proposal=proposal)

    def bias(estimator, n, repeats):
        return bias_of_mean_gradient(estimator, np.tile(start, (n, 1)), MILD[0], seed, repeats)

    (cd_few, cd_few_error), (cd_many, cd_many_error) = bias(popcd.cd(), 4, 40_000), bias(popcd.cd(), 128, 10_000)
    (pop_few, pop_few_error), (pop_many, pop_many_error) = bias(pop, 4, 40_000), bias(pop, 128, 10_000)
    assert abs(cd_many - cd_few) < 6 * (cd_few_error + cd_many_error)
    assert pop_many + 6 * pop_many_error < (pop_few - 6 * pop_few_error) / 16
    assert pop_many + 6 * pop_many_error < (cd_many - 6 * cd_many_error) / 16


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"k": 0}, ValueError, "k must be a whole number of at least 1, got 0"),
        ({"k": 1.5}, TypeError, "k must be a whole number of at least 1, got 1.5"),
        ({"normalizer": "none"}, ValueError, "unknown normalizer 'none': expected one of self, leave-one-out"),
        ({"proposal": "all"}, ValueError, "unknown proposal 'all': expected one of single, joint, mixture"),
        ({"n_particles": 0}, ValueError, "n_particles must be a whole number of at least 1, got 0"),
        ({"mixture_size": 2}, ValueError, 'mixture_size=2 needs proposal="mixture"'),
        ({"mixture_size": -2, "proposal": "mixture"}, ValueError, "mixture_size must be a whole number"),
    ],
)
def test_bad_settings_are_refused(options, error, words):
    with pytest.raises(error, match=words):
        popcd.pop_cd(**options)


def test_populations_that_do_not_fit_are_refused():
    batch = reference.states(5)[:9]
    with pytest.raises(ValueError, match="mixture_size must divide the number of particles, got 2 for 9"):
        popcd.pop_cd(proposal="mixture", mixture_size=2).step(jax.random.key(0), None, WIDE, batch)
    with pytest.raises(ValueError, match="at least 2 particles, got 1"):
        popcd.pop_cd(normalizer="leave-one-out").step(jax.random.key(0), None, WIDE, batch[:1])


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(("size", "block"), [(12, 5), (12, 4), (6, 4), (4, 5)])
def test_mixtures_that_are_summed_in_blocks_have_the_same_weights(size, block, monkeypatch):
    rbm = SHAPES[0]
    visible, hidden = (np.random.default_rng(n).integers(0, 2, (12, n)).astype(float) for n in (rbm.n_visible, rbm.n_hidden))
    whole = mixture_log_weights(rbm, visible, hidden, size)
    monkeypatch.setattr(sys.modules["popcd.estimators.pop_cd"], "_BLOCK", block)
    np.testing.assert_allclose(mixture_log_weights(rbm, visible, hidden, size), whole, rtol=1e-12)
