"""Models of scikit-learn."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from gpflow_dwp.evaluation.sklearn_models import fit_probabilities


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
