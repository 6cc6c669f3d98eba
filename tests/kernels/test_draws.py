"""Values of kernels, and a kernel under draws of them against GPflow's kernels, one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gpflow.kernels import Kernel, Linear, Matern32, Matern52, SquaredExponential, White

from gpflow_dwp.exceptions import UnsupportedKernelError
from gpflow_dwp.kernels import LevelsMatern52, SeparableMatern52
from gpflow_dwp.kernels.draws import KernelDraws, draws_of
from gpflow_dwp.kernels.of_inputs import additive_kernel
from gpflow_dwp.kernels.values import inverse_scales, parts_of, values_of


def check_draw(draws: KernelDraws, s: int, one: Kernel) -> None:
    """Compare one of three draws with a kernel of its values."""
    rng = np.random.default_rng(0)
    points, X = rng.standard_normal((2, 4, 2))
    own = rng.standard_normal((3, 5, 2))
    np.testing.assert_allclose(draws(X)[s], one(X), rtol=1e-12)
    np.testing.assert_allclose(draws(points, X)[s], one(points, X), rtol=1e-12)
    np.testing.assert_allclose(draws(points, own)[s], one(points, own[s]), rtol=1e-12)
    np.testing.assert_allclose(draws(X, full_cov=False)[s], one(X, full_cov=False))
    if s != 1:
        np.testing.assert_allclose(draws.take([2, 0])(X)[s // 2 ^ 1], one(X), rtol=1e-12)


@pytest.mark.parametrize(
    ("make", "scales"),
    [
        (Matern32, 0.7),
        (SeparableMatern52, [0.5, 2.0]),
        (lambda *values: LevelsMatern52(*values, [1, 1]), [0.5, 2.0, 0.8, 1.1]),
    ],
)
def test_covariances_are_those_of_each_kernel(
    make: Callable[[Any, Any], Kernel], scales: float | list[float]
) -> None:
    """Catches values that go to another draw or column, inputs of each draw mixed up, and points
    of levels that stay where they are."""
    logs = 0.3 * np.random.default_rng(1).standard_normal((3, np.size(scales) + 1))
    draws = draws_of(make(1.5, scales), logs)
    for s, row in enumerate(np.exp(logs)):
        check_draw(draws, s, make(1.5 * row[-1], np.asarray(scales) * row[:-1].reshape(-1)))


def test_covariances_of_sums_are_those_of_their_parts() -> None:
    """Catches values that go to another part, and columns of parts mixed up."""
    logs = 0.3 * np.random.default_rng(1).standard_normal((3, 8))
    draws = draws_of(additive_kernel(Matern52, [0.5, 2.0]), logs)
    for s, row in enumerate(logs):
        one = additive_kernel(Matern52, [0.5, 2.0])
        for part, values in zip(one.kernels, np.split(np.exp(row), [3, 4, 6]), strict=True):
            part.variance.assign(values[-1] * part.variance)
            if not isinstance(part, Linear):
                part.lengthscales.assign(
                    np.reshape(values[:-1], part.lengthscales.shape) * part.lengthscales
                )
        check_draw(draws, s, one)


def test_a_kernel_without_such_values_is_refused() -> None:
    """Catches a kernel of which a part would stay as it is."""
    for kernel in (White(), Matern52() + White()):
        with pytest.raises(UnsupportedKernelError, match="of 0 values, got 2"):
            draws_of(kernel, np.zeros((3, 2)))


def test_scales_are_how_fast_a_sum_falls_along_each_input() -> None:
    """Catches parts that count by their first one alone, and columns that are mixed up."""
    joint = SquaredExponential(2.0, [0.5, 1.0, 4.0])
    single = SquaredExponential(5.0, 0.3, active_dims=[2])
    kernel = joint + Linear(3.0) + single
    for parts in (parts_of(kernel), values_of(kernel)):
        scales = inverse_scales(parts, 3).numpy()
        expected = np.sqrt([2.0 / 0.25 / 7.0, 2.0 / 7.0, (2.0 / 16.0 + 5.0 / 0.09) / 7.0])
        np.testing.assert_allclose(scales, expected)
    stationary = joint + single
    for column, scale in enumerate(expected):
        step = 1e-3 * np.eye(3)[[column]]
        fall = 7.0 - stationary(np.zeros((1, 3)), step).numpy().item()
        np.testing.assert_allclose(fall, 0.5 * 7.0 * (1e-3 * scale) ** 2, rtol=1e-3)
