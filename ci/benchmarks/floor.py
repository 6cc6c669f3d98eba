"""The floor: the dense linear algebra of a training step alone, by LAPACK or by TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from benchmarks.models import Shape
from scipy.linalg import blas, lapack

_Sizes = tuple[str, str, int, int, int, int]


class Operation(NamedTuple):
    """One kind of matrix operation of a step.

    :param name: What it computes, in the letters of :mod:`gpflow_dwp.linalg`.
    :param routine: "potrf", "trsm" (triangular times unknown = right side) or "gemm".
    :param rows: Rows of the result.
    :param inner: Size of the triangle, or the inner dimension of the product.
    :param columns: Columns of the result.
    :param times: How often a step does it.
    """

    name: str
    routine: str
    rows: int
    inner: int
    columns: int
    times: int


def floor_operations(shape: Shape, model: str) -> list[Operation]:
    """List the dense operations of one step, forward and reverse, of a deep Wishart process.

    Counted as the formulas of :mod:`gpflow_dwp.linalg` have them: the first layer's covariance is
    one for all draws, every other one is one for each; gradients of a covariance are two triangular
    solves; what is element-wise, unbatched (A' = L U, V Vᵀ) or costs less than M R² is left out,
    but for products with R columns, which are counted.

    :param model: "GW", "A" and "AB" have the same operations: GW's
        A' = I would save two products of M³, which neither the layer nor this count makes use of.
    """
    n, m, s = shape.num_data, shape.num_inducing, shape.num_samples
    r = min(shape.num_inputs, m)
    operations = []
    for index in range(shape.depth - 1):
        k = 1 if index == 0 else s
        layer: list[_Sizes] = [
            ("L = chol K", "potrf", m, m, m, k),
            ("V = L⁻¹ C", "trsm", m, m, n, k),
            ("A = L⁻ᵀ V", "trsm", m, m, n, k),
            ("A diag Aᵀ", "gemm", m, n, m, k),
            ("gradient of K", "trsm", m, m, m, 2 * k),
            ("L A' T B and its gradient", "gemm", m, m, r, 3 * s),
            ("mean and its gradients", "gemm", r, m, n, 3 * s),
            ("product of features, and its gradients", "gemm", m, r, n, 3 * s),
            ("the same at inducing points", "gemm", m, r, m, 3 * s),
        ]
        if model != "A-whitened":
            layer += [
                ("L_A = chol Σ", "potrf", m, m, m, k),
                ("C = L⁻¹ L_A", "trsm", m, m, m, k),
                ("Q = CᵀC", "gemm", m, m, m, k),
                ("Q Q̄, C Q̄, C Q̄ Cᵀ", "gemm", m, m, m, 3 * k),
                ("gradient of Σ", "trsm", m, m, m, 2 * k),
            ]
        operations += _of(f"layer {index + 1}", layer)
    k = s if shape.depth > 1 else 1
    output: list[_Sizes] = [
        ("chol B", "potrf", m, m, m, k),
        ("K L, Lᵀ K L", "gemm", m, m, m, 2 * k),
        ("R = L_B⁻¹ Lᵀ, L_B⁻¹", "trsm", m, m, m, 2 * k),
        ("V = R C", "gemm", m, m, n, k),
        ("V diag Cᵀ", "gemm", m, n, m, k),
        ("Rᵀ V diag", "gemm", m, m, n, k),
        ("gradients of K and L", "gemm", m, m, m, 6 * k),
    ]
    return operations + _of("output", output)


def _of(part: str, sizes: list[_Sizes]) -> list[Operation]:
    return [
        Operation(f"{part}: {name}", routine, rows, inner, columns, count)
        for name, routine, rows, inner, columns, count in sizes
    ]


class Floor:
    """Runs the operations of a step, on operands that are prepared here, and nothing else.

    :param operations: What :func:`floor_operations` returns.
    :param num_operands: How many different operands each operation has, taken in turn: S.
    :param dtype: "float32" or "float64".
    """

    def __init__(self, operations: list[Operation], num_operands: int, dtype: str) -> None:
        self._rng = np.random.default_rng(0)
        self._dtype = dtype
        self._calls = [
            ([self._prepare(o) for _ in range(min(num_operands, o.times))], o.times)
            for o in operations
        ]

    def run(self, num_steps: int) -> None:
        """Do the operations of ``num_steps`` steps."""
        for _ in range(num_steps):
            for calls, count in self._calls:
                for index in range(count):
                    calls[index % len(calls)]()

    def _prepare(self, operation: Operation) -> Callable[[], object]:
        _, routine, rows, inner, columns, _ = operation
        library = lapack if routine == "potrf" else blas
        call = getattr(library, {"float32": "s", "float64": "d"}[self._dtype] + routine)
        if routine == "potrf":
            root = self._array(rows, rows)
            matrix = np.asfortranarray(root @ root.T + rows * np.eye(rows), self._dtype)
            return lambda: call(matrix, lower=1)
        if routine == "trsm":
            # Solved over and over in place, so it must hardly change the right side.
            noise = 1e-6 * np.tril(self._array(rows, rows), -1)
            tril = np.asfortranarray(np.eye(rows) + noise, self._dtype)
            right = self._array(rows, columns)
            return lambda: call(1.0, tril, right, lower=1, overwrite_b=1)
        left, right = self._array(rows, inner), self._array(inner, columns)
        result = self._array(rows, columns)
        return lambda: call(1.0, left, right, 0.0, result, overwrite_c=1)

    def _array(self, rows: int, columns: int) -> npt.NDArray[Any]:
        return np.asfortranarray(self._rng.normal(size=(rows, columns)), self._dtype)


def tensorflow_floor(operations: list[Operation], dtype: str) -> Callable[[int], None]:
    """Return what runs the operations of steps by TensorFlow's kernels, each kind as one batch."""
    import tensorflow as tf

    rng = np.random.default_rng(0)

    def operands(operation: Operation) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        _, routine, rows, inner, columns, times = operation
        left = rng.normal(size=(times, rows, inner))
        if routine == "potrf":
            left = left @ left.swapaxes(1, 2) + rows * np.eye(rows)
        elif routine == "trsm":
            left = np.eye(rows) + 1e-6 * np.tril(left, -1)
        right = rng.normal(size=(times, inner, columns))
        return left.astype(dtype), right.astype(dtype)

    calls = {
        "potrf": lambda left, right: tf.linalg.cholesky(left),
        "trsm": tf.linalg.triangular_solve,
        "gemm": tf.linalg.matmul,
    }

    @tf.function(autograph=False)
    def step(pairs: list[tuple[tf.Tensor, tf.Tensor]]) -> list[tf.Tensor]:
        return [calls[o.routine](*pair) for o, pair in zip(operations, pairs, strict=True)]

    pairs = [tuple(map(tf.constant, operands(operation))) for operation in operations]

    def run(num_steps: int) -> None:
        for _ in range(num_steps):
            step(pairs)

    return run
