"""A process that times one training step of another library's deep GP.

It runs in the environment of that library, where this package need not be: it imports nothing of
it, and is started by its path. What a child that times this package's models shares with it lies
here for that reason.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

_LEARNING_RATE = 1e-2


def regression_data(num_data: int, num_inputs: int) -> tuple[Any, Any]:
    """Standardised inputs, and a smooth function of them with noise, float64."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(num_data, num_inputs))
    Y = np.sin(X.sum(axis=1, keepdims=True)) + 0.1 * rng.normal(size=(num_data, 1))
    return X, (Y - Y.mean()) / Y.std()


def serve(prepare: Callable[[], Callable[[int], Any]]) -> None:
    """Answer each line, a number of steps, with a line of JSON: seconds of wall and processor."""
    start = time.perf_counter()
    run = prepare()
    prepared = time.perf_counter()
    run(1)
    first = time.perf_counter() - prepared
    run(2)
    print(json.dumps({"prepare": prepared - start, "first_step": first}), flush=True)
    for line in sys.stdin:
        num_steps = int(line)
        wall, processor = time.perf_counter(), time.process_time()
        run(num_steps)
        times = {
            "wall": (time.perf_counter() - wall) / num_steps,
            "processor": (time.process_time() - processor) / num_steps,
        }
        print(json.dumps(times), flush=True)


def prepare_gpflux(X: Any, Y: Any, M: int, S: int, depth: int) -> Callable[[int], Any]:
    """``build_constant_input_dim_deep_gp``, with the compiled step that Keras's ``fit`` takes.

    Its tutorials call ``fit``; what that does once for a call is left out. Layers draw one sample
    for each row, so rows are repeated S times.
    """
    import gpflow
    import tensorflow as tf
    from gpflow.keras import tf_keras
    from gpflux.architectures import Config, build_constant_input_dim_deep_gp

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


def prepare_gpytorch(X: Any, Y: Any, M: int, S: int, depth: int) -> Callable[[int], Any]:
    """GPyTorch's ``DeepGP``, layers and step as in its tutorial, without compilation."""
    import gpytorch
    import torch
    from gpytorch.models.deep_gps import DeepGP, DeepGPLayer
    from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy

    torch.manual_seed(0)
    torch.set_default_dtype(getattr(torch, X.dtype.name))
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    num_inputs = X.shape[1]

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
            self.covar_module = gpytorch.kernels.ScaleKernel(
                gpytorch.kernels.RBFKernel(batch_shape=batch, ard_num_dims=num_inputs),
                batch_shape=batch,
                ard_num_dims=None,
            )

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
        gpytorch.mlls.VariationalELBO(model.likelihood, model, len(X))
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


def main() -> None:
    """Serve the subject that the first argument describes, in JSON."""
    peer, (num_data, num_inputs, num_inducing, num_samples, depth), dtype, *_ = json.loads(
        sys.argv[1]
    )
    X, Y = (part.astype(dtype) for part in regression_data(num_data, num_inputs))
    prepare = {"gpflux": prepare_gpflux, "gpytorch": prepare_gpytorch}[peer]
    serve(lambda: prepare(X, Y, num_inducing, num_samples, depth))


if __name__ == "__main__":
    main()
