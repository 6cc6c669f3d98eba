"""What model the command builds, as far as its options say."""

from __future__ import annotations

import numpy as np

from gpflow_dwp.cli.fit_options import FitOptions
from gpflow_dwp.cli.model_choice import build_model, complete
from gpflow_dwp.layers import GlobalInducingGPLayer
from gpflow_dwp.likelihoods import HeteroskedasticGaussian
from gpflow_dwp.models import DeepWishartProcess


def test_noise_by_place_has_pseudo_targets() -> None:
    """Catches an output that is chosen for Gaussian noise, with which there is no such model."""
    rng = np.random.default_rng(0)
    data = rng.standard_normal((30, 2)), rng.standard_normal((30, 1))
    options = complete(FitOptions(noise="heteroskedastic", depth=2, num_inducing=5))

    model = build_model(options, data, None, 1.0)

    assert isinstance(model, DeepWishartProcess)
    assert isinstance(model.likelihood, HeteroskedasticGaussian)
    assert isinstance(model.output_layer, GlobalInducingGPLayer)
