"""Every kernel that must be refused is, with a message that says why and what to use instead."""

from __future__ import annotations

from typing import Any

import gpflow
import gpflow.kernels as gk
import numpy as np
import pytest
import tensorflow as tf

from gpflow_dwp.exceptions import UnsupportedKernelError
from gpflow_dwp.kernels import gram_K, gram_K_cross, gram_K_diag
from gpflow_dwp.kernels.check import check_gram_kernel, check_input_kernel


class NoFormula(gk.IsotropicStationary):
    """Defines neither K_r nor K_r2."""


class OwnK(gk.Linear):
    """Overrides the formula that Linear is known by."""

    def K(self, X: Any, X2: Any = None) -> tf.Tensor:
        return 2.0 * super().K(X, X2)


class OwnDiagonal(gk.Matern32):
    """Overrides the diagonal that stationary kernels are known by."""

    def K_diag(self, X: Any) -> tf.Tensor:
        return 2.0 * super().K_diag(X)


class OwnParameter(gk.Linear):
    """Adds what no formula knows."""

    def __init__(self) -> None:
        super().__init__(2.0)
        self.scale = gpflow.Parameter(1.0)


class Unknown(gk.Kernel):
    """A kernel that nobody registered."""

    def K(self, X: Any, X2: Any = None) -> tf.Tensor:
        raise AssertionError("a check must not evaluate the kernel")

    K_diag = K


# And all that Gram matrices are computed with in other tests.
ACCEPTED = [
    gk.Matern12(active_dims=slice(None)),
    gk.Matern32(active_dims=slice(0, None, 1)),
    gk.Bias(),
    OwnParameter(),
]

SE, ARD = gk.SquaredExponential, gk.SquaredExponential(lengthscales=[1.0, 2.0])
REFUSED = [
    (ARD, r"SquaredExponential .* lengthscales has shape \[2\].* ARD in the first layer only"),
    (SE(lengthscales=[1.0]), r"lengthscales has shape \[1\].* pass lengthscales as one number"),
    (gk.Linear(variance=[1.0, 2.0]), r"Linear .* its variance has shape \[2\]"),
    (gk.ArcCosine(weight_variances=[1.0, 2.0]), r"weight_variances has shape \[2\]"),
    (SE(active_dims=[0]), r"active_dims.* no columns to choose from; .* first layer only"),
    (gk.Matern12(active_dims=slice(None, None, 2)), r"Matern12 .* active_dims"),
    (gk.Periodic(SE()), r"Periodic .* needs each input column.* SquaredExponential here"),
    (gk.ChangePoints([SE(), SE()], [0.0]), r"ChangePoints .* switches .* a sum of its kernels"),
    (gk.Cosine(), r"Cosine .* direction between two points.* use an isotropic kernel"),
    (gk.Coregion(2, 1), r"Coregion .* indices of outputs.* one kernel for all outputs"),
    (gk.SharedIndependent(SE(), 2), r"SharedIndependent .* several outputs.* by itself"),
    (gk.LinearCoregionalization([SE()], W=np.ones([2, 1])), r"several outputs"),
    (gk.Convolutional(SE(), [4, 4], [2, 2]), r"Convolutional .* not known to be a function of"),
    (Unknown(), r"Unknown .* not known .* IsotropicStationary .* Linear, Polynomial, ArcCosine"),
    (NoFormula(), r"NoFormula .* neither K_r nor K_r2; define one"),
    (OwnK(), r"OwnK .* overrides Linear\.K, .* use Linear, or derive from IsotropicStationary"),
    (OwnDiagonal(), r"OwnDiagonal .* overrides IsotropicStationary\.K_diag"),
    (SE() + gk.White() * ARD, r"SquaredExponential .* lengthscales has shape \[2\]"),
    (SE() * gk.Periodic(SE()), r"Periodic cannot act on a Gram matrix"),
    (SE, r"expected a kernel from gpflow\.kernels, got <class .*SquaredExponential"),
]


def test_accepts() -> None:
    for kernel in ACCEPTED:
        check_gram_kernel(kernel)


@pytest.mark.parametrize(("kernel", "message"), REFUSED)
def test_refuses_and_says_why(kernel: Any, message: str) -> None:
    with pytest.raises(UnsupportedKernelError, match=message):
        check_gram_kernel(kernel)


def test_evaluation_refuses_too() -> None:
    gram, diagonal = tf.eye(3, dtype=tf.float64), tf.ones(3, tf.float64)
    evaluations = (gram_K, [gram]), (gram_K_cross, [gram, diagonal, diagonal])
    for evaluate, arguments in (*evaluations, (gram_K_diag, [diagonal])):
        with pytest.raises(UnsupportedKernelError, match="ARD"):
            evaluate(ARD, *arguments)


def test_active_dims_set_later_are_seen() -> None:
    kernel = gk.SquaredExponential() + gk.Linear()
    kernel.kernels[1].active_dims = [0]
    with pytest.raises(UnsupportedKernelError, match=r"Linear .* active_dims"):
        check_gram_kernel(kernel)


def test_kernels_for_two_columns() -> None:
    for kernel in (
        gk.Matern32(),
        gk.Matern32(lengthscales=[1.0]),
        gk.Matern32(lengthscales=[1.0, 2.0]),
        gk.Matern32(active_dims=[1], lengthscales=[1.0]) * gk.Linear(active_dims=slice(0, 1)),
        gk.Matern32(active_dims=slice(-1, None)),
        gk.Periodic(gk.Matern32(active_dims=[0])),
    ):
        check_input_kernel(kernel, 2)


def test_kernels_for_other_columns_or_of_several_outputs_are_refused() -> None:
    three = [1.0, 2.0, 3.0]
    for kernel in (
        gk.Matern32(lengthscales=three) + gk.White(),
        gk.ArcCosine(weight_variances=three),
        gk.Matern32(active_dims=[-1]),
        gk.Linear() + gk.Matern32(active_dims=slice(5, 6)),  # of no columns, which is a constant
        gk.Periodic(gk.Matern32(active_dims=[2])),
    ):
        name = type(kernel).__name__
        message = f"{name} cannot be the first kernel: .* inputs of 2 columns; look at"
        with pytest.raises(ValueError, match=message):
            check_input_kernel(kernel, 2)
    with pytest.raises(ValueError, match=r"SharedIndependent .* several outputs.* by itself"):
        check_input_kernel(gk.SharedIndependent(SE(), 2), 2)
