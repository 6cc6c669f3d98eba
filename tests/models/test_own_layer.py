"""A hidden layer of a user's own does all that the package's do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gpflow
import gpflow.kernels as gk
import numpy as np
import pytest
import tensorflow as tf
from model_reference import toy_data

from gpflow_dwp import models
from gpflow_dwp.base import Seed, TargetBlocks
from gpflow_dwp.exceptions import SavedModelError
from gpflow_dwp.layers import Description, GramDraw, GramLayer, TargetNoise
from gpflow_dwp.linalg import cholesky
from gpflow_dwp.training import fit

DATA = toy_data()
NEW = DATA[0][:4] + 0.1


class InfinitelyWideLayer(GramLayer):
    """The limit of a Wishart layer of growing width, G = s K, with none of its randomness."""

    least_nats = -1.0
    kept_as = {"start": "scale"}

    def __init__(self, kernel: gk.Kernel, num_inducing: int, start: Any = 1.0) -> None:
        super().__init__(kernel, num_inducing)
        self.scale = gpflow.Parameter(start, transform=gpflow.utilities.positive())

    def describe(self) -> Description:
        return Description("its kernel", "none")

    def sample_inducing(self, covariance: tf.Tensor, num_samples: int, seed: Seed) -> GramDraw:
        below = self._factorise(covariance)
        shape = [num_samples, self.num_inducing, self.num_inducing]
        scale = tf.cast(self.scale, covariance.dtype)
        root = tf.broadcast_to(tf.sqrt(scale) * cholesky(below), shape)
        gram = tf.matmul(root, root, transpose_b=True)
        return GramDraw(gram, root, below, log_ratio=tf.zeros([1], covariance.dtype))

    def condition(self, draw: GramDraw, blocks: TargetBlocks, noise: TargetNoise) -> TargetBlocks:
        scale, num_samples = tf.cast(self.scale, blocks.it.dtype), tf.shape(draw.gram)[0]
        scaled = (scale * block for block in blocks[:2])
        return TargetBlocks(*(tf.repeat(b, num_samples // tf.shape(b)[0], axis=0) for b in scaled))


@pytest.fixture(name="model")
def make_model() -> models.DeepKernelProcess:
    """A Wishart layer below one of a user's own."""
    quick: Any = {"num_inducing": 6, "output": "pseudo_targets", "posterior": "GW", "whiten": True}
    built = models.build_deep_wishart_process(DATA, 2, **quick, seed=0)
    lowest, output = built.layers
    own = InfinitelyWideLayer(gk.SquaredExponential(), 6)
    parts = built.likelihood, built.inducing_variable, built.num_data
    return models.DeepKernelProcess([lowest, own, output], *parts, num_prediction_samples=5)


def test_alone_it_is_a_gaussian_process_of_a_deep_kernel() -> None:
    """Without randomness the model is exact: a kernel of a kernel, by GPflow."""
    X, Y = DATA
    built = models.build_deep_wishart_process(
        DATA, 2, num_inducing=len(X), output="regression", seed=0
    )
    layers = [InfinitelyWideLayer(gk.SquaredExponential(), len(X)), built.output_layer]
    likelihood, points = built.likelihood, built.inducing_variable
    model = models.DeepKernelProcess(layers, likelihood, points, built.num_data)
    top = built.output_layer.kernel

    below = gk.SquaredExponential()(X).numpy()
    covariance = top.K_r2(2.0 - 2.0 * below).numpy() + likelihood.variance.numpy() * np.eye(len(X))
    quadratic = (Y.T @ np.linalg.solve(covariance, Y)).item()
    expected = -0.5 * (quadratic + np.linalg.slogdet(2.0 * np.pi * covariance)[1])
    np.testing.assert_allclose(model.elbo(DATA, seed=0), expected, rtol=1e-4)


@pytest.mark.usefixtures("eager")
def test_trains_saves_loads_and_summarises(model: models.DeepKernelProcess, tmp_path: Path) -> None:
    own = model.layers[1]
    fit(model, DATA, 1, progress=False)
    assert float(own.scale.numpy()) != 1.0

    models.save_model(model, tmp_path / "model")
    with pytest.raises(SavedModelError, match="custom.InfinitelyWideLayer.* custom_classes"):
        models.load_model(tmp_path / "model")
    loaded = models.load_model(tmp_path / "model", custom_classes=[InfinitelyWideLayer])
    np.testing.assert_array_equal(*(each.predict_y(NEW) for each in (model, loaded)))

    part = models.model_summary(model).parts[2]
    kinds = "InfinitelyWideLayer", "SquaredExponential"
    assert part[:5] == ("layers[1]", *kinds, "its kernel", "none")
    assert (part.num_parameters, part.kl, part.collapsed) == (3, 0.0, False)


def test_predictions_compile_for_any_number_of_rows(model: models.DeepKernelProcess) -> None:
    """As an export of the model does."""
    rows = tf.TensorSpec([None, 2], tf.float64)
    compiled = tf.function(model.predict_y, input_signature=[rows], autograph=False)

    np.testing.assert_allclose(compiled(NEW), model.predict_y(NEW), rtol=1e-9)
