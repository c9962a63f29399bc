"""Where compiled programs are kept."""

import os
import subprocess
import sys

import pytest

FIT = """
import numpy as np, popcd, jax
rows, compiled = np.eye(8), []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, _, **about: compiled.append(about["fun_name"]) if event.endswith("backend_compile_duration") else None
)
machine = popcd.BernoulliRBM(n_components=3, n_iter=1, random_state=0).fit(rows)
print(jax.config.jax_compilation_cache_dir, machine.components_.sum(), *compiled)
"""


def fit(**words: str) -> list[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")} | words
    done = subprocess.run([sys.executable, "-W", "error", "-c", FIT], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


def test_the_scikit_learn_estimator_keeps_its_programs(tmp_path):
    first, again = (fit(XDG_CACHE_HOME=str(tmp_path)) for _ in range(2))
    assert first == again
    assert list((tmp_path / "popcd" / "programs").glob("*/jit_advance*"))


def test_a_first_fit_compiles_its_beginning_and_its_updates_only(tmp_path):
    """Each further program, such as that of `jax.random.key`, would add some hundredths of a second."""
    _, _, *compiled = fit(XDG_CACHE_HOME=str(tmp_path))
    assert compiled == ["jit(init)", "jit(advance)"]


@pytest.mark.parametrize("words", [{"XDG_CACHE_HOME": "{}/file"}, {"JAX_COMPILATION_CACHE_DIR": "{}/mine"}])
def test_a_folder_of_the_user_s_or_none_is_left_as_it_is(words, tmp_path):
    (tmp_path / "file").touch()
    words = {name: value.format(tmp_path) for name, value in words.items()}
    folder, *_ = fit(**words)
    assert folder == words.get("JAX_COMPILATION_CACHE_DIR", "None")
