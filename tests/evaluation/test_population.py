"""Populations in blocks: against all particles at once, and against enumeration."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import popcd
import reference
from laws import ALPHA
from machines import MILD, SHAPES, WIDE, weaker
from popcd.evaluation import population_error
from popcd.evaluation.population import streamed
from popcd.gradient import gradient
from popcd.particles import Particles
from popcd.prng import fold_in, stream

MIXTURE = popcd.pop_cd(proposal="mixture", mixture_size=4)
ESTIMATORS = {"cd": (popcd.cd(2), 1), "single": (popcd.pop_cd(2), 1), "mixture": (MIXTURE, 4)}
each = pytest.mark.parametrize(("estimator", "unit"), ESTIMATORS.values(), ids=ESTIMATORS)
mild = pytest.mark.parametrize("rbm", MILD, ids=["5x3", "3x5"])
both = pytest.mark.parametrize("estimator", [popcd.pop_cd(), MIXTURE], ids=["single", "mixture"])


def rows_of(rbm):
    return reference.states(rbm.n_visible)[[0, 1, 3, 5, 6]]


def stream_of(rbm, estimator, unit, n_units, per_block, seed=0):
    data = jnp.asarray(rows_of(rbm), jnp.uint8)
    return streamed(jax.random.key(seed), n_units, rbm, data, estimator, unit, per_block)


@each
@pytest.mark.usefixtures("float64")
def test_blocks_of_any_size_give_the_sums_over_all_particles_at_once(estimator, unit):
    data, key, parts = jnp.asarray(rows_of(WIDE), jnp.uint8), jax.random.key(3), []
    for number in range(7):
        rows = jax.random.randint(fold_in(stream(key, "data"), number), (unit,), 0, len(data))
        parts.append(jax.jit(estimator.step)(fold_in(stream(key, "chain"), number), None, WIDE, data[rows])[1])
    whole = Particles(*(jnp.concatenate([getattr(p, name) for p in parts]) for name in ("visible", "log_weights")))
    expected = reference.expected_gradient(WIDE, data, np.zeros(32)) - reference.flat(gradient(WIDE, data, whole))
    for per_block in (2, 9):
        found = stream_of(WIDE, estimator, unit, 7, per_block, seed=3)
        np.testing.assert_allclose(reference.flat(found.means), expected, rtol=1e-12)
        np.testing.assert_allclose(found.ess, whole.ess, rtol=1e-12)


def test_a_population_of_one_mixture_is_one_step():
    """The same particles as the estimator alone would draw, so that a curve is about the estimator that trains."""
    data, key = jnp.asarray(rows_of(WIDE), jnp.uint8), jax.random.key(1)
    rows = jax.random.randint(fold_in(stream(key, "data"), 0), (4,), 0, len(data))
    _, particles = jax.jit(MIXTURE.step)(fold_in(stream(key, "chain"), 0), None, WIDE, data[rows])
    found = stream_of(WIDE, MIXTURE, 4, 1, 1, seed=1)
    np.testing.assert_allclose(found.means.visible_bias, particles.weights @ particles.visible, rtol=1e-5)
    np.testing.assert_allclose(found.ess, particles.ess, rtol=1e-5)


def test_a_heavier_block_after_a_lighter_one_does_not_overflow():
    start = stream_of(WIDE, popcd.pop_cd(), 1, 1, 1)
    visible, hidden = jnp.ones((1, 5)), jnp.ones((1, 3))
    found = start.add(start.top + jnp.full(1, 200.0), visible, hidden)
    np.testing.assert_allclose(found.means.visible_bias, 1, rtol=1e-6)
    np.testing.assert_allclose(found.ess, 1, rtol=1e-6)


def hotelling(samples, mean):
    """p-value of the hypothesis that independent rows have this mean, by their empirical covariance: exact for normal rows."""
    n, d = samples.shape
    gap = samples.mean(axis=0) - mean
    square = n * gap @ np.linalg.solve(np.cov(samples, rowvar=False), gap)
    return stats.f.sf(square * (n - d) / ((n - 1) * d), d, n - d)


@both
@mild
def test_streamed_weights_give_the_models_moments_and_twins_do_not(rbm, estimator, seed):
    """Means of visible units, over populations so large that their bias of order 1/N is far below what 200 of them show."""
    unit, repeats, n = dict(estimator.settings)["mixture_size"] or 1, 200, 8_000
    data, root = jnp.asarray(rows_of(rbm), jnp.uint8), jax.random.key(seed)
    model = reference.p_visible(rbm) @ reference.states(rbm.n_visible)

    def means(rbm, estimator, unit, size, count):
        def one(number):
            found = streamed(fold_in(root, number), size // unit, rbm, data, estimator, unit, min(size, 2_000) // unit)
            return found.means.visible_bias

        at_once = 8_000 // size
        return np.asarray(jax.jit(lambda: jax.lax.map(one, jnp.arange(count), batch_size=at_once))(), np.float64)

    assert hotelling(means(rbm, estimator, unit, n, repeats), model) > ALPHA
    assert hotelling(means(rbm, popcd.cd(1), 1, n, repeats), model) < ALPHA  # the same chains without their weights
    # blocks that each divide by their own weights, and count alike
    small = means(rbm, estimator, unit, 4, repeats * 2_000).reshape(repeats, 2_000, -1).mean(axis=1)
    assert hotelling(small, model) < ALPHA


def p_value(gap, error, groups):
    return 2 * stats.t.sf(abs(gap) / error, groups - 1)


@mild
def test_figures_of_cd_are_those_of_the_gibbs_matrix_at_every_size(rbm, seed):
    """Particles are independent draws of one law: the bias is that of the law at every N, the variance its variance / N."""
    data, f = rows_of(rbm), reference.statistics(rbm)
    law = reference.gibbs_matrix(rbm)[reference.index(data)].mean(axis=0)
    bias = np.square((law - reference.p_visible(rbm)) @ f).mean()
    variance = (law @ f**2 - (law @ f) ** 2).mean()
    found = population_error(rbm, data, popcd.cd(1), sizes=[300, 30], repeats=4_000, seed=seed)
    assert found.sizes == (30, 300)
    assert [error.repeats for error in found.errors] == [4_000, 400]
    for size, error in zip(found.sizes, found.errors, strict=True):
        assert p_value(error.bias_corrected - bias, error.bias_stderr, 20) > ALPHA
        assert p_value(error.variance - variance / size, error.variance_stderr, 20) > ALPHA
        assert error.ess == pytest.approx(size, rel=1e-4)
    truth, twin = popcd.evaluation.exact_gradient(rbm, data), weaker(weaker(weaker(rbm)))
    wrong = population_error(twin, data, popcd.cd(1), sizes=[30], repeats=4_000, seed=seed, truth=truth).errors[0]
    off = (wrong.bias_corrected - bias) / wrong.bias_stderr, (wrong.variance - variance / 30) / wrong.variance_stderr
    assert p_value(max(map(abs, off)), 1, 20) < ALPHA


@pytest.mark.parametrize("rbm", SHAPES, ids=["5x3", "3x5"])
def test_figures_of_two_weighted_particles_are_those_of_the_table_of_pairs(rbm, seed, monkeypatch):
    """Each particle a block of its own; strong couplings, so that weights differ and the bias of order 1/N is large."""
    monkeypatch.setattr(sys.modules["popcd.evaluation.population"], "_BLOCK", 1)
    data, f, joint = rows_of(rbm), reference.statistics(rbm), reference.table(rbm)
    hidden = (joint / joint.sum(axis=1, keepdims=True))[reference.index(data)].mean(axis=0)
    draws = joint / joint.sum(axis=0)  # visible x hidden, p(v | h)
    chance, weight = (draws * hidden).ravel(), (joint.sum(axis=1, keepdims=True) / draws).ravel()
    share = weight[:, None] / (weight[:, None] + weight)  # of the first of two
    f_pair = np.repeat(f, joint.shape[1], axis=0)
    both = share[:, :, None] * f_pair[:, None] + (1 - share)[:, :, None] * f_pair
    mean, square = (np.einsum("a,b,abf->f", chance, chance, both**power, optimize=True) for power in (1, 2))
    bias, variance = np.square(mean - reference.p_visible(rbm) @ f).mean(), (square - mean**2).mean()

    def p_values(estimator):
        found = population_error(rbm, data, estimator, sizes=[2], repeats=20_000, seed=seed).errors[0]
        gaps = (found.bias_corrected - bias, found.bias_stderr), (found.variance - variance, found.variance_stderr)
        return [p_value(*gap, 20) for gap in gaps]

    assert min(p_values(popcd.pop_cd())) > ALPHA
    assert min(p_values(popcd.cd())) < ALPHA  # the same chains without their weights


def test_memory_does_not_grow_with_the_population(monkeypatch):
    """All sizes beyond a block are the same compiled program, with as much memory."""
    module = sys.modules["popcd.evaluation.population"]
    monkeypatch.setattr(module, "_BLOCK", 50)
    before = module._repeat._cache_size()
    found = population_error(WIDE, rows_of(WIDE), popcd.pop_cd(), sizes=[100, 1_000, 10_000], repeats=8)
    assert module._repeat._cache_size() == before + 1
    assert [error.repeats for error in found.errors] == [8, 8, 8]


def test_the_law_and_the_plateau_in_words(seed):
    rbm = MILD[0]
    weighted, plain = (
        population_error(rbm, rows_of(rbm), estimator, sizes=[100, 1_000], repeats=1_000, seed=seed)
        for estimator in (popcd.pop_cd(), popcd.cd())
    )
    law, flat = weighted.variance_slope, plain.bias_slope
    assert p_value(law.value + 1, law.stderr, 20) > ALPHA > p_value(law.value, law.stderr, 20)
    assert p_value(flat.value, flat.stderr, 20) > ALPHA > p_value(flat.value + 2, flat.stderr, 20)
    progress = []
    again = population_error(rbm, rows_of(rbm), popcd.cd(), sizes=[100], repeats=8, progress=lambda *d: progress.append(d))
    assert again.variance_slope is None
    assert progress[-1] == (800, 800)


@pytest.mark.parametrize(
    ("estimator", "options", "words"),
    [
        (popcd.pcd(), {}, "pcd.*no population that starts at data: expected cd or pop_cd"),
        (popcd.pt(3), {}, "pt.*no population"),
        (popcd.exact(), {}, "exact.*no population"),
        (popcd.pop_cd(n_particles=9), {}, "leave n_particles out"),
        (popcd.pop_cd(normalizer="leave-one-out"), {}, "only normalizer='self' can be streamed"),
        (popcd.pop_cd(proposal="mixture"), {}, "give a mixture_size"),
        (MIXTURE, {"sizes": [16, 18]}, "multiples of the mixture_size 4, got 18"),
        (popcd.cd(), {"sizes": []}, "at least one number of particles"),
        (popcd.cd(), {"sizes": [2**31]}, r"below 2\*\*31"),
        (popcd.cd(), {"sizes": [1]}, "sizes must be a whole number of at least 2, got 1"),
        (popcd.cd(), {"repeats": 7}, "repeats must be a whole number of at least 8, got 7"),
    ],
)
def test_bad_input_is_named(estimator, options, words):
    with pytest.raises(ValueError, match=words):
        population_error(WIDE, rows_of(WIDE), estimator, **({"sizes": [16], "repeats": 8} | options))
