import json

import jax
import numpy as np
import optax
import pytest

import popcd
import popcd.runs.checkpoint as checkpoint
from popcd.chunks import prepare
from popcd.io import parse_safetensors, serialise

DATA = popcd.datasets.load("bars-and-stripes").train
ESTIMATORS = [popcd.cd(), popcd.pcd(), popcd.pt(3), popcd.pop_cd(), popcd.exact()]


def training(estimator, hidden=4, **settings):
    return prepare(popcd.RBM.create(16, hidden), DATA, estimator, batch_size=8, **settings)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_a_state_comes_back_bit_for_bit(tmp_path, estimator):
    run = training(estimator, learning_rate=optax.linear_schedule(0.1, 0.0, 50), centered=True)
    state = list(run.chunks(20))[-1].state
    path = checkpoint.write(tmp_path, state, {"seed": 3})
    back, header = checkpoint.read(path, run.first)
    assert (header["step"], header["seed"], path.name) == (20, 3, "step-000000000020.safetensors")
    assert jax.tree.structure(back) == jax.tree.structure(state)
    for one, two in zip(jax.tree.leaves(back), jax.tree.leaves(state), strict=True):
        assert one.dtype == two.dtype
        np.testing.assert_array_equal(one, two)


def test_the_last_two_are_kept(tmp_path):
    for chunk in training(popcd.cd()).chunks(50, stops=(10,)):
        checkpoint.write(tmp_path, chunk.state, {})
    assert [p.name[5:17] for p in checkpoint.found(tmp_path)] == ["000000000040", "000000000050"]


def rewritten(path, change):
    """The file with a changed header but whole arrays."""
    arrays, metadata = parse_safetensors(path)
    content = json.loads(metadata["popcd"])
    change(content)
    path.write_bytes(serialise(arrays, {"popcd": json.dumps(content)}))


def test_what_was_altered_or_cut_off_is_refused(tmp_path):
    run = training(popcd.pcd())
    path = checkpoint.write(tmp_path, run.first, {"seed": 0})
    whole = path.read_bytes()
    for damaged in (whole[:-1], whole[:100], b"", whole[:-5] + bytes([whole[-5] ^ 1]) + whole[-4:], whole + b"x"):
        path.write_bytes(damaged)
        with pytest.raises(popcd.FileError):
            checkpoint.read(path, run.first)
    for change in (lambda c: c.update(seed=1), lambda c: c.pop("checksum"), lambda c: c.update(step=7)):
        path.write_bytes(whole)
        rewritten(path, change)
        with pytest.raises(popcd.FileError):
            checkpoint.read(path, run.first)


def test_another_format_or_other_settings_are_named(tmp_path, monkeypatch):
    run = training(popcd.cd())
    path = checkpoint.write(tmp_path, run.first, {})
    with pytest.raises(popcd.FileError, match="a run with other settings"):
        checkpoint.read(path, training(popcd.cd(), hidden=5).first)
    now = checkpoint.FORMAT
    monkeypatch.setattr(checkpoint, "FORMAT", now + 1)
    with pytest.raises(popcd.FileError, match=f"has format {now}, this version reads format {now + 1}"):
        checkpoint.read(path, run.first)
