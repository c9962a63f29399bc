import dataclasses
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import popcd
import reference
from machines import machine
from popcd.gradient import gradient

STRIPES = popcd.datasets.bars_and_stripes(3)
START = machine(9, 4, scale=0.1)


def train(estimator=None, data=STRIPES, start=START, **settings):
    settings = {"iterations": 20, "batch_size": 16} | settings
    return popcd.train(start, data, popcd.exact() if estimator is None else estimator, **settings)


def by_hand(steps, rate, decay=0.0, start=START):
    """Full-batch gradient ascent on the exact log-likelihood in NumPy."""
    w, b, c = reference.parameters(start)
    for _ in range(steps):
        rbm = popcd.RBM(w, b, c)
        uphill = reference.expected_gradient(rbm, STRIPES, reference.p_visible(rbm))
        w = w + rate * (uphill[: w.size].reshape(w.shape) - decay * w)
        b, c = b + rate * uphill[w.size : -c.size], c + rate * uphill[-c.size :]
    return np.concatenate([w.ravel(), b, c])


def test_plain_gradient_ascent():
    np.testing.assert_allclose(reference.flat(train(iterations=5).rbm), by_hand(5, 0.1), rtol=1e-4, atol=1e-6)


def test_weight_decay_is_on_the_weights_alone():
    run = train(iterations=3, weight_decay=0.5)
    np.testing.assert_allclose(reference.flat(run.rbm), by_hand(3, 0.1, decay=0.5), rtol=1e-4, atol=1e-6)


def test_schedules_and_optax_optimisers():
    run = train(iterations=8, learning_rate=lambda step: jnp.where(step < 3, 0.1, 0.0))
    np.testing.assert_allclose(reference.flat(run.rbm), by_hand(3, 0.1), rtol=1e-4, atol=1e-6)
    same = train(iterations=5, optimizer=optax.sgd(0.1))
    np.testing.assert_allclose(reference.flat(same.rbm), by_hand(5, 0.1), rtol=1e-4, atol=1e-6)
    with jax.numpy_dtype_promotion("standard"):  # Optax's own arithmetic is not strict
        adam = train(iterations=50, optimizer=optax.adam(0.01), evaluate_every=50)
    assert adam.history["log_likelihood"][-1] > popcd.log_likelihood(START, STRIPES).value


def test_a_centred_run_follows_centred_updates_written_out():
    """Data means and moving averages of hidden means as offsets; two updates in NumPy."""
    w, b, c = reference.parameters(START)
    mu, rate = STRIPES.mean(axis=0), 0.1
    lam = 1 / (1 + np.exp(-c))
    for _ in range(2):
        rbm = popcd.RBM(w, b, c)
        hidden = 1 / (1 + np.exp(-(STRIPES @ w + c)))
        lam = 0.99 * lam + 0.01 * hidden.mean(axis=0)
        g = reference.expected_gradient(rbm, STRIPES, reference.p_visible(rbm))
        gw, gb, gc = g[: w.size].reshape(w.shape), g[w.size : -c.size], g[-c.size :]
        dw = rate * (gw - np.outer(mu, gc) - np.outer(gb, lam))
        w, b, c = w + dw, b + rate * gb - dw @ lam, c + rate * gc - mu @ dw
    run = train(iterations=2, centered=True)
    np.testing.assert_allclose(reference.flat(run.rbm), np.concatenate([w.ravel(), b, c]), rtol=1e-4, atol=1e-6)


def test_an_optimiser_sees_the_gradient_in_centred_coordinates():
    """sign-SGD moves every centred parameter by exactly the rate; the plain biases then follow from the offsets."""
    run = train(iterations=1, optimizer=optax.sign_sgd(0.1), centered=True)
    w, b, _ = reference.parameters(START)
    new_w, new_b, _ = reference.parameters(run.rbm)
    moved_b = new_b - b + (new_w - w) @ np.asarray(run.state.offsets.hidden, np.float64)
    np.testing.assert_allclose(np.abs(new_w - w), 0.1, rtol=1e-4)
    np.testing.assert_allclose(np.abs(moved_b), 0.1, rtol=1e-4)


def test_each_batch_gives_the_mean_gradient_over_its_rows(seed):
    """Rows in batches of 5 out of 16: the updates are those of the rows in the order of the epochs."""
    from popcd.epochs import Epochs

    run = train(iterations=4, batch_size=5, seed=seed)
    epochs, rbm = Epochs(seed, 16, shuffle=True), jax.tree.map(jnp.float32, START)
    for step in range(4):
        batch = STRIPES[epochs.rows(5 * step, 5)]
        uphill = gradient(rbm, batch, popcd.exact().step(jax.random.key(0), None, rbm, batch)[1])
        rbm = jax.tree.map(lambda p, g: p + jnp.float32(0.1) * g, rbm, uphill)
    np.testing.assert_allclose(reference.flat(run.rbm), reference.flat(rbm), rtol=1e-4, atol=1e-6)


def test_history_has_a_row_per_evaluation_and_a_last_one():
    run = train(popcd.pop_cd(), iterations=25, evaluate_every=10)
    assert run.history["step"].tolist() == [10, 20, 25]
    assert set(run.history) == {"step", "ess", "largest_weight", "gradient_norm", "log_likelihood"}
    np.testing.assert_allclose(run.history["log_likelihood"][-1], popcd.log_likelihood(run.rbm, STRIPES).value)
    assert ((run.history["ess"] >= 1) & (run.history["ess"] <= 16)).all()


def test_history_is_the_mean_over_the_updates_between_rows():
    fine = train(popcd.pop_cd(), iterations=6, evaluate_every=1).history
    coarse = train(popcd.pop_cd(), iterations=6, evaluate_every=6).history
    for name in ("ess", "largest_weight", "gradient_norm"):
        np.testing.assert_allclose(coarse[name], fine[name].mean(), rtol=1e-5)


def test_history_measures_the_particles_and_the_gradient_of_an_update():
    """With the exact estimator all is known: particles are all states of the smaller side, their weights its probabilities."""
    run = train(iterations=1, evaluate_every=1)
    uphill, p = reference.expected_gradient(START, STRIPES, reference.p_visible(START)), reference.p_visible(START.mirror())
    expected = {"gradient_norm": np.linalg.norm(uphill), "ess": 1 / (p**2).sum(), "largest_weight": p.max()}
    for name, value in expected.items():
        np.testing.assert_allclose(run.history[name], value, rtol=1e-4)


def test_history_has_the_means_of_whatever_an_estimator_measures():
    """Whole numbers and yes or no beside fractions."""
    plain = popcd.cd()

    def step(key, chains, rbm, starts):
        chains, particles = plain.step(key, chains, rbm, starts)
        ones = jnp.sum(particles.visible[0]).astype(jnp.int32)
        return chains, dataclasses.replace(particles, info={"ones": ones, "odd": ones % 2 == 1, "pair": jnp.array([1, 2])})

    run = train(dataclasses.replace(plain, step=step), iterations=40, evaluate_every=1, evaluate=lambda rbm: {})
    np.testing.assert_array_equal(run.history["odd"], run.history["ones"] % 2)
    assert 0 < run.history["odd"].mean() < 1
    coarse = train(dataclasses.replace(plain, step=step), iterations=40, evaluate_every=40, evaluate=lambda rbm: {})
    np.testing.assert_allclose(coarse.history["odd"], run.history["odd"].mean(), rtol=1e-6)
    np.testing.assert_array_equal(coarse.history["pair"], [[1, 2]])


def test_a_user_given_evaluation_and_what_kernels_know():
    run = train(popcd.pt(3), evaluate_every=10, evaluate=lambda rbm: {"norm": float(jnp.abs(rbm.weights).sum())})
    assert run.history["norm"].shape == (2,)
    assert run.history["swap_rates"].shape == (2, 2)
    assert "log_likelihood" not in run.history


def test_the_same_seed_gives_the_same_run_and_another_does_not():
    runs = [reference.flat(train(popcd.cd(), batch_size=4, seed=s).rbm) for s in (1, 1, 2)]
    np.testing.assert_array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])


def test_the_interval_of_evaluation_does_not_change_the_run():
    a, b = (train(popcd.cd(), batch_size=5, iterations=30, evaluate_every=n) for n in (7, 30))
    np.testing.assert_array_equal(reference.flat(a.rbm), reference.flat(b.rbm))


def test_a_larger_population_starts_at_further_rows():
    """An estimator of the user's shows what it is handed: the rows of the batch first, then further ones."""
    seen = []

    def step(key, state, rbm, batch):
        jax.debug.callback(lambda rows: seen.append(np.asarray(rows)), batch)
        return popcd.pop_cd(n_particles=40).step(key, state, rbm, batch)

    settings = {"batch_size": 4, "iterations": 4}
    train(popcd.Estimator("mine", (), lambda key, rbm, batch: None, step, n_starts=40), **settings)
    jax.effects_barrier()
    assert [rows.shape for rows in seen] == [(40, 9)] * 4
    assert len(np.unique(seen[0][:16], axis=0)) == len(np.unique(STRIPES, axis=0))
    np.testing.assert_array_equal(seen[0][4:8], seen[1][:4])
    assert train(popcd.pcd(n_chains=6), batch_size=4).state.estimator.visible.shape == (6, 9)


def test_non_finite_parameters_stop_the_run_and_lose_nothing():
    def explode(step):
        return jnp.where(step < 37, 0.1, jnp.inf)

    with pytest.raises(popcd.TrainingDivergedError, match="non-finite at update 38; the machine after update 37") as caught:
        train(popcd.cd(), iterations=300, learning_rate=explode, evaluate_every=25)
    assert caught.value.step == 38
    kept = caught.value.run
    assert int(kept.state.step) == 37
    assert kept.history["step"].tolist() == [25]
    np.testing.assert_array_equal(
        reference.flat(kept.rbm), reference.flat(train(popcd.cd(), iterations=37, learning_rate=explode).rbm)
    )


def test_low_ess_warns_once_with_figures_and_advice():
    strong = machine(60, 30)
    data = np.random.default_rng(0).integers(0, 2, (200, 60))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        train(popcd.pop_cd(), data, strong, batch_size=200, iterations=300, learning_rate=0.0)
    assert [w.category for w in caught] == [popcd.LowESSWarning]
    assert "% of the particles" in str(caught[0].message)
    assert "proposal='mixture'" in str(caught[0].message)
    assert caught[0].filename == __file__


def test_a_healthy_run_does_not_warn_nor_does_enumeration():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train(popcd.pop_cd(), iterations=300)
        train(popcd.exact(), start=machine(9, 12, scale=3.0), iterations=100, learning_rate=0.0)


def test_two_estimators_of_one_name_are_not_taken_for_each_other():
    def shifted(amount):
        def step(key, state, rbm, batch):
            return None, popcd.Particles(jnp.full((4, 9), amount, jnp.float32), jnp.zeros(4))

        return popcd.Estimator("mine", (), lambda key, rbm, batch: None, step)

    one, two = (train(shifted(amount), iterations=1).rbm.visible_bias for amount in (0.0, 1.0))
    np.testing.assert_allclose(one - two, 0.1, rtol=1e-4)


def test_an_estimator_of_the_user_s_may_begin_with_its_rows_and_a_number():
    """Rows come as they are, at the beginning and in every step, and numbers become arrays, so that the run can be resumed."""

    def step(key, state, rbm, batch):
        last, number = state
        return (batch, number + 1), popcd.Particles(last.astype(rbm.dtype), jnp.zeros(len(last)))

    mine = popcd.Estimator("mine", (), lambda key, rbm, batch: (batch, 0), step)
    half = train(mine, iterations=10)
    whole, resumed = train(mine, iterations=20), train(mine, iterations=20, resume=half.state)
    assert (int(half.state.estimator[1]), int(whole.state.estimator[1])) == (10, 20)
    np.testing.assert_array_equal(whole.rbm.weights, resumed.rbm.weights)


def test_a_state_of_other_settings_is_not_resumed():
    state = train(popcd.pcd()).state
    with pytest.raises(ValueError, match="resume is the state of a run with other settings"):
        train(popcd.cd(), iterations=30, resume=state)
    with pytest.raises(ValueError, match="resume is the state of a run with other settings"):
        train(popcd.pcd(n_chains=3), iterations=30, resume=state)
    with pytest.raises(ValueError, match="has 20 updates behind it: iterations must be larger, got 20"):
        train(popcd.pcd(), iterations=20, resume=state)


def test_long_intervals_are_cut_into_chunks_that_change_nothing(monkeypatch):
    whole = train(popcd.pop_cd(), batch_size=5, iterations=60, evaluate_every=60)
    monkeypatch.setattr(sys.modules["popcd.chunks"], "_LONGEST_CHUNK", 7)
    parts = train(popcd.pop_cd(), batch_size=5, iterations=60, evaluate_every=60)
    np.testing.assert_array_equal(reference.flat(whole.rbm), reference.flat(parts.rbm))
    assert parts.history["step"].tolist() == [60]
    np.testing.assert_allclose(parts.history["ess"], whole.history["ess"], rtol=1e-5)


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"batch_size": 17}, ValueError, "batch_size must be at most the number of rows, 16, got 17"),
        ({"batch_size": 0}, ValueError, "batch_size must be a whole number of at least 1, got 0"),
        ({"iterations": -1}, ValueError, "iterations must be"),
        ({"iterations": 1.5}, TypeError, "iterations must be"),
        ({"evaluate_every": 0}, ValueError, "evaluate_every must be"),
        ({"evaluate": lambda rbm: {}}, ValueError, "without evaluate_every"),
        ({"data": STRIPES[:, :5]}, ValueError, "5 columns, but the machine has 9 visible units"),
        ({"data": STRIPES * 0.5}, ValueError, r"only 0 and 1, got 0.5 at row \d+, column \d+"),
        ({"data": STRIPES * np.nan}, ValueError, "only 0 and 1, got nan"),
        ({"data": STRIPES[:0]}, ValueError, r"non-empty matrix, rows x visible, got shape \(0, 9\)"),
        ({"data": STRIPES[0]}, ValueError, r"non-empty matrix, rows x visible, got shape \(9,\)"),
        ({"data": STRIPES.astype(object)}, TypeError, "got dtype object"),
        ({"learning_rate": -0.1}, ValueError, "learning_rate must be"),
        ({"learning_rate": float("nan")}, ValueError, "learning_rate must be"),
        ({"weight_decay": -1.0}, ValueError, "weight_decay must be"),
        ({"weight_decay": "much"}, TypeError, "weight_decay must be a finite number of at least 0, got 'much'"),
        (
            {"optimizer": optax.sgd(0.1), "learning_rate": 0.1},
            ValueError,
            "either optimizer.* or learning_rate",
        ),
    ],
)
def test_bad_input_is_named(settings, error, words):
    with pytest.raises(error, match=words):
        train(**settings)


def test_what_is_not_an_estimator_is_refused():
    with pytest.raises(TypeError, match=r"estimator must be a popcd.Estimator, got 'pop-cd'"):
        train("pop-cd")
    with pytest.raises(TypeError, match=r"optimizer must be a optax.GradientTransformation, got 'adam'"):
        train(optimizer="adam")


def test_the_default_evaluation_says_what_it_cannot_enumerate():
    with pytest.raises(ValueError, match=r"30 x 25 machine does not allow .* pass evaluate="):
        train(popcd.cd(), np.eye(30), popcd.RBM.create(30, 25), evaluate_every=10)
