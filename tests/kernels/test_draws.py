"""A kernel under draws of its values against GPflow's kernels, one by one."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest

from gpflow_dwp.exceptions import UnsupportedKernelError
from gpflow_dwp.kernels import SeparableMatern52
from gpflow_dwp.kernels.draws import KernelDraws


@pytest.mark.parametrize("kind", [gpflow.kernels.Matern32, SeparableMatern52])
@pytest.mark.parametrize("scales", [0.7, [0.5, 2.0]])
def test_covariances_are_those_of_each_kernel(
    kind: type[gpflow.kernels.Kernel], scales: float | list[float]
) -> None:
    """Catches values that go to another draw or column, and inputs of each draw mixed up."""
    rng = np.random.default_rng(0)
    points, X = rng.standard_normal((2, 4, 2))
    logs = 0.3 * rng.standard_normal((3, np.size(scales) + 1))
    kernel = kind(1.5, scales)
    draws = KernelDraws(kernel, logs)
    own = rng.standard_normal((3, 5, 2))
    taken = draws.take([2, 0])
    for s, row in enumerate(logs):
        one = kind(1.5 * np.exp(row[-1]), np.asarray(scales) * np.exp(row[:-1].reshape(-1)))
        np.testing.assert_allclose(draws(X)[s], one(X), rtol=1e-12)
        np.testing.assert_allclose(draws(points, X)[s], one(points, X), rtol=1e-12)
        np.testing.assert_allclose(draws(points, own)[s], one(points, own[s]), rtol=1e-12)
        np.testing.assert_allclose(draws(X, full_cov=False)[s], one(X, full_cov=False))
        if s != 1:
            np.testing.assert_allclose(taken(X)[s // 2 ^ 1], one(X), rtol=1e-12)


def test_a_kernel_without_such_values_is_refused() -> None:
    """Catches a sum, or one of some columns, that is taken for a kernel of all inputs."""
    for kernel in (gpflow.kernels.Linear(), gpflow.kernels.Matern52(active_dims=[0])):
        with pytest.raises(UnsupportedKernelError, match="of 0 values, got 2"):
            KernelDraws(kernel, np.zeros((3, 2)))
