"""Models of scikit-learn."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from gpflow_dwp.evaluation.sklearn_models import (
    fit_boosting,
    fit_boosting_classifier,
    fit_probabilities,
)


class Recorder:
    """A classifier that remembers how many threads of OpenMP it had."""

    def fit(self, X, y):
        self.threads = {
            each["num_threads"] for each in threadpool_info() if each["user_api"] == "openmp"
        }


@pytest.mark.parametrize(("num_rows", "threads"), [(72, {1}), (10_000, {2})])
def test_a_small_table_gets_one_thread(num_rows, threads):
    # Several that wait for each other take 11 to 15 times as long beside other programs.
    pytest.importorskip("sklearn.ensemble")
    model = Recorder()
    with threadpool_limits(2, user_api="openmp"):
        fit_probabilities(model, np.zeros([num_rows, 1]), np.zeros(num_rows), is_scaled=False)
    assert model.threads == threads


@pytest.mark.parametrize("num_rows", [2, 3])
def test_few_rows_have_a_fold_each(num_rows):
    X = np.arange(float(num_rows))[:, None]
    prediction = fit_boosting(X, X[:, 0], 0)(X)
    others = np.array([np.delete(X, row).mean() for row in range(num_rows)])
    expected = np.sqrt(np.mean((X[:, 0] - others) ** 2))
    np.testing.assert_allclose(prediction.deviations, expected, rtol=1e-6)
    with pytest.raises(ValueError, match="X must hold two rows or more for folds of them, got 1"):
        fit_boosting(X[:1], X[:1, 0], 0)


def test_a_class_of_a_single_row_is_not_split():
    # Above 10,000 rows scikit-learn would hold out some of each class.
    y = np.arange(10_001) % 2 + 0.0
    y[0] = 2.0
    probabilities = fit_boosting_classifier(y[:, None], y, 0)(np.array([[0.0], [1.0]]))
    assert probabilities.argmax(axis=1).tolist() == [0, 1] and probabilities.shape == (2, 3)
