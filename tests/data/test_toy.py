"""Toy functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gpflow_dwp.data import step_function, varying_sine

both = pytest.mark.parametrize("function", [step_function, varying_sine])


@both
def test_shapes_and_seed(function: Callable[..., Any]) -> None:
    X, Y = function(30, seed=2)
    assert X.shape == Y.shape == (30, 1)
    assert -1.0 <= X.min() < X.max() <= 1.0
    assert (np.diff(X[:, 0]) > 0.0).all()
    np.testing.assert_array_equal(function(30, seed=2)[1], Y)
    assert not np.array_equal(function(30, seed=3)[0], X)


@both
def test_noise_has_its_deviation(function: Callable[..., Any]) -> None:
    residual = function(4000, noise=0.3)[1] - function(4000, noise=0.0)[1]
    assert residual.std() == pytest.approx(0.3, rel=4.0 / np.sqrt(8000.0))  # four sigma


def test_the_functions_themselves() -> None:
    X, Y = step_function(noise=0.0)
    np.testing.assert_array_equal(Y, X > 0.0)
    X, Y = varying_sine(noise=0.0)
    np.testing.assert_allclose(Y, np.sin(6.0 * np.pi * ((X + 1.0) / 2.0) ** 3))


@both
def test_refuses(function: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match="num_data must be at least 1, got 0"):
        function(0)
    with pytest.raises(ValueError, match=r"noise must not be negative, got -0\.1"):
        function(5, noise=-0.1)
