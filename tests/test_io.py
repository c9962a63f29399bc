import numpy as np
import pytest

import popcd
from machines import WIDE


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_machine_comes_back_bit_for_bit(tmp_path, dtype):
    rbm = popcd.RBM(*(np.asarray(leaf, dtype) for leaf in (WIDE.weights, WIDE.visible_bias, WIDE.hidden_bias)))
    popcd.save(rbm, tmp_path / "model.safetensors")
    back = popcd.load(str(tmp_path / "model.safetensors"))
    for name in ("weights", "visible_bias", "hidden_bias"):
        assert getattr(back, name).dtype == dtype
        np.testing.assert_array_equal(getattr(back, name), getattr(rbm, name))


def test_npz_files_with_the_papers_letters_are_read(tmp_path):
    np.savez(tmp_path / "m.npz", W=WIDE.weights, b=WIDE.visible_bias, c=WIDE.hidden_bias)
    np.testing.assert_array_equal(popcd.load(tmp_path / "m.npz").weights, WIDE.weights)


def test_files_that_hold_no_machine_are_named(tmp_path):
    np.savez(tmp_path / "m.npz", W=np.zeros((2, 2)), b=np.zeros(2))
    with pytest.raises(ValueError, match="has no array c: expected W, b, c, got W, b"):
        popcd.load(tmp_path / "m.npz")
    np.savez(tmp_path / "o.npz", W=np.array([{}]), b=1, c=1)
    with pytest.raises(ValueError, match="plain arrays"):
        popcd.load(tmp_path / "o.npz")
    (tmp_path / "m.safetensors").write_bytes(b"\xff" * 100)
    with pytest.raises(ValueError, match="is not a safetensors file, or was cut off"):
        popcd.load(tmp_path / "m.safetensors")
    with pytest.raises(FileNotFoundError):
        popcd.load(tmp_path / "none.safetensors")
