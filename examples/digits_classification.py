"""Digits by logistic regression on RBM features: scikit-learn's own example, with both classes side by side.

    python examples/digits_classification.py

The data are scikit-learn's digits with copies shifted by a pixel in each direction. Both machines get the settings of that
example; a third line lets ours use what scikit-learn's lacks. The log-likelihood is that of the test digits, binarised, under a
machine with the same settings that was trained on binarised digits.
"""

import time

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import BernoulliRBM as Original
from sklearn.pipeline import make_pipeline

import popcd

SETTINGS = {"n_components": 100, "learning_rate": 0.06, "n_iter": 10, "random_state": 0}


def shifted_digits():
    digits = load_digits()
    copies = [digits.images, *(np.roll(digits.images, shift, axis) for shift, axis in ((1, 1), (-1, 1), (1, 2), (-1, 2)))]
    return np.concatenate(copies).reshape(-1, 64) / 16, np.tile(digits.target, 5)


def describe(name, rbm, split):
    train, test, labels, test_labels = split
    start = time.perf_counter()
    rbm.fit(train)
    seconds = time.perf_counter() - start
    classifier = make_pipeline(rbm, LogisticRegression(C=6000, solver="newton-cg", tol=1e-3)).fit(train, labels)
    accuracy = classifier.score(test, test_labels)
    likelihood = popcd.log_likelihood(popcd.load(clone(rbm).fit(train > 0.5)), test > 0.5)
    bracket = f"{likelihood.lower:.2f} to {likelihood.upper:.2f}"
    print(f"{name:<38}{accuracy:>10.3f}{seconds:>10.2f}{likelihood.value:>12.2f}   {bracket}")


def main():
    split = train_test_split(*shifted_digits(), test_size=0.2, random_state=0)
    plain = LogisticRegression(C=100, max_iter=1000).fit(split[0], split[2])
    print(f"{'':<38}{'accuracy':>10}{'fit, s':>10}{'test log p':>12}   bracket")
    print(f"{'logistic regression on pixels':<38}{plain.score(split[1], split[3]):>10.3f}")
    describe("sklearn BernoulliRBM", Original(**SETTINGS), split)
    describe("popcd BernoulliRBM", popcd.BernoulliRBM(**SETTINGS), split)
    describe("popcd, average=False", popcd.BernoulliRBM(**SETTINGS, average=False), split)


if __name__ == "__main__":
    main()
