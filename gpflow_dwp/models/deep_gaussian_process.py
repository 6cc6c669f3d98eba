"""The deep Gaussian process with global inducing points."""

from __future__ import annotations

from gpflow_dwp.models.base import DeepKernelProcess

__all__ = ["DeepGaussianProcess"]


class DeepGaussianProcess(DeepKernelProcess):
    """A deep Gaussian process: layers of Gaussian process features below a Gaussian process.

    Its Gram matrices have the prior of a deep Wishart process with the same kernels and widths;
    its posterior is over the features themselves (Ober and Aitchison, "Global inducing point
    variational posteriors for Bayesian neural networks and deep Gaussian processes", 2021).

    >>> import gpflow, numpy as np
    >>> from gpflow_dwp.layers import GlobalInducingGPLayer, GlobalInducingGramLayer
    >>> Z = np.linspace(-1.0, 1.0, 5)[:, None]
    >>> layers = [
    ...     GlobalInducingGramLayer(
    ...         gpflow.kernels.SquaredExponential(), width=3, num_inducing=5, seed=0
    ...     ),
    ...     GlobalInducingGPLayer(
    ...         gpflow.kernels.SquaredExponential(), 1, pseudo_targets=np.sin(Z)
    ...     ),
    ... ]
    >>> model = DeepGaussianProcess(layers, gpflow.likelihoods.Gaussian(), Z, num_data=5)
    >>> mean, variance = model.predict_f(Z)
    >>> mean.shape
    TensorShape([5, 1])

    Parameters and errors are those of :class:`DeepKernelProcess`, which also takes layers of
    different kinds.
    """
