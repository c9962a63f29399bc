"""The paper's figures: Table 1 as published, one trained machine per row, per parameter."""

# problem, hidden, k: CD variance, CD bias, pop-CD variance, pop-CD bias
_TABLE_1 = {
    ("bars-and-stripes", 16, 1): (5.34874e-05, 0.0242761, 0.000527033, 0.000156001),
    ("bars-and-stripes", 16, 10): (0.000238678, 0.0233395, 0.0011887, 0.000139806),
    ("artificial-modes", 16, 1): (2.3712e-06, 0.177744, 0.000372144, 7.99706e-09),
    ("artificial-modes", 16, 10): (5.07146e-06, 0.176977, 0.000372545, 6.29318e-09),
    ("letters", 16, 1): (0.000332673, 0.00213099, 0.0168316, 0.000681575),
    ("letters", 16, 10): (0.000434146, 0.0017085, 0.0148595, 0.000300025),
    ("letters", 100, 1): (7.72345e-05, 0.00321983, 0.0115259, 0.0133755),
    ("letters", 100, 10): (0.000186199, 0.00297003, 0.0128639, 0.00942309),
    ("mnist", 16, 1): (0.000143567, 0.0145665, 0.00377791, 0.000746869),
    ("mnist", 16, 10): (0.000156719, 0.0136011, 0.00244656, 0.000694042),
    ("mnist", 500, 1): (2.98891e-05, 0.00756879, 0.00581998, 0.00974112),
    ("mnist", 500, 10): (6.47712e-05, 0.00670447, 0.0059567, 0.00289032),
}
_COLUMNS = (("cd", "variance"), ("cd", "bias"), ("pop-cd", "variance"), ("pop-cd", "bias"))


def published(problem: str, hidden: int, k: int, estimator: str, quantity: str) -> float | None:
    """A figure of Table 1, or None where the paper has none.

    >>> published("mnist", 500, 1, "cd", "bias")
    0.00756879
    """
    row = _TABLE_1[problem, hidden, k]
    column = (estimator, quantity)
    return row[_COLUMNS.index(column)] if column in _COLUMNS else None
