"""What processes of one run say to each other, in one process; real ones are in commands/test_distributed.py."""

import jax
import numpy as np
import pytest
from jax.errors import JaxRuntimeError

import popcd.commands.cluster as cluster
import popcd.runs.distributed as distributed


@pytest.fixture
def two_processes(monkeypatch):
    """Process 0 of two, the other of which says the same but for its second fact."""

    def gathered(own):
        other = np.array(own)
        other[1:] += 1
        return np.stack([own, other])

    monkeypatch.setattr(jax, "process_count", lambda: 2)
    monkeypatch.setattr(distributed.multihost_utils, "process_allgather", gathered)
    monkeypatch.setattr(distributed.multihost_utils, "broadcast_one_to_all", lambda tree: tree)


def test_one_process_agrees_with_itself():
    distributed.agree({"data": 1})
    assert distributed.led(lambda: 3) == 3
    assert distributed.any_process(True, False) == [True, False]
    assert distributed.from_leader(5) == 5
    with pytest.raises(ValueError, match="Gloo"), distributed.lost_processes("runs/a"):
        raise ValueError("Gloo")


@pytest.mark.usefixtures("two_processes")
def test_a_fact_that_differs_is_named():
    with pytest.raises(distributed.DistributedError, match=r"with process 0: another jax in processes \[1\]. Start all alike"):
        distributed.agree({"data": 1, "jax": 2})


@pytest.mark.usefixtures("two_processes")
def test_a_flag_of_another_process_counts():
    assert distributed.any_process(False, False) == [False, True]


@pytest.mark.usefixtures("two_processes")
def test_what_process_0_cannot_do_fails():
    assert distributed.led(lambda: 3) == 3
    with pytest.raises(OSError, match="disk"):
        distributed.led(lambda: (_ for _ in ()).throw(OSError("disk")))


@pytest.mark.usefixtures("two_processes")
@pytest.mark.parametrize("error", [JaxRuntimeError("UNKNOWN: a peer is gone"), ValueError("Gloo: closed")])
def test_a_lost_process_is_told_with_what_to_do(error):
    said = "process 0 lost another process: .* whole; start all processes again with --resume runs/a"
    with pytest.raises(distributed.DistributedError, match=said), distributed.lost_processes("runs/a"):
        raise error


@pytest.mark.usefixtures("two_processes")
def test_other_errors_stay_what_they_are():
    with pytest.raises(ValueError, match="mine"), distributed.lost_processes("runs/a"):
        raise ValueError("mine")


def test_a_process_that_fails_ends_at_once(monkeypatch, capsys):
    ends = []
    monkeypatch.setattr(cluster.os, "_exit", ends.append)
    monkeypatch.setattr(distributed, "join", lambda *_, **__: (_ for _ in ()).throw(distributed.DistributedError("no way")))
    with pytest.raises(RuntimeError), cluster.joined(cluster.Processes("a:1", 2, 0, 1.0), "runs/a"):
        pass
    assert ends == [1]
    assert "Error: no way" in capsys.readouterr().err
