import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from laws import ALPHA
from popcd import prng


@pytest.mark.parametrize("shape", [(), (1,), (7,), (5, 3), (2, 3, 4), (500, 784)])
def test_bits_equal_those_of_jax(seed, shape):
    key = jax.random.key(seed)
    np.testing.assert_array_equal(prng.bits(key, shape), jax.random.bits(key, shape))
    np.testing.assert_array_equal(jax.jit(prng.bits, static_argnums=1)(key, shape), jax.random.bits(key, shape))


@pytest.mark.parametrize("root", [0, 12345, 2**31, 2**32 - 1, -1, 2**40 + 7])
def test_keys_made_on_the_host_are_those_of_the_device(root):
    numbers = np.array([0, 1, 5, 2**31 - 1, 2**32 - 1])
    device = prng.stream(prng.root_key(root), "chain")
    assert jnp.array_equal(jax.random.key_data(prng.host_stream(root, "chain")), jax.random.key_data(device))
    expected = [jax.random.key_data(prng.fold_in(device, np.uint32(number))) for number in numbers]
    words = prng.host_keys(root, "chain", numbers)
    np.testing.assert_array_equal(words, expected)
    np.testing.assert_array_equal([jax.random.key_data(prng.key_at(words, i)) for i in range(len(words))], expected)


@pytest.mark.parametrize("number", [0, 1, 12345, 2**31, 2**32 - 1, np.int64(5), np.uint8(255)])
def test_the_key_of_a_seed_is_that_of_jax(number):
    assert jnp.array_equal(jax.random.key_data(prng.root_key(number)), jax.random.key_data(jax.random.key(number)))


def test_seeds_that_differ_beyond_32_bits_have_keys_of_their_own():
    keys = [prng.root_key(number) for number in (5, 5 + 2**32, 5 + 2**33, 2**64 - 1)]
    assert len({tuple(jax.random.key_data(key).tolist()) for key in keys}) == 4


def test_bits_do_not_depend_on_the_generator_that_jax_uses_by_default():
    expected = prng.bits(prng.stream(prng.root_key(3), "chain"), (5,))
    with jax.default_prng_impl("rbg"):
        assert jnp.array_equal(prng.bits(prng.stream(prng.root_key(3), "chain"), (5,)), expected)


@pytest.mark.parametrize("number", [0, 1, 12345, 2**31, 2**32 - 1])
def test_fold_in_equals_that_of_jax(seed, number):
    key = jax.random.key(seed)
    ours = prng.fold_in(key, np.uint32(number))
    assert jnp.array_equal(jax.random.key_data(ours), jax.random.key_data(jax.random.fold_in(key, np.uint32(number))))


def test_streams_differ(seed):
    keys = [prng.stream(jax.random.key(seed), name) for name in ("create", "init", "data", "chain", "truth")]
    assert len({tuple(jax.random.key_data(key).tolist()) for key in keys}) == 5


def test_too_many_words_are_refused():
    with pytest.raises(ValueError, match=r"fewer than 2\*\*32"):
        jax.eval_shape(lambda key: prng.bits(key, (2**16, 2**16)), jax.random.key(0))


def tail_counts(draw, seed, logit, n=2**22, blocks=6):
    """How often the rare value comes up in blocks * n draws; a compiled loop, so that nothing is stored."""
    logits = jnp.full(n, logit)

    def block(i, total):
        return total + jnp.sum(draw(jax.random.fold_in(jax.random.key(seed), i), logits).astype(jnp.int32))

    ones = int(jax.jit(lambda: jax.lax.fori_loop(0, blocks, block, 0))())
    return (ones if logit < 0 else n * blocks - ones), n * blocks


def coarse_bernoulli(key, logits):
    """The broken twin: uniforms of 16 bits."""
    return ((prng.bits(key, logits.shape) >> 16).astype(jnp.float32) * 2.0**-16 < jax.nn.sigmoid(logits)).astype(logits.dtype)


def poisson_p_value(count, mean):
    return min(1.0, 2 * min(stats.poisson.cdf(count, mean), stats.poisson.sf(count - 1, mean)))


@pytest.mark.parametrize("logit", [-14.0, -12.0, 14.0])
def test_rare_values_have_the_right_probability(seed, logit):
    count, n = tail_counts(prng.bernoulli, seed, logit)
    assert poisson_p_value(count, n / (1 + np.exp(abs(logit)))) > ALPHA
    count, n = tail_counts(coarse_bernoulli, seed, logit)
    assert poisson_p_value(count, n / (1 + np.exp(abs(logit)))) < ALPHA


def test_bernoulli_probabilities_over_the_whole_range(seed):
    logits = jnp.linspace(-4, 4, 33)
    draws = prng.bernoulli(jax.random.key(seed), jnp.broadcast_to(logits[None, :], (100_000, 33)))
    p = 1 / (1 + np.exp(-np.asarray(logits, np.float64)))

    def p_value(probabilities):
        z = (np.asarray(draws, np.float64).mean(axis=0) - probabilities) / np.sqrt(probabilities * (1 - probabilities) / 1e5)
        return stats.chi2.sf((z**2).sum(), len(z))

    assert p_value(p) > ALPHA
    assert p_value(1 / (1 + np.exp(-0.97 * np.asarray(logits, np.float64)))) < ALPHA
    assert set(np.unique(draws)) == {0.0, 1.0}


def test_extreme_logits_never_surprise():
    draws = prng.bernoulli(jax.random.key(0), jnp.repeat(jnp.array([[-100.0], [100.0]]), 1000, axis=1))
    np.testing.assert_array_equal(draws, np.repeat([[0.0], [1.0]], 1000, axis=1))


def test_uniform_is_open_and_fills_its_range(seed):
    u = np.asarray(prng.uniform(jax.random.key(seed), (100_000,)), np.float64)
    assert u.min() > 0
    assert stats.kstest(u, "uniform").pvalue > ALPHA
    assert stats.kstest(u**1.05, "uniform").pvalue < ALPHA
