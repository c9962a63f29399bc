"""What every estimator must satisfy. Adding an estimator is adding a row to TABLE."""

import re
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import popcd
import reference
from laws import ALPHA, pearson, wald
from machines import MILD, SHAPES, WIDE, weaker
from popcd.gradient import Offsets, gradient
from popcd.prng import host_keys
from popcd.updates import Gathered, Plan, advance, init

CHAINS = 96_000


class Row(NamedTuple):
    """An estimator and its promise.

    "invariant": chains that start at the target give particles that follow it;
    "weighted": from any start, the mean of `w f(v) / Z` over groups of so many particles is the model's mean of f;
    "exact": the weights are the probabilities.
    """

    estimator: popcd.Estimator
    promise: str
    products: int  # matrix products in the program of one update; those in the loop over sweeps count once
    group: int = 1
    weights_sum_to_one: bool = True


TABLE = {
    "cd-1": Row(popcd.cd(1), "invariant", 4),
    "cd-3": Row(popcd.cd(3), "invariant", 5),
    "pcd-1": Row(popcd.pcd(1), "invariant", 5),
    "pcd-3": Row(popcd.pcd(3), "invariant", 5),
    "pt": Row(popcd.pt(4), "invariant", 5),
    "pt-ladder": Row(popcd.pt(betas=(0.2, 1.0)), "invariant", 5),
    "pop-cd-1": Row(popcd.pop_cd(1), "weighted", 4),
    "pop-cd-3": Row(popcd.pop_cd(3), "weighted", 7),
    "pop-cd-loo": Row(popcd.pop_cd(normalizer="leave-one-out"), "weighted", 4, weights_sum_to_one=False),
    "pop-cd-joint-1": Row(popcd.pop_cd(1, proposal="joint"), "weighted", 4),
    "pop-cd-joint-3": Row(popcd.pop_cd(3, proposal="joint"), "weighted", 7),
    "pop-cd-mixture-1": Row(popcd.pop_cd(1, proposal="mixture", mixture_size=8), "weighted", 5, group=8),
    "pop-cd-mixture-3": Row(popcd.pop_cd(3, proposal="mixture", mixture_size=8), "weighted", 8, group=8),
    "exact": Row(popcd.exact(), "exact", 3),
}
every = pytest.mark.parametrize("row", TABLE.values(), ids=TABLE)
both = pytest.mark.parametrize("rbm", SHAPES, ids=["5x3", "3x5"])


def rows_with(promise):
    return pytest.mark.parametrize(
        "row", [r for r in TABLE.values() if r.promise == promise], ids=[n for n, r in TABLE.items() if r.promise == promise]
    )


def step(row, rbm, batch, seed=0, state=None):
    key = jax.random.key(seed)
    if state is None:
        state = row.estimator.init(jax.random.fold_in(key, 1), rbm, batch)
    return jax.jit(row.estimator.step)(key, state, rbm, batch)


def at_target(row, rbm, batch, seed):
    """The estimator's state with all its chains at the target; tempered replicas each at their own."""
    if row.estimator.name != "pt":
        return None
    shape = row.estimator.init(jax.random.key(0), rbm, batch[:1]).visible.shape
    betas = dict(row.estimator.settings).get("betas") or np.linspace(0, 1, shape[1])
    rng, states = np.random.default_rng([seed, 7]), reference.states(rbm.n_visible)
    laws = [reference.p_visible(rbm.anneal(float(beta))) for beta in betas]
    replicas = [states[rng.choice(len(states), len(batch), p=law / law.sum())] for law in laws]
    return popcd.kernels.tempering(tuple(betas)).init(jnp.asarray(np.stack(replicas, axis=1), jnp.float32))


@rows_with("invariant")
@both
def test_particles_of_chains_at_the_target_follow_it(row, rbm, seed):
    target, states = reference.p_visible(rbm), reference.states(rbm.n_visible)
    batch = states[np.random.default_rng(seed).choice(len(target), CHAINS, p=target)]
    start = at_target(row, rbm, batch, seed)
    assert pearson(reference.index(step(row, rbm, batch, seed, start)[1].visible), target) > ALPHA
    twin = step(row, weaker(rbm), batch, seed, start)[1]
    assert pearson(reference.index(twin.visible), target) < ALPHA


@pytest.mark.parametrize("name", ["cd-1", "cd-3", "pop-cd-1", "pop-cd-3"])
@both
def test_k_sweeps_from_a_datum_follow_the_kth_power_of_the_gibbs_matrix(name, rbm, seed):
    """The law of CD-k's particles, and with it the expectation of CD-k."""
    row, start = TABLE[name], np.arange(rbm.n_visible) % 2
    law = np.linalg.matrix_power(reference.gibbs_matrix(rbm), dict(row.estimator.settings)["k"])[reference.index(start)]
    batch = np.tile(start, (CHAINS, 1))
    assert pearson(reference.index(step(row, rbm, batch, seed)[1].visible), law) > ALPHA
    assert pearson(reference.index(step(row, weaker(rbm), batch, seed)[1].visible), law) < ALPHA


@pytest.mark.parametrize("name", ["pcd-1", "pcd-3"])
@both
def test_persistent_chains_go_on_where_they_were(name, rbm, seed):
    """Two updates from a fixed start are 2k sweeps; chains that forgot the first would have made k."""
    row, start = TABLE[name], np.arange(rbm.n_visible) % 2
    k, batch = dict(row.estimator.settings)["k"], np.tile(start, (CHAINS, 1))
    once = np.linalg.matrix_power(reference.gibbs_matrix(rbm), k)
    state, first = step(row, rbm, batch, seed)
    np.testing.assert_array_equal(state.visible, first.visible)
    state, second = step(row, rbm, 1 - batch, seed + 1000, state)
    np.testing.assert_array_equal(state.visible, second.visible)
    assert pearson(reference.index(second.visible), (once @ once)[reference.index(start)]) > ALPHA
    if k == 1:  # after three sweeps three more change little
        assert pearson(reference.index(second.visible), once[reference.index(start)]) < ALPHA


def test_ladders_go_on_where_they_were():
    row, batch = TABLE["pt"], reference.states(5)
    state, first = step(row, WIDE, batch)
    np.testing.assert_array_equal(state.visible[:, -1], first.visible)
    again, second = step(row, WIDE, batch, seed=1, state=state)
    restarted = step(row, WIDE, batch, seed=1)[1]
    np.testing.assert_array_equal(again.visible[:, -1], second.visible)
    assert not jnp.array_equal(second.visible, restarted.visible)


@rows_with("weighted")
@pytest.mark.parametrize("rbm", MILD, ids=["5x3", "3x5"])
def test_weighted_particles_follow_the_target_from_any_start(row, rbm, seed):
    """Mild machines, because a mean of weights is normally distributed only where they have no heavy tail."""
    target, start = reference.p_visible(rbm), np.arange(rbm.n_visible) % 2
    batch = np.tile(start, (CHAINS, 1))

    def p_value(particles, weighted=True):
        weights = np.asarray(particles.log_weights, np.float64) - reference.log_z(rbm) if weighted else np.zeros(CHAINS)
        shares = np.zeros((CHAINS, len(target)))
        shares[np.arange(CHAINS), reference.index(particles.visible)] = np.exp(weights)
        shares = shares.reshape(-1, row.group, len(target)).mean(axis=1)
        return wald(shares[:, 1:], target[1:])

    _, particles = step(row, rbm, batch, seed)
    assert p_value(particles) > ALPHA
    assert p_value(step(row, weaker(rbm), batch, seed)[1]) < ALPHA
    if dict(row.estimator.settings)["k"] == 1:  # three sweeps of a mild machine are close to the target without weights
        assert p_value(particles, weighted=False) < ALPHA


@rows_with("exact")
@both
@pytest.mark.usefixtures("float64")
def test_the_exact_gradient_is_that_of_the_table(row, rbm):
    batch = reference.states(rbm.n_visible)[[1, 2, 6]]
    _, particles = step(row, rbm, batch)
    expected = reference.expected_gradient(rbm, batch, reference.p_visible(rbm))
    np.testing.assert_allclose(reference.flat(gradient(rbm, batch, particles)), expected, rtol=1e-10, atol=1e-14)
    assert (particles.hidden is None) == (rbm.n_visible <= rbm.n_hidden)


@every
@both
def test_particles_are_well_formed(row, rbm):
    batch = reference.states(rbm.n_visible)[:8].astype(np.uint8)
    _, particles = step(row, rbm, batch)
    n = len(particles.log_weights)
    assert particles.visible.shape == (n, rbm.n_visible)
    assert particles.visible.dtype == particles.log_weights.dtype == jnp.float32
    assert 1 - 1e-5 <= float(particles.ess) <= n + 1e-3
    assert 1 / n - 1e-6 <= float(particles.largest_weight) <= 1 + 1e-6
    if row.weights_sum_to_one:
        np.testing.assert_allclose(particles.weights.sum(), 1, rtol=1e-5)
    if row.promise == "invariant":
        np.testing.assert_allclose(particles.ess, n, rtol=1e-5)


@every
def test_the_same_key_gives_the_same_particles_and_another_does_not(row):
    batch = reference.states(5)
    visible = [step(row, WIDE, batch, seed)[1].visible for seed in (0, 0, 1)]
    assert jnp.array_equal(visible[0], visible[1])
    assert jnp.array_equal(visible[0], visible[2]) == (row.promise == "exact")


@every
def test_the_gradient_is_the_weighted_mean_of_the_statistics(row):
    """Against NumPy: what `gradient` makes of the particles of each estimator, pairs included."""
    batch = reference.states(5)[3:19]
    _, particles = step(row, WIDE, batch)
    w, _, c = reference.parameters(WIDE)
    v, weights = np.asarray(particles.visible, np.float64), np.asarray(particles.weights, np.float64)
    h = 1 / (1 + np.exp(-(v @ w + c))) if particles.hidden is None else np.asarray(particles.hidden, np.float64)
    negative = np.concatenate([np.einsum("p,pi,pj->ij", weights, v, h).ravel(), weights @ v, weights @ h])
    expected = reference.statistics(WIDE)[reference.index(batch)].mean(axis=0) - negative
    scale = np.abs(negative).max() + 1
    np.testing.assert_allclose(reference.flat(gradient(WIDE, batch, particles)), expected, atol=1e-5 * scale)


@every
@pytest.mark.parametrize("centered", [False, True], ids=["plain", "centred"])
def test_matrix_products_of_a_compiled_update(row, centered):
    """Counted in the optimised program of training: products that chain, weights and gradient share are made once."""
    data, offsets = jnp.zeros((100, 24), jnp.uint8), Offsets(np.zeros(24), np.zeros(12))
    plan = Plan(row.estimator, optax.sgd(0.1), batch_size=40, centered=centered)
    state = init(jax.random.key(0), popcd.RBM.create(24, 12), data[: plan.n_starts], offsets, plan)
    numbers = np.zeros(400 + plan.n_further, np.int32)
    keys = host_keys(0, "chain", np.arange(100))
    text = advance.lower(state, 100, 0, Gathered(numbers, data), keys, plan).compile().as_text()
    assert len(re.findall(r"= \S+ (?:dot|custom-call)\(", text)) == row.products


@every
def test_a_resumed_run_continues_bit_for_bit(row):
    data = popcd.datasets.artificial_modes(rows=100, noise=0.1)
    settings = {"batch_size": 16, "seed": 5, "learning_rate": 0.05}
    start = popcd.RBM.create(16, 4, seed=1)
    whole = popcd.train(start, data, row.estimator, iterations=37, **settings)
    half = popcd.train(start, data, row.estimator, iterations=20, **settings)
    again = popcd.train(start, data, row.estimator, iterations=37, resume=half.state, **settings)
    for a, b in zip(jax.tree.leaves(whole.state), jax.tree.leaves(again.state), strict=True):
        np.testing.assert_array_equal(a, b)
    assert not jnp.array_equal(whole.rbm.weights, half.rbm.weights)


def test_equal_settings_are_equal_estimators_and_labels_say_them():
    assert popcd.cd(2) is popcd.cd(k=2) != popcd.cd(3)
    assert hash(popcd.pop_cd()) == hash(popcd.pop_cd(k=1))
    assert popcd.pt(3) != popcd.pt(3, betas=(0.0, 0.1, 1.0))
    assert str(popcd.pcd(2, n_chains=7)) == "pcd(k=2, n_chains=7)"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: popcd.cd(0), "k must be"),
        (lambda: popcd.pcd(-1), "k must be"),
        (lambda: popcd.pcd(n_chains=0), "n_chains must be"),
        (lambda: popcd.pt(0), "n_temperatures must be"),
        (lambda: popcd.pt(n_ladders=0), "n_ladders must be"),
        (lambda: popcd.pt(sweeps=0), "sweeps must be"),
        (lambda: popcd.pt(betas=(0.0, 0.9)), "betas must increase"),
    ],
)
def test_bad_settings_are_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_exact_says_what_it_cannot_enumerate():
    with pytest.raises(ValueError, match=r"70 x 21 would need 2\*\*21 states of 70 numbers, and at most 2\*\*27"):
        popcd.exact().step(jax.random.key(0), None, popcd.RBM.create(70, 21), None)


def test_the_papers_tempering_is_one_ladder_with_many_sweeps():
    estimator = popcd.pt(n_temperatures=3, n_ladders=1, sweeps=16)
    batch, key = reference.states(5)[:16], jax.random.key(0)
    state, particles = jax.jit(estimator.step)(key, estimator.init(key, WIDE, batch), WIDE, batch)
    assert particles.visible.shape == (16, 5)
    assert state.visible.shape == (1, 3, 5)
    np.testing.assert_array_equal(particles.visible[-1], state.visible[0, -1])
