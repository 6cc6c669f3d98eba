"""The deep Wishart process."""

from __future__ import annotations

from gpflow_dwp.models.base import DeepKernelProcess

__all__ = ["DeepWishartProcess"]


class DeepWishartProcess(DeepKernelProcess):
    """A deep Wishart process: Wishart layers below a Gaussian process.

    A priori each hidden layer draws G_l ~ W(K(G_{l-1})/ν, ν), and the output is a Gaussian process
    with covariance K(G_L) (Aitchison, Yang and Ober, "Deep kernel processes", 2021, equation 6 of
    Ober et al., 2023). It has the prior of a deep Gaussian process whose layers are ν wide.

    >>> import gpflow, numpy as np
    >>> from gpflow_dwp.layers import GlobalInducingGPLayer, WishartLayer
    >>> Z = np.linspace(-1.0, 1.0, 5)[:, None]
    >>> layers = [
    ...     WishartLayer(gpflow.kernels.SquaredExponential(), df=3, num_inducing=5, seed=0),
    ...     GlobalInducingGPLayer(
    ...         gpflow.kernels.SquaredExponential(), 1, pseudo_targets=np.sin(Z)
    ...     ),
    ... ]
    >>> model = DeepWishartProcess(layers, gpflow.likelihoods.Gaussian(), Z, num_data=5)
    >>> mean, variance = model.predict_f(Z)
    >>> mean.shape
    TensorShape([5, 1])

    Parameters and errors are those of :class:`DeepKernelProcess`, which also takes layers of
    different kinds.
    """
