"""What holds for every bijector of the package."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import reference
import tensorflow as tf

from gpflow_dwp import bijectors

RNG = np.random.default_rng(0)
TRAPEZOID = reference.random_trapezoid(RNG, 2, 4, 3)
SINGULAR = TRAPEZOID @ np.swapaxes(TRAPEZOID, -1, -2)
# Of each class: an input, and arguments by name, arrays among them, if it has any.
EXAMPLES: list[tuple[str, np.ndarray, dict[str, Any]]] = [
    ("ColumnScaledTril", np.tril(RNG.normal(size=(2, 3, 3))), {}),
    (
        "RightTriangularProduct",
        TRAPEZOID,
        {"column_mixing_tril": reference.random_tril(RNG, 2, 3, 3)},
    ),
    (
        "SingularCongruence",
        SINGULAR,
        {"row_mixing": reference.random_invertible(RNG, 2, 4, 4), "df": 3},
    ),
    (
        "TriangularCongruence",
        SINGULAR,
        {"row_mixing": reference.random_tril(RNG, 2, 4, 4), "df": 3},
    ),
    ("TallCholeskyOuterProduct", TRAPEZOID, {"rank": 3}),
]
every_example = pytest.mark.parametrize(("name", "x", "arguments"), EXAMPLES)


def make(name: str, arguments: dict[str, Any], convert: Any) -> Any:
    converted = {
        key: convert(value) if isinstance(value, np.ndarray) else value
        for key, value in arguments.items()
    }
    if name != "ColumnScaledTril":
        converted["validate_args"] = True
    return getattr(bijectors, name)(**converted)


def test_every_class_has_an_example() -> None:
    assert {name for name, _, _ in EXAMPLES} == set(bijectors.__all__)


@every_example
def test_pickles_and_deep_copies(name: str, x: np.ndarray, arguments: dict[str, Any]) -> None:
    bijector = make(name, arguments, tf.Variable)
    # Used, so that there is something in TFP's caches.
    y, log_det = bijector.forward(x).numpy(), bijector.forward_log_det_jacobian(x).numpy()

    others = [pickle.loads(pickle.dumps(bijector)), copy.deepcopy(bijector)]

    for variable in bijector.variables:
        variable.assign(tf.ones_like(variable) * np.nan)
    for other in others:
        assert type(other) is type(bijector)
        np.testing.assert_array_equal(other.forward(x), y)
        np.testing.assert_allclose(other.forward_log_det_jacobian(x), log_det, rtol=1e-12)


@every_example
@pytest.mark.parametrize(("dtype", "jit_compile"), [(np.float32, False), (np.float64, True)])
def test_compiled_equals_eager(
    name: str, x: np.ndarray, arguments: dict[str, Any], dtype: type, jit_compile: bool
) -> None:
    def everything(x: tf.Tensor, arrays: dict[str, tf.Tensor]) -> list[tf.Tensor]:
        bijector = make(name, {**arguments, **arrays}, None)
        y = tf.identity(bijector.forward(x))
        return [
            y,
            bijector.inverse(y),
            bijector.forward_log_det_jacobian(x),
            bijector.inverse_log_det_jacobian(tf.identity(y)),
        ]

    x = tf.constant(x, dtype)
    arrays = {k: tf.constant(v, dtype) for k, v in arguments.items() if isinstance(v, np.ndarray)}
    compiled = tf.function(everything, jit_compile=jit_compile, autograph=False)(x, arrays)
    tolerance = 1e3 * np.finfo(dtype).eps
    for one, other in zip(compiled, everything(x, arrays), strict=True):
        assert one.dtype == other.dtype == dtype
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("name", "argument", "others"),
    [
        ("RightTriangularProduct", "column_mixing_tril", {}),
        ("SingularCongruence", "row_mixing", {"df": 2}),
        ("TriangularCongruence", "row_mixing", {"df": 2}),
    ],
)
def test_slices_of_an_unknown_batch(name: str, argument: str, others: dict[str, int]) -> None:
    matrices = np.reshape([2.0, 3.0, 5.0], [3, 1, 1])

    @tf.function(input_signature=[tf.TensorSpec([None, 1, 1], tf.float64)], autograph=False)
    def sliced(matrix: tf.Tensor) -> list[tf.Tensor]:
        bijector = getattr(bijectors, name)(**{argument: matrix}, **others)
        return [getattr(bijector[index], argument) for index in (1, slice(1, 3), Ellipsis)]

    for got, expected in zip(sliced(matrices), (matrices[1], matrices[1:3], matrices), strict=True):
        np.testing.assert_array_equal(got, expected)
