"""Natural gradients together with Adam, in the compiled loop."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
from gpflow.optimizers import NaturalGradient
from model_reference import toy_data

from gpflow_dwp.latent_variable_deep_gp import build_latent_variable_deep_gp
from gpflow_dwp.training import NaturalGradientAdam, fit


def test_step_is_that_of_gpflow() -> None:
    data = toy_data()
    model = build_latent_variable_deep_gp(data, "GP", num_inducing=5)
    layer = model.output_layer
    reference = gpflow.utilities.deepcopy(model)
    gamma = 0.3

    optimizer = NaturalGradientAdam([(layer.q_mu, layer.q_sqrt)], gamma=gamma)
    fit(model, data, 1, optimizer=optimizer, kl_annealing_steps=0, progress=False)

    other = reference.output_layer
    NaturalGradient(gamma).minimize(
        lambda: reference.training_loss(data), [(other.q_mu, other.q_sqrt)]
    )
    np.testing.assert_allclose(layer.q_mu, other.q_mu, atol=1e-10)
    np.testing.assert_allclose(layer.q_sqrt, other.q_sqrt, atol=1e-10)
    # Adam moves everything else by its rate in the first step.
    moved = (
        model.likelihood.variance.unconstrained_variable
        - reference.likelihood.variance.unconstrained_variable
    )
    np.testing.assert_allclose(np.abs(moved), 0.005, rtol=1e-3)


def test_bad_arguments() -> None:
    model = build_latent_variable_deep_gp(toy_data(), "GP", num_inducing=5)
    pair = (model.output_layer.q_mu, model.output_layer.q_sqrt)
    with pytest.raises(ValueError, match="gamma must be positive"):
        NaturalGradientAdam([pair], gamma=0.0)
    with pytest.raises(ValueError, match="variational must hold trainable parameters"):
        NaturalGradientAdam([pair]).build([model.likelihood.variance.unconstrained_variable])
