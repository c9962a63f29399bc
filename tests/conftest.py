"""Strict JAX in all tests, and the `seed` fixture: one fixed seed by default, `--seeds 0-99` for the contract."""

import jax
import pytest

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")


def pytest_addoption(parser):
    parser.addoption("--seeds", default="0", help="seeds of the random tests: a number, or first-last")


def pytest_generate_tests(metafunc):
    if "seed" in metafunc.fixturenames:
        first, _, last = metafunc.config.getoption("--seeds").partition("-")
        metafunc.parametrize("seed", range(int(first), int(last or first) + 1))


def pytest_collection_modifyitems(items):
    for item in items:
        if "seed" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.statistical)


@pytest.fixture
def float64():
    """64-bit JAX within one test, for identities."""
    with jax.enable_x64(True):
        yield
