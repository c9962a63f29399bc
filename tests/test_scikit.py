"""The scikit-learn estimator: scikit-learn's own checks and tests, and what ours adds."""

import importlib
import inspect
import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import BernoulliRBM as Original
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import popcd
import reference
from popcd import BernoulliRBM

STRIPES = popcd.datasets.load("bars-and-stripes").train.astype(float)
DIGITS = load_digits().data / 16
LETTERS = popcd.datasets.load("letters").test[:300]
# Checks of scikit-learn hand over data that are no probabilities; ours says so, and goes on as scikit-learn's does
not_probabilities = pytest.mark.filterwarnings("ignore:X has values from")


@not_probabilities
@parametrize_with_checks(
    [
        BernoulliRBM(n_components=6, n_iter=2),
        BernoulliRBM(n_components=6, n_iter=2, estimator=popcd.pop_cd(proposal="mixture"), centered=True),
    ]
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


theirs = importlib.import_module("sklearn.neural_network.tests.test_rbm")
OTHERWISE = {
    "test_transform": "calls a private method of scikit-learn's class; the same property is below",
    "test_sample_hiddens": "calls a private method of scikit-learn's class; the same property is below",
    "test_score_samples": "scores rows up to 99,900 where ours asks for 0 and 1; the same properties are below",
    "test_fit_gibbs": "expects the parameters that scikit-learn's random numbers give; the same property is below",
}


def theirs_with_arguments():
    """Every test of theirs with every choice of its parameters."""
    found = []
    for name, function in vars(theirs).items():
        if name.startswith("test_") and name not in OTHERWISE:
            marks = [mark.args for mark in getattr(function, "pytestmark", []) if mark.name == "parametrize"]
            for values in itertools.product(*(choices for _, choices in marks)):
                arguments = {}
                for (names, _), value in zip(marks, values, strict=True):
                    split = names.replace(" ", "").split(",")
                    arguments |= dict(zip(split, value if len(split) > 1 else (value,), strict=True))
                found.append(pytest.param(function, arguments, id=f"{name}-{'-'.join(str(v)[-25:] for v in values)}"))
    return found


@not_probabilities
@pytest.mark.parametrize(("function", "arguments"), theirs_with_arguments())
def test_scikit_learns_own_tests(function, arguments, monkeypatch, request):
    monkeypatch.setattr(theirs, "BernoulliRBM", BernoulliRBM)
    wanted = [n for n in inspect.signature(function).parameters if n not in arguments]
    function(**arguments, **{name: request.getfixturevalue(name) for name in wanted})


@pytest.fixture(scope="module")
def fitted():
    return BernoulliRBM(n_components=8, batch_size=8, n_iter=300, random_state=0).fit(STRIPES)


def test_transform_and_back_are_the_conditional_means(fitted):
    w, b, c = reference.parameters(fitted.rbm_)
    hidden = 1 / (1 + np.exp(-(STRIPES @ w + c)))
    np.testing.assert_allclose(fitted.transform(STRIPES), hidden, rtol=1e-12)
    np.testing.assert_allclose(fitted.inverse_transform(hidden), 1 / (1 + np.exp(-(hidden @ w.T + b))), rtol=1e-12)
    np.testing.assert_array_equal(fitted.reconstruct(STRIPES), fitted.inverse_transform(fitted.transform(STRIPES)))


def test_gibbs_draws_the_second_half_of_a_sweep(fitted, seed):
    """The mean of many sweeps from one row, against the sum over hidden states."""
    rbm, row = fitted.rbm_, STRIPES[5]
    fitted.random_state_ = np.random.RandomState(seed)
    n = 20_000
    drawn = fitted.gibbs(np.tile(row, (n, 1)))
    assert drawn.dtype == bool
    hidden = reference.states(8)
    w, b, c = reference.parameters(rbm)
    on = 1 / (1 + np.exp(-(row @ w + c)))
    law = np.prod(np.where(hidden > 0, on, 1 - on), axis=1)
    mean = law @ (1 / (1 + np.exp(-(hidden @ w.T + b))))
    error = np.sqrt(mean * (1 - mean) / n)
    assert (np.abs(drawn.mean(axis=0) - mean) < 6 * error + 1e-9).all()


def test_scores_of_a_small_machine_are_exact_log_likelihoods(fitted):
    exact = popcd.log_likelihood(fitted.rbm_, STRIPES)
    np.testing.assert_allclose(fitted.score_samples(STRIPES), exact.rows)
    np.testing.assert_allclose(fitted.score(STRIPES), exact.value)
    assert fitted.log_partition_.method == "exact"
    np.testing.assert_array_equal(fitted.score_samples(STRIPES), fitted.score_samples(scipy.sparse.csc_matrix(STRIPES)))


def test_the_pseudo_likelihood_is_the_mean_over_features_of_scikit_learns_random_one(fitted):
    """Of grey and of binary rows; scikit-learn flips one random feature, here every one in turn."""
    original = fitted.to_sklearn()
    for rows in (STRIPES, np.random.default_rng(0).random((5, 16))):
        each = np.zeros(len(rows))
        for feature in range(16):
            flipped = rows.copy()
            flipped[:, feature] = 1 - flipped[:, feature]
            each -= np.logaddexp(0, -(original._free_energy(flipped) - original._free_energy(rows)))
        np.testing.assert_allclose(fitted.score_samples(rows, "pseudo-likelihood"), each, rtol=2e-5)


def test_a_large_machine_has_pseudo_likelihoods_until_its_log_partition_is_known():
    rbm = BernoulliRBM(n_components=24, n_iter=2, random_state=0).fit(LETTERS)
    first = rbm.score_samples(LETTERS)
    np.testing.assert_allclose(first.mean(), popcd.pseudo_log_likelihood(rbm.rbm_, LETTERS).value, rtol=1e-6)
    found = rbm.score(LETTERS)
    estimate = rbm.log_partition_
    assert estimate.method == "ais"
    assert estimate.lower < estimate.upper
    np.testing.assert_allclose(rbm.score_samples(LETTERS).mean(), found)
    assert rbm.log_partition_ is estimate
    rbm.intercept_hidden_ += 0.1  # another machine: what was known is no longer
    np.testing.assert_allclose(
        rbm.score_samples(LETTERS).mean(), popcd.pseudo_log_likelihood(rbm.rbm_, LETTERS).value, rtol=1e-6
    )


def test_scores_are_not_clipped_and_stay_finite():
    X = np.vstack([np.zeros(1000), np.ones(1000)])
    rbm = BernoulliRBM(n_components=10, batch_size=2, n_iter=10, random_state=42).fit(X)
    for method in ("log-likelihood", "pseudo-likelihood"):
        found = rbm.score_samples(X, method)
        assert (found < -300).all()
        np.testing.assert_array_equal(found, rbm.score_samples(scipy.sparse.lil_matrix(X), method))
    assert np.isfinite(rbm.score_samples([np.arange(1000) * 100.0], "pseudo-likelihood")).all()


def test_one_unit_learns_its_two_rows_sparse_or_dense(seed):
    X = np.array([[0.0], [1.0]])
    rbm = BernoulliRBM(n_components=4, batch_size=2, n_iter=3_000, estimator="exact", random_state=seed)
    rbm.fit(scipy.sparse.csc_matrix(X))
    np.testing.assert_array_equal(rbm.components_, clone(rbm).fit(X).components_)
    np.testing.assert_allclose(np.exp(rbm.score_samples(X)), 0.5, rtol=1e-3)


def test_grey_values_have_no_likelihood(fitted):
    grey = BernoulliRBM(n_components=6, n_iter=1, random_state=0).fit(DIGITS[:50])
    assert not grey.binary_
    np.testing.assert_allclose(grey.score(DIGITS[:50]), grey.score_samples(DIGITS[:50], "pseudo-likelihood").mean())
    with pytest.raises(ValueError, match="X must hold only 0 and 1"):
        fitted.score(np.full((1, 16), 0.5))


def test_values_that_are_no_probabilities_are_told():
    with pytest.warns(UserWarning, match=r"X has values from 0 to 16: .*MinMaxScaler"):
        BernoulliRBM(n_components=2, n_iter=1).fit(16 * DIGITS[:20])


@pytest.mark.parametrize("word", ["cd", "pcd", "pt", "pop-cd", "exact", popcd.pop_cd(proposal="mixture")], ids=str)
def test_every_estimator_learns_by_name_or_object(word):
    rbm = BernoulliRBM(n_components=8, estimator=word, batch_size=32, n_iter=2_000, random_state=1).fit(STRIPES)
    assert rbm.score(STRIPES) > -8
    assert rbm.h_samples_.shape == (32, 8)
    assert rbm.history_["step"][-1] == 2_000
    assert {"ess", "gradient_norm", "largest_weight"} <= rbm.history_.keys()
    copy = pickle.loads(pickle.dumps(clone(rbm).fit(STRIPES)))
    np.testing.assert_array_equal(copy.components_, rbm.components_)


def test_it_trains_what_the_library_trains():
    settings = {"n_components": 5, "estimator": "cd", "k": 2, "batch_size": 8, "n_iter": 5, "random_state": 7}
    seed = np.random.RandomState(7).randint(np.iinfo(np.int32).max)
    start, words = popcd.RBM.create(16, 5, seed=seed, data=STRIPES), {"batch_size": 8, "learning_rate": 0.1, "seed": seed}
    last, before = (popcd.train(start, STRIPES, popcd.cd(2), iterations=n, **words).rbm.weights.T for n in (20, 19))
    np.testing.assert_array_equal(BernoulliRBM(**settings, average=False).fit(STRIPES).components_, last)
    np.testing.assert_array_equal(BernoulliRBM(**settings).fit(STRIPES).components_, (last + before) / 2)  # a tenth of 20


def test_the_mean_machine_is_the_better_one(seed):
    settings = {"n_components": 8, "batch_size": 8, "n_iter": 500, "random_state": seed, "learning_rate": 0.3}
    mean, last = (BernoulliRBM(**settings, average=average).fit(STRIPES).score(STRIPES) for average in (True, False))
    assert mean > last


def test_partial_fit_goes_on_where_fit_and_pickling_left_off():
    rbm = BernoulliRBM(n_components=5, batch_size=8, n_iter=2, random_state=0)
    assert rbm.partial_fit(STRIPES[:8]) is rbm
    copy = pickle.loads(pickle.dumps(rbm))
    for machine in (rbm, copy):
        machine.partial_fit(STRIPES[8:20]).partial_fit(STRIPES[20:])
    np.testing.assert_array_equal(rbm.components_, copy.components_)
    np.testing.assert_array_equal(rbm.h_samples_, copy.h_samples_)
    rbm.set_params(n_chains=3).partial_fit(STRIPES)  # other chains begin anew
    assert rbm.h_samples_.shape == (3, 5)
    state = rbm.__getstate__()["_state"]
    assert {type(leaf) for leaf in (*state["chains"], *state["offsets"])} == {np.ndarray}
    assert state["step"] == 4


@pytest.mark.parametrize("estimator", [popcd.pcd(), "pcd"], ids=str)
def test_chains_and_random_numbers_go_on_through_batches_of_any_size(estimator):
    rbm = BernoulliRBM(n_components=5, batch_size=8, random_state=0, estimator=estimator, learning_rate=0.0)
    drawn = []
    for n in (10, 12, 10, 7):
        rbm.partial_fit(STRIPES[:n])
        drawn.append(rbm._state["chains"][0])
    assert rbm._state["step"] == 4
    assert {len(chains) for chains in drawn} == {8 if estimator == "pcd" else 10}
    assert all((a != b).any() for a, b in itertools.combinations(drawn, 2))


def test_a_fit_that_fails_changes_nothing(fitted):
    rbm = pickle.loads(pickle.dumps(fitted)).set_params(estimator="sml")
    before = {name: np.asarray(value) for name, value in vars(rbm).items() if isinstance(value, np.ndarray)}
    for method in (rbm.fit, rbm.partial_fit):
        with pytest.raises(ValueError, match="unknown estimator"):
            method(STRIPES[:, ::-1])
    for name, value in before.items():
        np.testing.assert_array_equal(getattr(rbm, name), value)
    new = BernoulliRBM(n_components=4, estimator="sml")
    with pytest.raises(ValueError, match="unknown estimator"):
        new.partial_fit(STRIPES)
    assert new.set_params(estimator="cd").partial_fit(STRIPES).transform(STRIPES).shape == (32, 4)


def test_what_was_learned_can_be_changed_by_hand():
    for dtype in (np.float32, np.float64):
        rbm = BernoulliRBM(n_components=2, n_iter=1).fit(STRIPES.astype(dtype))
        for array in (rbm.components_, rbm.intercept_hidden_, rbm.intercept_visible_, rbm.h_samples_):
            array += 1
            assert array.dtype == dtype


def test_conversion_there_and_back_with_scikit_learn(fitted):
    original = fitted.to_sklearn()
    assert isinstance(original, Original)
    np.testing.assert_allclose(original.transform(STRIPES), fitted.transform(STRIPES))
    original.partial_fit(STRIPES)
    back = BernoulliRBM.from_sklearn(original)
    np.testing.assert_array_equal(back.components_, original.components_)
    np.testing.assert_allclose(back.score(STRIPES), popcd.log_likelihood(popcd.load(original), STRIPES).value)
    before = back.components_.copy()
    assert (back.partial_fit(STRIPES).components_ != before).any()
    np.testing.assert_array_equal(original.get_feature_names_out(), back.get_feature_names_out())


def test_frames_go_in_and_come_out():
    frame = pd.DataFrame(STRIPES, columns=[f"pixel {i}" for i in range(16)])
    rbm = BernoulliRBM(n_components=3, n_iter=1, random_state=0).set_output(transform="pandas")
    found = rbm.fit_transform(frame)
    assert list(found.columns) == ["bernoullirbm0", "bernoullirbm1", "bernoullirbm2"]
    assert list(rbm.feature_names_in_[:2]) == ["pixel 0", "pixel 1"]


def test_a_grid_search_in_processes_chooses_by_likelihood():
    grid = {"estimator": ["cd", popcd.pop_cd(proposal="mixture")], "n_components": [1, 8]}
    rbm = BernoulliRBM(batch_size=16, n_iter=500, random_state=0)
    found = GridSearchCV(rbm, grid, cv=2, n_jobs=2, error_score="raise").fit(np.tile(STRIPES, (2, 1)))
    assert found.best_params_["n_components"] == 8
    assert np.isfinite(found.cv_results_["mean_test_score"]).all()


def test_a_pipeline_classifies_digits():
    labels = load_digits().target
    pipeline = make_pipeline(BernoulliRBM(n_components=64, n_iter=10, random_state=0), LogisticRegression(max_iter=1000))
    assert pipeline.fit(DIGITS[:1000], labels[:1000]).score(DIGITS[1000:], labels[1000:]) > 0.8


def test_draws_follow_the_seed(fitted):
    assert fitted.sample(7).shape == (7, 16)
    np.testing.assert_array_equal(fitted.sample(4, random_state=3), fitted.sample(4, random_state=3))
    assert (fitted.sample(50) != fitted.sample(50)).any()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n_components": 0}, "n_components must be a whole number of at least 1"),
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1"),
        ({"n_iter": -1}, "n_iter must be a whole number of at least 0"),
        ({"learning_rate": -1.0}, "learning_rate must be a finite number"),
        ({"estimator": "sml"}, "unknown estimator 'sml': expected one of cd, pcd"),
        ({"estimator": "exact", "k": 3}, "estimator 'exact' has no k"),
        ({"estimator": "cd", "n_chains": 3}, "estimator 'cd' has no n_chains"),
        ({"estimator": popcd.cd(), "k": 3}, "has settings of its own"),
    ],
)
def test_bad_settings_are_named(settings, words):
    with pytest.raises(ValueError, match=words):
        BernoulliRBM(**settings).fit(STRIPES)


def test_wrong_hidden_widths_are_named(fitted):
    with pytest.raises(ValueError, match="X has 3 columns, but the machine has 8 components"):
        fitted.inverse_transform(np.zeros((2, 3)))
