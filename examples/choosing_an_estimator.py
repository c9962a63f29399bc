"""Choose the estimator of the gradient by cross-validated log-likelihood: `score` in a grid search.

    python examples/choosing_an_estimator.py

Four noisy modes, which CD cannot weigh against each other because its chains stay in the mode of their datum.
"""

from sklearn.model_selection import GridSearchCV, KFold

import popcd


def main():
    rows = popcd.datasets.artificial_modes(rows=2_000, noise=0.05)
    grid = {"estimator": ["cd", "pcd", "pop-cd", popcd.pop_cd(proposal="mixture")], "learning_rate": [0.05, 0.2]}
    rbm = popcd.BernoulliRBM(n_components=8, batch_size=100, n_iter=300, random_state=0)
    folds = KFold(3, shuffle=True, random_state=0)  # the rows come mode by mode
    search = GridSearchCV(rbm, grid, cv=folds, n_jobs=2).fit(rows)
    results = search.cv_results_
    print(f"{'estimator':<52}{'rate':>6}{'score':>10}")
    for i in results["mean_test_score"].argsort()[::-1]:
        setting, mean, spread = results["params"][i], results["mean_test_score"][i], results["std_test_score"][i]
        print(f"{setting['estimator']!s:<52}{setting['learning_rate']:>6}{mean:>10.3f} ({spread:.3f})")


if __name__ == "__main__":
    main()
