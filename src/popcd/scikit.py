"""A scikit-learn estimator in the place of `sklearn.neural_network.BernoulliRBM`."""

import itertools
import math
import time
from collections.abc import Callable, Mapping
from typing import Any, Self

import jax.numpy as jnp
import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array, check_random_state
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from popcd.checks import non_negative, positive_int
from popcd.chunks import Training
from popcd.estimators import Estimator
from popcd.evaluation.bracket import BASE_MARGIN
from popcd.evaluation.pseudo import pseudo_rows
from popcd.fitting import (
    FLOATS,
    chain_states,
    checked_rows,
    continued,
    dense,
    drawn_seed,
    named_estimator,
    plain_state,
    rated_training,
)
from popcd.kernels.gibbs import sweep
from popcd.prng import root_key
from popcd.programs import keep_compiled_programs, without_full_collections
from popcd.rbm import RBM, mean_logits, start_from_means
from popcd.sampling import sample
from popcd.scores import ScoreMixin
from popcd.training import climb
from popcd.updates import TrainState

_SHOWN_ROWS, _LEAST_UPDATES = 1_000, 100
_SHARED = ("n_components", "learning_rate", "batch_size", "n_iter", "verbose", "random_state")

keep_compiled_programs()  # users of scikit-learn fit small machines in many short processes


class BernoulliRBM(ScoreMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A binary RBM as a scikit-learn transformer, a replacement of `sklearn.neural_network.BernoulliRBM`.

    Parameters
    ----------
    n_components : hidden units.
    learning_rate : of plain gradient ascent on the mean log-likelihood.
    batch_size : rows per update; batches are full and rows are shuffled for every epoch.
    n_iter : epochs, each of `ceil(rows / batch_size)` updates.
    verbose : prints a line per epoch where it is not 0, as scikit-learn does, from at most 1,000 rows.
    random_state : an integer gives the same machine every time.
    estimator : "pcd" (scikit-learn's algorithm), "cd", "pt", "pop-cd", "exact", or an object such as
        `popcd.pop_cd(proposal="mixture")`.
    k : Gibbs sweeps per update of cd, pcd and pop-cd.
    n_chains : chains of pcd, ladders of pt, particles of pop-cd; None takes `batch_size`, for pop-cd the rows of an update.
    centered : centred gradients.
    average : `fit` ends with the mean machine over the last tenth of the updates, which takes the noise of a constant
        learning rate out of it; False keeps the last machine, as scikit-learn does.

    `fit`, `partial_fit`, `transform`, `gibbs` and `reconstruct` take values from 0 to 1 as probabilities of the units, where
    scikit-learn does. Likelihoods are those of binary rows.

    Attributes
    ----------
    components_ : hidden x visible; intercept_hidden_, intercept_visible_ : biases.
    h_samples_ : hidden states drawn given the chains, or given the first rows where the estimator keeps no chains.
    history_ : arrays by name, step, ess, gradient_norm, largest_weight, with a row per epoch, or per 100 updates where an
        epoch has fewer.
    binary_ : whether all values seen in fitting were 0 or 1.
    rbm_ : the machine as a `popcd.RBM`.
    log_partition_ : log Z as an `Estimate` with its bracket, computed when it is first asked for.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn.

    References
    ----------
    Tieleman (2008), Training restricted Boltzmann machines using approximations to the likelihood gradient.

    Examples
    --------
    >>> import popcd
    >>> X = popcd.datasets.load("bars-and-stripes").train
    >>> rbm = popcd.BernoulliRBM(n_components=8, estimator="pop-cd", batch_size=32, n_iter=2000, random_state=0).fit(X)
    >>> rbm.transform(X).shape, bool(rbm.score(X) > -9)  # 16 log 2 = 11.09 is where it began
    ((32, 8), True)
    """

    def __init__(
        self,
        n_components: int = 256,
        *,
        learning_rate: float = 0.1,
        batch_size: int = 10,
        n_iter: int = 10,
        verbose: int = 0,
        random_state: Any = None,
        estimator: str | Estimator = "pcd",
        k: int = 1,
        n_chains: int | None = None,
        centered: bool = False,
        average: bool = True,
    ):
        self.n_components = n_components
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.n_iter = n_iter
        self.verbose = verbose
        self.random_state = random_state
        self.estimator = estimator
        self.k = k
        self.n_chains = n_chains
        self.centered = centered
        self.average = average

    @without_full_collections()
    def fit(self, X: Any, y: Any = None) -> Self:
        """Train a new machine on X, samples x features; y is ignored."""
        X = validate_data(self, X, accept_sparse="csr", dtype=FLOATS)
        rows = checked_rows(X)
        epoch = math.ceil(len(rows) / positive_int("batch_size", self.batch_size))
        iterations = epoch * positive_int("n_iter", self.n_iter, least=0)
        training, beginning = self._begun(rows, min(self.batch_size, len(rows)), iterations)
        history, last = {}, training.first
        if iterations:
            interval = epoch * (1 if self.verbose else math.ceil(_LEAST_UPDATES / epoch))
            tail = iterations // 10 if self.average else 0
            run = climb(training, iterations, interval, self._telling(rows[:_SHOWN_ROWS]), tail=tail)
            history, last = run.history, run.state._replace(rbm=run.rbm)
        self.__dict__.update(beginning, history_=history)  # nothing is set before training has ended
        self._keep(last, rows, X.dtype)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """One update with all of X as its batch; chains go on from call to call. y is ignored."""
        first = not hasattr(self, "components_")
        X = validate_data(self, X, accept_sparse="csr", dtype=FLOATS, reset=first)
        rows = checked_rows(X)
        if first:
            training, beginning = self._begun(rows, len(rows), 1)
            beginning["history_"], dtype = {}, X.dtype
        else:
            training, dtype = self._training(self.rbm_, rows, len(rows), 1, self._training_seed), self.components_.dtype
            training = training._replace(first=continued(training.first, self._state, training.estimator))
            beginning = {"binary_": self.binary_ and rows.dtype == np.uint8}
        state = next(training.chunks(int(training.first.step) + 1)).state
        self.__dict__.update(beginning)
        self._keep(state, rows, dtype)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """`p(h = 1 | v)` of every row of X, samples x components."""
        check_is_fitted(self)
        return self._hidden_means(validate_data(self, X, accept_sparse="csr", dtype=FLOATS, reset=False))

    def inverse_transform(self, X: Any) -> np.ndarray:
        """`p(v = 1 | h)` of hidden states or means, samples x components."""
        check_is_fitted(self)
        hidden = check_array(X, dtype=FLOATS)
        if hidden.shape[1] != len(self.components_):
            raise ValueError(f"X has {hidden.shape[1]} columns, but the machine has {len(self.components_)} components")
        return expit(hidden @ self.components_ + self.intercept_visible_)

    def reconstruct(self, X: Any) -> np.ndarray:
        """X there and back: `p(v = 1 | h)` at the hidden means of X."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=FLOATS, reset=False)
        return self.inverse_transform(self._hidden_means(X))

    def gibbs(self, v: Any) -> np.ndarray:
        """One Gibbs sweep from every row of v; every call draws anew. Boolean, samples x features."""
        check_is_fitted(self)
        v = validate_data(self, v, accept_sparse="csr", dtype=FLOATS, reset=False)
        start = jnp.asarray(dense(v), jnp.float32)
        return np.asarray(sweep(root_key(drawn_seed(self.random_state_)), start, self.rbm_)[0] > 0)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Draws of the machine, samples x features: exact up to 20 units on the smaller side, tempered beyond."""
        check_is_fitted(self)
        chance = self.random_state_ if random_state is None else check_random_state(random_state)
        return sample(self.rbm_, n_samples, drawn_seed(chance)).astype(self.components_.dtype)

    @classmethod
    def from_sklearn(cls, machine: Any, binary: bool = True) -> Self:
        """A fitted `sklearn.neural_network.BernoulliRBM` as one of these; `binary` says whether it was fitted on binary values.

        Its chains begin anew if it is fitted further.
        """
        check_is_fitted(machine)
        found = cls(**{name: getattr(machine, name) for name in _SHARED})
        found.random_state_ = check_random_state(machine.random_state)
        found._training_seed, found.history_ = drawn_seed(found.random_state_), {}
        found.binary_, found._base_bias, found._state = binary, None, {"step": 0, "chains": [], "offsets": []}
        return _copied(machine, found)

    def to_sklearn(self) -> Any:
        """This machine as a fitted `sklearn.neural_network.BernoulliRBM`."""
        from sklearn.neural_network import BernoulliRBM as Original

        check_is_fitted(self)
        return _copied(self, Original(**{name: getattr(self, name) for name in _SHARED}))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _begun(self, rows: np.ndarray, batch_size: int, updates: int) -> tuple[Training, dict[str, Any]]:
        """The training of a new machine, and the attributes that begin with it."""
        n_hidden, chance = positive_int("n_components", self.n_components), check_random_state(self.random_state)
        seed, means = drawn_seed(chance), rows.mean(axis=0, dtype=np.float64)
        training = self._training(start_from_means(means, n_hidden, seed), rows, batch_size, updates, seed)
        beginning = {"random_state_": chance, "_training_seed": seed, "_n_features_out": n_hidden}
        return training, beginning | {"binary_": rows.dtype == np.uint8, "_base_bias": mean_logits(means, BASE_MARGIN)}

    def _training(self, rbm: RBM, rows: np.ndarray, batch_size: int, updates: int, seed: int) -> Training:
        estimator = named_estimator(self.estimator, self.k, self.n_chains, positive_int("batch_size", self.batch_size))
        rate = non_negative("learning_rate", self.learning_rate)
        return rated_training(rbm, rows, estimator, rate, updates, batch_size, bool(self.centered), seed)

    def _telling(self, rows: np.ndarray) -> Callable[[RBM], Mapping[str, float]]:
        """After every epoch: scikit-learn's line, where it is asked for."""
        began, epochs, name = time.perf_counter(), itertools.count(1), type(self).__name__

        def tell(rbm: RBM) -> Mapping[str, float]:
            nonlocal began
            if self.verbose:
                mean, before, began = pseudo_rows(rbm, rows).mean(), began, time.perf_counter()
                print(f"[{name}] Iteration {next(epochs)}, pseudo-likelihood = {mean:.2f}, time = {began - before:.2f}s")
            return {}

        return tell

    def _keep(self, state: TrainState, rows: np.ndarray, dtype: Any) -> None:
        """What was learned, as plain arrays: the machine, and what the next call of `partial_fit` goes on from."""
        self._set(state.rbm, dtype)
        self._state = plain_state(state)
        means = self._hidden_means(chain_states(state, rows[: self.batch_size]))
        self.h_samples_ = (self.random_state_.random_sample(means.shape) < means).astype(dtype)

    def _set(self, rbm: RBM, dtype: Any) -> None:
        self.components_ = np.array(rbm.weights, dtype).T
        self.intercept_visible_ = np.array(rbm.visible_bias, dtype)
        self.intercept_hidden_ = np.array(rbm.hidden_bias, dtype)

    def _hidden_means(self, X: Any) -> np.ndarray:
        logits = safe_sparse_dot(X, self.components_.T, dense_output=True) + self.intercept_hidden_
        return expit(logits, out=logits)


def _copied(source: Any, target: Any) -> Any:
    """The machine of one scikit-learn estimator in another."""
    for name in ("components_", "intercept_hidden_", "intercept_visible_", "h_samples_", "feature_names_in_"):
        if hasattr(source, name):
            setattr(target, name, getattr(source, name).copy())
    target.n_features_in_, target._n_features_out = source.n_features_in_, len(source.components_)
    return target
