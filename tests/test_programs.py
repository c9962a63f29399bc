"""Where compiled programs are kept, and which are compiled sooner."""

import gc
import os
import subprocess
import sys
import weakref

import jax
import numpy as np
import pytest

import popcd
from popcd import fitting, programs, sources
from popcd.fitting import is_brief
from popcd.programs import CompiledSooner, without_full_collections

FIT = """
import numpy as np, popcd, jax
rows, compiled = np.eye(8), []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, _, **about: compiled.append(about["fun_name"]) if event.endswith("backend_compile_duration") else None
)
for rate in {rates}:
    machine = popcd.BernoulliRBM(n_components=3, n_iter=1, random_state=0, learning_rate=rate).fit(rows)
print(jax.config.jax_compilation_cache_dir, machine.components_.sum(), *compiled)
"""


def fit(rates: tuple[float, ...] = (0.1,), **words: str) -> list[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")} | words
    command = [sys.executable, "-W", "error", "-c", FIT.replace("{rates}", str(rates))]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


def test_the_scikit_learn_estimator_keeps_its_programs(tmp_path):
    first, again = (fit(XDG_CACHE_HOME=str(tmp_path)) for _ in range(2))
    assert first == again
    assert list((tmp_path / "popcd" / "programs").glob("*/jit_advance*"))


def test_a_first_fit_compiles_its_updates_only(tmp_path):
    """Each further program, such as that of `jax.random.key`, would add some hundredths of a second."""
    _, _, *compiled = fit(XDG_CACHE_HOME=str(tmp_path))
    assert compiled == ["jit(advance)"]


def test_fits_at_other_rates_share_the_program(tmp_path):
    """A grid search over learning rates compiles once."""
    (_, one, *_), (_, both, *compiled) = (
        fit(XDG_CACHE_HOME=str(tmp_path)),
        fit((0.1, 0.2), XDG_CACHE_HOME=str(tmp_path / "new")),
    )
    assert compiled == ["jit(advance)"]
    assert one != both


@pytest.mark.parametrize("words", [{"XDG_CACHE_HOME": "{}/file"}, {"JAX_COMPILATION_CACHE_DIR": "{}/mine"}])
def test_a_folder_of_the_user_s_or_none_is_left_as_it_is(words, tmp_path):
    (tmp_path / "file").touch()
    words = {name: value.format(tmp_path) for name, value in words.items()}
    folder, *_ = fit(**words)
    assert folder == words.get("JAX_COMPILATION_CACHE_DIR", "None")


@pytest.fixture
def double():
    return jax.jit(lambda x, times: x * times, static_argnames="times")


def test_a_function_that_compiles_sooner_gives_the_same(double):
    sooner = CompiledSooner(double, static_argnames="times")
    np.testing.assert_array_equal(sooner(np.arange(4.0), 2), [0, 2, 4, 6])
    assert sooner._program is not double


def test_an_xla_without_these_options_compiles_as_ever(double, monkeypatch):
    monkeypatch.setattr(programs, "_SOONER", {"xla_cpu_of_the_past": True})
    sooner = CompiledSooner(double, static_argnames="times")
    np.testing.assert_array_equal(sooner(np.arange(4.0), 2), [0, 2, 4, 6])
    assert sooner._program is double


def test_other_errors_of_a_program_are_not_hidden(monkeypatch):
    monkeypatch.setattr(programs, "_SOONER", {"xla_backend_optimization_level": "much"})
    with pytest.raises(jax.errors.JaxRuntimeError, match="much"):
        CompiledSooner(jax.jit(lambda x: x), static_argnames=())(1.0)


@pytest.mark.parametrize(("limit", "unused"), [(np.inf, "advance"), (0, "advance_briefly")])
def test_fits_of_few_updates_compile_sooner(limit, unused, monkeypatch):
    monkeypatch.setattr(fitting, "_BRIEF", limit)
    monkeypatch.setattr(sources, unused, None)
    popcd.BernoulliRBM(n_components=3, n_iter=1, random_state=0).fit(np.eye(8))


@pytest.mark.parametrize("estimator", ["cd", "pcd", "pop-cd", "pt", "exact"])
def test_fits_that_compile_sooner_learn_the_same(estimator, monkeypatch):
    rows, found = popcd.datasets.load("bars-and-stripes").train, []
    for limit in (np.inf, 0):
        monkeypatch.setattr(fitting, "_BRIEF", limit)
        machine = popcd.BernoulliRBM(n_components=6, n_iter=20, estimator=estimator, batch_size=8, random_state=1).fit(rows)
        found.append(machine.components_)
    np.testing.assert_allclose(*found, rtol=0, atol=1e-5 * np.abs(found[0]).max())  # sums are made in another order


def test_a_brief_fit_is_one_of_few_products():
    rbm = popcd.RBM.create(64, 100)
    assert is_brief(popcd.pcd(), 7190, np.int32(10), rbm)  # scikit-learn's example
    assert not is_brief(popcd.pcd(k=10), 7190, 10, rbm)
    assert not is_brief(popcd.pcd(n_chains=1000), 7190, 10, rbm)
    assert not is_brief(popcd.pt(), 7190, 10, rbm)
    assert not is_brief(popcd.exact(), 1, 10, rbm)
    assert not is_brief(popcd.pcd(), np.int32(100_000), np.int32(100), popcd.RBM.create(784, 500))


def test_programs_of_other_devices_are_compiled_as_ever(double, monkeypatch):
    sooner = CompiledSooner(double, static_argnames="times")
    sooner._program = None
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    np.testing.assert_array_equal(sooner(np.arange(4.0), 2), [0, 2, 4, 6])


def test_full_collections_wait_for_the_end_of_the_last_fit():
    before = gc.get_threshold()

    @without_full_collections()
    def fail():
        with without_full_collections():
            pass
        raise ZeroDivisionError(*gc.get_threshold())

    with pytest.raises(ZeroDivisionError) as error:
        fail()
    assert error.value.args[0] > before[0]
    assert error.value.args[1] == before[1]
    assert error.value.args[2] > 1_000_000
    assert gc.get_threshold() == before


def test_a_collector_that_is_off_stays_off():
    before = gc.get_threshold()
    gc.set_threshold(0, *before[1:])
    try:
        with without_full_collections():
            assert gc.get_threshold()[0] == 0
    finally:
        gc.set_threshold(*before)


def test_garbage_of_many_fits_does_not_pile_up():
    class Ring:
        pass

    alive = []
    for _ in range(300):
        ring = Ring()
        ring.self, _ = ring, alive.append(weakref.ref(ring))
        del ring
        with without_full_collections():
            [[] for _ in range(2000)]
            kept = [[] for _ in range(2000)]
        del kept
    assert sum(one() is not None for one in alive) < 50
