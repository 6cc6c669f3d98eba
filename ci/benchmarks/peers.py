"""Other libraries' models, in an environment where this package need not be."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

_LEARNING_RATE = 1e-2


def regression_data(num_data: int, num_inputs: int) -> tuple[Any, Any]:
    """Standardised inputs, and a smooth function of them with noise, float64."""
    import numpy as np

    rng = np.random.default_rng(0)
    X = rng.normal(size=(num_data, num_inputs))
    Y = np.sin(X.sum(axis=1, keepdims=True)) + 0.1 * rng.normal(size=(num_data, 1))
    return X, (Y - Y.mean()) / Y.std()


def prepare_gpflow(sizes: list[int], dtype: str, model: str = "GPR") -> Callable[[int], None]:
    """GPflow's exact GP, or its ``SVGP``: the gradient of the objective, compiled, and no step."""
    import gpflow
    import tensorflow as tf

    data = tuple(part.astype(dtype) for part in regression_data(*sizes[:2]))
    gpflow.config.set_default_float(data[0].dtype.type)
    kernel = gpflow.kernels.SquaredExponential(lengthscales=[1.0] * sizes[1])
    if model == "SVGP":
        points, likelihood = data[0][: sizes[2]].copy(), gpflow.likelihoods.Gaussian(1e-2)
        process: Any = gpflow.models.SVGP(kernel, likelihood, points, num_data=sizes[0])
        objective = process.training_loss_closure(data, compile=False)
    else:
        process = gpflow.models.GPR(data, kernel, noise_variance=1e-2)
        objective = process.training_loss

    @tf.function(autograph=False)
    def take_gradient() -> tuple[Any, Any]:
        with tf.GradientTape() as tape:
            loss = objective()
        return loss, tape.gradient(loss, process.trainable_variables)

    def run(times: int) -> None:
        for _ in range(times):
            loss, _ = take_gradient()
        float(loss)

    return run


def prepare_svgp(sizes: list[int], dtype: str) -> Callable[[int], None]:
    """See :func:`prepare_gpflow`."""
    return prepare_gpflow(sizes, dtype, "SVGP")


def prepare_gpflux(sizes: list[int], dtype: str) -> Callable[[int], None]:
    """``build_constant_input_dim_deep_gp``, with the compiled step that Keras's ``fit`` takes.

    Its tutorials call ``fit``; what that does once for a call is left out. Layers draw one sample
    for each row, so rows are repeated S times.
    """
    import gpflow
    import numpy as np
    import tensorflow as tf
    from gpflow.keras import tf_keras
    from gpflux.architectures import Config, build_constant_input_dim_deep_gp

    N, D, M, S, depth = sizes
    X, Y = (part.astype(dtype) for part in regression_data(N, D))
    gpflow.config.set_default_float(X.dtype.type)
    tf_keras.backend.set_floatx(X.dtype.name)
    np.random.seed(0)  # noqa: NPY002 (SciPy's k-means draws from it)
    config = Config(num_inducing=M, inner_layer_qsqrt_factor=1e-5, likelihood_noise_variance=1e-2)
    model = build_constant_input_dim_deep_gp(X, depth, config).as_training_model()
    model.compile(tf_keras.optimizers.Adam(_LEARNING_RATE))
    batch = {"inputs": np.tile(X, (S, 1)), "targets": np.tile(Y, (S, 1))}
    batches = iter(tf.data.Dataset.from_tensors(batch).cache().repeat())
    take_step = model.make_train_function()

    def run(num_steps: int) -> None:
        for _ in range(num_steps):
            losses = take_step(batches)
        float(losses["loss"])

    return run


def prepare_gpytorch_gp(sizes: list[int], dtype: str) -> Callable[[int], None]:
    """GPyTorch's exact GP: the gradient of its marginal likelihood, by its defaults."""
    import gpytorch
    import torch

    X, Y = (torch.tensor(part.astype(dtype)) for part in regression_data(*sizes[:2]))
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))

    class Process(gpytorch.models.ExactGP):
        def __init__(self) -> None:
            super().__init__(X, Y[:, 0], gpytorch.likelihoods.GaussianLikelihood())
            self.mean_module = gpytorch.means.ConstantMean()
            kernel = gpytorch.kernels.RBFKernel(ard_num_dims=sizes[1])
            self.covar_module = gpytorch.kernels.ScaleKernel(kernel)

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(x), self.covar_module(x)
            )

    process = Process().to(X.dtype)
    evidence = gpytorch.mlls.ExactMarginalLogLikelihood(process.likelihood, process)
    process.train()

    def run(times: int) -> None:
        for _ in range(times):
            process.zero_grad()
            (-evidence(process(X), Y[:, 0])).backward()

    return run


def prepare_gpytorch(sizes: list[int], dtype: str) -> Callable[[int], None]:
    """GPyTorch's ``DeepGP``, layers and step as in its tutorial, without compilation."""
    import gpytorch
    import torch
    from gpytorch.models.deep_gps import DeepGP, DeepGPLayer
    from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy

    N, num_inputs, M, S, depth = sizes
    X, Y = (part.astype(dtype) for part in regression_data(N, num_inputs))
    torch.manual_seed(0)
    torch.set_default_dtype(getattr(torch, dtype))
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))

    class Layer(DeepGPLayer):
        def __init__(self, output_dims: int | None) -> None:
            batch = torch.Size([] if output_dims is None else [output_dims])
            points = torch.randn(*batch, M, num_inputs)
            strategy = VariationalStrategy(
                self,
                points,
                CholeskyVariationalDistribution(M, batch_shape=batch),
                learn_inducing_locations=True,
            )
            super().__init__(strategy, num_inputs, output_dims)
            self.mean_module = (
                gpytorch.means.ConstantMean(batch_shape=batch)
                if output_dims is None
                else gpytorch.means.LinearMean(num_inputs)
            )
            kernel = gpytorch.kernels.RBFKernel(batch_shape=batch, ard_num_dims=num_inputs)
            self.covar_module = gpytorch.kernels.ScaleKernel(kernel, batch_shape=batch)

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(x), self.covar_module(x)
            )

    class Model(DeepGP):
        def __init__(self) -> None:
            super().__init__()
            hidden = [Layer(num_inputs) for _ in range(depth - 1)]
            self.layers = torch.nn.ModuleList([*hidden, Layer(None)])
            self.likelihood = gpytorch.likelihoods.GaussianLikelihood()

        def forward(self, inputs: Any) -> Any:
            for layer in self.layers:
                inputs = layer(inputs)
            return inputs

    model = Model()
    bound = gpytorch.mlls.DeepApproximateMLL(
        gpytorch.mlls.VariationalELBO(model.likelihood, model, N)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=_LEARNING_RATE)
    inputs, targets = torch.tensor(X), torch.tensor(Y[:, 0])
    model.train()

    def run(num_steps: int) -> None:
        with gpytorch.settings.num_likelihood_samples(S):
            for _ in range(num_steps):
                optimizer.zero_grad()
                loss = -bound(model(inputs), targets)
                loss.backward()
                optimizer.step()

    return run
