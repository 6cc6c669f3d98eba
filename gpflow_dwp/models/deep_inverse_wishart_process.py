"""The deep inverse Wishart process."""

from __future__ import annotations

from gpflow_dwp.models.base import DeepKernelProcess

__all__ = ["DeepInverseWishartProcess"]


class DeepInverseWishartProcess(DeepKernelProcess):
    """A deep inverse Wishart process: inverse Wishart layers below a Gaussian process.

    A priori each hidden layer draws an inverse Wishart Gram matrix with mean K(G_{l-1}), and the
    output is a Gaussian process with covariance K(G_L) (Aitchison, Yang and Ober, "Deep kernel
    processes", 2021). Unlike the other two it has no deep Gaussian process with the same prior.

    >>> import gpflow, numpy as np
    >>> from gpflow_dwp.layers import GlobalInducingGPLayer, InverseWishartLayer
    >>> Z = np.linspace(-1.0, 1.0, 5)[:, None]
    >>> layers = [
    ...     InverseWishartLayer(gpflow.kernels.SquaredExponential(), num_inducing=5, seed=0),
    ...     GlobalInducingGPLayer(
    ...         gpflow.kernels.SquaredExponential(), 1, pseudo_targets=np.sin(Z)
    ...     ),
    ... ]
    >>> model = DeepInverseWishartProcess(layers, gpflow.likelihoods.Gaussian(), Z, num_data=5)
    >>> mean, variance = model.predict_f(Z)
    >>> mean.shape
    TensorShape([5, 1])

    Parameters and errors are those of :class:`DeepKernelProcess`, which also takes layers of
    different kinds.
    """
