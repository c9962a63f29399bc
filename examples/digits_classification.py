"""Digits by logistic regression on RBM features: scikit-learn's own example, with both classes side by side.

    python examples/digits_classification.py

The data are scikit-learn's digits with copies shifted by a pixel in each direction. Both machines get the settings of that
example. Accuracies are means over twenty seeds with their standard deviation; the time is that of the first fit, and the
log-likelihood that of the test digits, binarised, under a machine with the same settings that was trained on binarised digits.
"""

import time

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import BernoulliRBM as Original

import popcd

SETTINGS = {"n_components": 100, "learning_rate": 0.06, "n_iter": 10}
SEEDS = 20


def shifted_digits():
    digits = load_digits()
    copies = [digits.images, *(np.roll(digits.images, shift, axis) for shift, axis in ((1, 1), (-1, 1), (1, 2), (-1, 2)))]
    return np.concatenate(copies).reshape(-1, 64) / 16, np.tile(digits.target, 5)


def describe(name, kind, split, **further):
    train, test, labels, test_labels = split
    accuracies, seconds = [], []
    for seed in range(SEEDS):
        rbm = kind(**SETTINGS, **further, random_state=seed)
        start = time.perf_counter()
        rbm.fit(train)
        seconds.append(time.perf_counter() - start)
        classifier = LogisticRegression(C=6000, solver="newton-cg", tol=1e-3).fit(rbm.transform(train), labels)
        accuracies.append(classifier.score(rbm.transform(test), test_labels))
    binary = popcd.load(kind(**SETTINGS, **further, random_state=0).fit(train > 0.5))
    found = popcd.log_likelihood(binary, test > 0.5)
    accuracy = f"{np.mean(accuracies):.3f} ({np.std(accuracies, ddof=1):.3f})"
    print(f"{name:<31}{accuracy:>17}{seconds[0]:>10.2f}{found.value:>12.2f}   {found.lower:.2f} to {found.upper:.2f}")


def main():
    split = train_test_split(*shifted_digits(), test_size=0.2, random_state=0)
    plain = LogisticRegression(C=100, max_iter=1000).fit(split[0], split[2])
    print(f"{'':<31}{'accuracy':>17}{'fit, s':>10}{'test log p':>12}   bracket")
    print(f"{'logistic regression on pixels':<31}{plain.score(split[1], split[3]):>9.3f}")
    describe("sklearn BernoulliRBM", Original, split)
    describe("popcd BernoulliRBM", popcd.BernoulliRBM, split)
    describe("popcd, average=False", popcd.BernoulliRBM, split, average=False)


if __name__ == "__main__":
    main()
