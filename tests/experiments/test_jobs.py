"""Jobs and workers in this process, on short trainings."""

import queue
import sys
from dataclasses import replace

import numpy as np
import pytest

import popcd
import popcd.experiments.jobs as jobs
import popcd.experiments.runner as runner
from popcd.experiments.paper import CD_1, MIXTURE_1, PCD_1, POP_10, PT, Annealing, Tempering, specifications
from popcd.experiments.store import Job, Store

CURVE = replace(specifications("figure1", "smoke")[0], iterations=30, evaluate_every=10)
CELL = replace(specifications("table1", "smoke")[0], iterations=20, repeats=5)


@pytest.fixture
def store(tmp_path):
    return Store.open(tmp_path / "out", "smoke")


def done(job, store):
    parts = []
    jobs.do(job, store, parts.append)
    return store.read(job)["result"], parts


def test_a_curve_is_the_exact_log_likelihood_along_training(store):
    result, parts = done(Job(CURVE, 0), store)
    data = popcd.datasets.load("bars-and-stripes").train
    run = popcd.train(
        popcd.RBM.create(16, 16, seed=0), data, popcd.cd(), iterations=30, batch_size=32, learning_rate=0.1, evaluate_every=10
    )
    assert result["curve"]["step"] == [10, 20, 30]
    np.testing.assert_allclose(result["curve"]["log_likelihood"], run.history["log_likelihood"], atol=1e-6)
    assert parts == [1 / 3, 2 / 3, 1.0]
    np.testing.assert_array_equal(popcd.load(store.model(f"{CURVE.name}-seed-0")).weights, run.rbm.weights)
    assert not store.model(f"{CURVE.name}-seed-1").exists()


@pytest.mark.parametrize(
    ("algorithm", "expected"),
    [
        (CD_1, popcd.cd(1)),
        (POP_10, popcd.pop_cd(10)),
        (MIXTURE_1, popcd.pop_cd(1, proposal="mixture")),
        (PCD_1, popcd.pcd(1)),
        (PT, popcd.pt(n_temperatures=10, n_ladders=1, sweeps=32)),
    ],
    ids=lambda value: str(value),
)
def test_words_name_the_papers_estimators(algorithm, expected):
    assert jobs.estimator_of(algorithm, batch_size=32) is expected


def test_a_large_machine_has_a_bracket_at_every_evaluation(store):
    result, _ = done(Job(replace(CURVE, annealing=Annealing(8, 20, 4, 8)), 0), store)
    curve = result["curve"]
    assert [len(curve[name]) for name in ("log_likelihood", "lower", "upper", "trustworthy")] == [3, 3, 3, 3]


def test_training_that_becomes_non_finite_ends_its_curve_and_says_where(store, monkeypatch):
    spec = replace(CURVE, learning_rate=0.1)
    run = popcd.Run(popcd.RBM.create(16, 16), {"step": np.array([10]), "log_likelihood": np.array([-11.0])}, None)

    def diverging(*_, **__):
        raise popcd.TrainingDivergedError(17, run)

    monkeypatch.setattr(jobs, "train", diverging)
    result, _ = done(Job(spec, 0), store)
    assert result["non_finite_at"] == 17
    assert result["curve"]["step"] == [10]


def test_a_cell_is_the_gradient_error_of_a_machine_trained_with_cd(store):
    result, parts = done(Job(CELL, 3), store)
    data = popcd.datasets.load("bars-and-stripes").train
    rbm = popcd.load(store.model(f"{CELL.machine}-seed-3"))
    expected = popcd.gradient_error(rbm, data, popcd.cd(), batch_size=32, repeats=5, seed=3)
    assert (result["bias"], result["variance"]) == (expected.bias, expected.variance)
    assert parts[-1] == 1.0
    before = store.model(f"{CELL.machine}-seed-3").stat().st_mtime_ns
    done(Job(replace(CELL, algorithm=POP_10), 3), store)
    assert store.model(f"{CELL.machine}-seed-3").stat().st_mtime_ns == before


def test_a_damaged_machine_is_trained_again(store):
    done(Job(CELL, 0), store)
    path = store.model(f"{CELL.machine}-seed-0")
    whole = path.read_bytes()
    path.write_bytes(whole[:50])
    done(Job(CELL, 0), store)
    assert path.read_bytes() == whole


def test_a_sampled_truth_is_kept_with_its_noise(store, monkeypatch):
    monkeypatch.setattr(sys.modules["popcd.evaluation.true_gradient"], "AUTO_UNITS", 2)
    cell = replace(CELL, tempering=Tempering(4, 16, 20))
    first, _ = done(Job(cell, 0), store)
    monkeypatch.setattr(jobs, "true_gradient", None)
    second, _ = done(Job(cell, 0), store)
    assert first == second
    assert first["truth"] == "tempered"
    assert first["noise_floor"] > 0


def test_a_worker_does_all_jobs_and_tells_of_each(store):
    work, events = [Job(CURVE, 0), Job(CELL, 0)], queue.Queue()
    runner._work(work, store, events)
    runner._work(work, store, events)
    told = [(event.kind, event.job) for event in events.queue if event.kind in ("done", "there")]
    assert told == [("done", work[0].name), ("done", work[1].name), ("there", work[0].name), ("there", work[1].name)]


def test_a_job_that_fails_is_named_and_the_others_are_done(store, monkeypatch):
    real = jobs.do

    def failing(job, *rest):
        if job.seed == 0:
            raise MemoryError("too much")
        real(job, *rest)

    monkeypatch.setattr(jobs, "do", failing)
    events = queue.Queue()
    runner._work([Job(CURVE, 0), Job(CURVE, 1)], store, events)
    failures = runner._listen(events, lambda event: None)
    assert failures == [f"{Job(CURVE, 0).name}: MemoryError: too much"]
    assert store.read(Job(CURVE, 1)) is not None


def test_a_job_whose_machine_another_process_trains_waits(store, monkeypatch):
    def taken(*_):
        raise jobs.TakenError

    monkeypatch.setattr(jobs, "do", taken)
    assert not runner._try(Job(CELL, 0), store, queue.Queue())
