"""A Gaussian process layer with inducing inputs of its own."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow import Parameter
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import Kernel
from gpflow.kullback_leiblers import gauss_kl
from gpflow.utilities import triangular

from gpflow_dwp.base import Array, sizes
from gpflow_dwp.kernels.check import check_input_kernel
from gpflow_dwp.layers.base import Description, Layer
from gpflow_dwp.layers.global_inducing import as_inducing_points
from gpflow_dwp.linalg import as_jitter, cholesky, factorise, relative_jitter, whiten
from gpflow_dwp.papers import LATENT_VARIABLES
from gpflow_dwp.validation import (
    check_flags,
    check_instance,
    check_integers,
    check_matrix,
    check_memory,
    check_positive,
)

__all__ = ["LocalInducingGPLayer"]


class LocalInducingGPLayer(Layer):
    r"""Gaussian processes that share a kernel, mixed linearly, with a whitened Gaussian posterior.

    The layer's output is f(x) = W g(x), or W g(x) + x, with G independent processes g and a fixed
    ``mixing`` W. For each process q(u) = N(L m, L C Lᵀ), L Lᵀ = K_uu
    (Salimbeni and Deisenroth, "Doubly stochastic variational inference for deep Gaussian
    processes", 2017; Salimbeni et al., 2019, equations 14 to 16).

    In every method a leading part of the inputs' shape, ``[batch..., T, D]``, is a batch of
    independent problems; T points of one problem may be drawn jointly.

    :param kernel: Kernel of all G processes.
    :param inducing_variable: Inducing inputs, [M, D].
    :param num_outputs: Number of output columns, Q.
    :param mixing: Weights of the functions in the outputs, W, [Q, G], as GPflow has them; None for
        the identity.
    :param skip: Whether the inputs are added, of which there are as many as outputs.
    :param q_scale: Standard deviation at which the whitened posterior starts.
    :param jitter: Added to the diagonal of what is factorised, relative to the mean variance; None
        for GPflow's ``default_jitter()`` when the layer is made.
    :raises ValueError: If ``kernel`` is none of GPflow's kind or not for D columns, a matrix is not
        finite, sizes are not positive integers, do not fit each other or are too large for the
        machine's memory, ``q_scale`` is not positive, or ``jitter`` is negative or not finite.
    :ivar num_inputs: D, the columns of the inputs.
    :ivar num_functions: G, the processes that are mixed.
    :ivar num_inducing: M, the number of inducing inputs.
    """

    papers: ClassVar[tuple[str, ...]] = (LATENT_VARIABLES,)

    def __init__(
        self,
        kernel: Kernel,
        inducing_variable: InducingPoints | Array | tf.Tensor,
        num_outputs: int,
        *,
        mixing: Array | None = None,
        skip: bool = False,
        q_scale: float = 1.0,
        jitter: float | None = None,
    ) -> None:
        check_instance(Kernel, kernel=kernel)
        check_integers(num_outputs=num_outputs)
        check_flags(skip=skip)
        check_positive(q_scale=q_scale)
        super().__init__(name="LocalInducingGPLayer")
        self.kernel = kernel
        self.inducing_variable = as_inducing_points(inducing_variable)
        self.num_outputs = num_outputs
        self.q_scale = q_scale
        self.jitter = as_jitter(jitter)
        self.num_inducing, self.num_inputs = map(int, self.inducing_variable.Z.shape)
        check_input_kernel(kernel, self.num_inputs)
        if skip and self.num_inputs != num_outputs:
            raise ValueError(
                f"num_outputs must be {self.num_inputs} to add inputs, got {num_outputs}."
            )
        self.skip = skip
        self.num_functions, self.mixing = num_outputs, None
        if mixing is not None:
            mixing = check_matrix("mixing", mixing)
            if len(mixing) != num_outputs:
                raise ValueError(f"mixing must have {num_outputs} rows, got {len(mixing)}.")
            self.num_functions = mixing.shape[1]
            self.mixing = Parameter(mixing, trainable=False)
        M, G = self.num_inducing, self.num_functions
        check_memory(G, M, M, num_outputs=num_outputs, inducing_variable=M)
        self.q_mu = Parameter(np.zeros((M, G)))
        start = np.tile(q_scale * np.eye(M), [G, 1, 1])
        self.q_sqrt = Parameter(start, transform=triangular())

    def describe(self) -> Description:
        return Description(
            f"functions [{self.num_inducing}, {self.num_functions}]", "Gaussian, local inducing"
        )

    @check_shapes("return: [1]")
    def log_ratio(self) -> tf.Tensor:
        """Return -KL[q(u) ‖ p(u)], summed over processes."""
        return -gauss_kl(self.q_mu, self.q_sqrt)[None]

    @check_shapes(
        "inputs: [batch..., T, D]",
        "return[0]: [batch..., T, Q]",
        "return[1]: [batch..., Q, T, T] if full_cov",
        "return[1]: [batch..., T, Q] if not full_cov",
    )
    def predict(self, inputs: tf.Tensor, *, full_cov: bool) -> tuple[tf.Tensor, tf.Tensor]:
        """Return mean and variance of f, or its covariance over T points for every output.

        :param inputs: What comes from below.
        :param full_cov: Whether covariances between the T points are wanted.
        """
        mean, variance = self._predict_functions(inputs, full_cov=full_cov)
        if self.mixing is not None:
            squares = tf.square(self.mixing)
            equation = "...gtu,qg->...qtu" if full_cov else "...tg,qg->...tq"
            variance = tf.einsum(equation, variance, squares)
        return self._mix(inputs, mean), variance

    @check_shapes(
        "inputs: [broadcast batch..., T, D]", "noise: [batch..., T, G]", "return: [batch..., T, Q]"
    )
    def sample(
        self, inputs: tf.Tensor, noise: tf.Tensor, *, full_cov: bool, fix_functions: bool = False
    ) -> tf.Tensor:
        """Draw f, jointly over T points with ``full_cov``, each point on its own without.

        :param inputs: What comes from below.
        :param noise: Standard normal numbers, one for each process and point.
        :param full_cov: Whether the T points of one problem are values of one function.
        :param fix_functions: With ``full_cov``, whether inputs move along the function that was
            drawn: the derivative of f(x_t) is then by x_t alone, and that which is expected given
            the T values. As a formula f(x_t) depends on other inputs, too; expectations have the
            same derivatives by both, if functions of the kernel have any.
        """
        if not full_cov:
            mean, variance = self._predict_functions(inputs, full_cov=False)
            return self._mix(inputs, mean + tf.sqrt(variance) * noise)
        fixed = tf.stop_gradient(inputs) if fix_functions else inputs
        mean, variance = self._predict_functions(fixed, full_cov=True)
        prior_variance = tf.reduce_mean(self.kernel(fixed, full_cov=False), axis=-1)
        jitter = self.jitter * prior_variance[..., None] + tf.zeros_like(variance[..., 0, 0])
        tril = cholesky(factorise(variance, jitter, name="a layer's covariance of targets"))
        functions = mean + tf.einsum("...gtu,...ug->...tg", tril, noise)
        if fix_functions:
            # E f(x) + C(x, fixed) C⁻¹ (f - E f), of which but the derivative by x is wanted.
            columns = tf.linalg.matrix_transpose(noise)[..., None]
            weights = tf.linalg.triangular_solve(tril, columns, adjoint=True)
            mean, variance = self._predict_functions(
                tf.concat([inputs, fixed], axis=-2), full_cov=True
            )
            T = sizes(inputs)[-2]
            covariance = variance[..., :T, T:] - variance[..., T:, T:]
            given = tf.matmul(covariance, tf.stop_gradient(weights))[..., 0]
            moved = mean[..., :T, :] - mean[..., T:, :] + tf.linalg.matrix_transpose(given)
            functions += moved - tf.stop_gradient(moved)  # both are zero, but for rounding
        return self._mix(inputs, functions)

    def _predict_functions(
        self, inputs: tf.Tensor, *, full_cov: bool
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Moments of g: [batch..., T, G], and the same or [batch..., G, T, T]."""
        points = tf.convert_to_tensor(self.inducing_variable.Z)
        covariance = self.kernel(points)
        factorised = factorise(
            covariance, relative_jitter(covariance, self.jitter), name="a layer's K_uu"
        )
        rows = tf.reshape(inputs, [-1, inputs.shape[-1]])
        whitened, _ = whiten(factorised, self.kernel(points, rows))
        leading = tf.shape(inputs)[:-1]
        mean = tf.matmul(whitened, self.q_mu, transpose_a=True)
        mean = tf.reshape(mean, tf.concat([leading, [self.num_functions]], axis=0))
        spread = tf.einsum("gmk,mn->gkn", self.q_sqrt, whitened)
        if not full_cov:
            prior = self.kernel(rows, full_cov=False)
            remainder = prior - tf.reduce_sum(tf.square(whitened), axis=0)
            # Cancellation may leave a rounding error, where the square root has no derivative.
            floor = np.finfo(prior.dtype.as_numpy_dtype).eps * prior
            variance = tf.maximum(remainder, floor) + tf.reduce_sum(tf.square(spread), axis=1)
            return mean, tf.reshape(tf.transpose(variance), tf.shape(mean))
        whitened = tf.reshape(tf.transpose(whitened), tf.concat([leading, [-1]], axis=0))
        remainder = self.kernel(inputs) - tf.matmul(whitened, whitened, transpose_b=True)
        spread = tf.reshape(
            tf.transpose(spread, [0, 2, 1]),
            tf.concat([[self.num_functions], leading, [self.num_inducing]], axis=0),
        )
        product = tf.matmul(spread, spread, transpose_b=True)
        rank = len(inputs.shape)
        axes = [*range(1, rank - 1), 0, rank - 1, rank]
        return mean, remainder[..., None, :, :] + tf.transpose(product, axes)

    def _mix(self, inputs: tf.Tensor, functions: tf.Tensor) -> tf.Tensor:
        if self.mixing is not None:
            functions = tf.einsum("...g,qg->...q", functions, self.mixing)
        return functions + inputs if self.skip else functions
