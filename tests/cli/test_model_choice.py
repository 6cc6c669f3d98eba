"""What model the command builds, as far as its options say."""

from __future__ import annotations

from gpflow_dwp.cli.fit_data import read_fit_data
from gpflow_dwp.cli.fit_options import FitOptions
from gpflow_dwp.cli.model_choice import build_model, complete
from gpflow_dwp.layers import GlobalInducingGPLayer
from gpflow_dwp.likelihoods import HeteroskedasticGaussian
from gpflow_dwp.models import DeepWishartProcess


def test_noise_by_place_has_pseudo_targets() -> None:
    """Catches an output that is chosen for Gaussian noise, with which there is no such model."""
    options = complete(FitOptions(likelihood="heteroskedastic", depth=2, num_inducing=5))

    model = build_model(options, read_fit_data(options))

    assert isinstance(model, DeepWishartProcess)
    assert isinstance(model.likelihood, HeteroskedasticGaussian)
    assert isinstance(model.output_layer, GlobalInducingGPLayer)
