"""What the reverse pass of a training step must find in memory: counted, not measured."""

from __future__ import annotations

from typing import NamedTuple

from gpflow_dwp.lab.benchmarks.shapes import Shape

__all__ = ["KeptArray", "kept_arrays"]


class KeptArray(NamedTuple):
    """One array that the forward pass leaves for the reverse pass.

    :param name: What it is, in the letters of :mod:`gpflow_dwp.linalg`.
    :param elements: Its number of elements.
    """

    name: str
    elements: int


def kept_arrays(shape: Shape, model: str) -> list[KeptArray]:
    """List what the gradients of one step are made of, of a deep Wishart process.

    Counted as the formulas of :mod:`gpflow_dwp.linalg` have them, so that no factorisation, solve
    or product of the forward pass is done again: the arguments of every gradient that are larger
    than N or M². What is element-wise is made again from its result: of a squared exponential
    kernel, the covariance alone is kept, not the distances. The first layer's covariance is one
    for all draws, every other one is one for each. Gradients themselves, parameters and the state
    of the optimiser are not counted.

    :param shape: The step's sizes.
    :param model: "GW", "A", "AB" (the same arrays) or "A-whitened".
    """
    n, m, s = shape.num_data, shape.num_inducing, shape.num_samples
    r = min(shape.num_inputs, m)
    arrays = []
    for index in range(shape.depth - 1):
        k = 1 if index == 0 else s
        layer = {
            "K, inducing points": k * m * m,
            "K, inducing points and data": k * m * n,
            "L": k * m * m,
            "V = L⁻¹ C": k * m * n,
            "L⁻¹ F": s * m * r,
            "T": s * m * r,
            "A' T B": s * m * r,
            "F = L A' T B": s * m * r,
            "features of the data, and their noise": 2 * s * n * r,
        }
        if model != "A-whitened":
            layer |= {"L_A": k * m * m, "C = L⁻¹ L_A": k * m * m, "Q = CᵀC": k * m * m}
        arrays += [KeptArray(f"layer {index + 1}: {name}", size) for name, size in layer.items()]
    k = s if shape.depth > 1 else 1
    output = {
        "K, inducing points": k * m * m,
        "K, inducing points and data": k * m * n,
        "R = L_B⁻¹ Lᵀ": k * m * m,
        "L_B⁻¹": k * m * m,
        "V = R C": k * m * n,
    }
    return arrays + [KeptArray(f"output: {name}", size) for name, size in output.items()]
