"""Deep models without noise that predict from nearest rows."""

from __future__ import annotations

import numpy as np

from gpflow_dwp import build_deep_wishart_process
from gpflow_dwp.likelihoods.named import MOST_NUGGET
from gpflow_dwp.selection.choice import Choice
from gpflow_dwp.selection.conditioning import condition
from gpflow_dwp.selection.leave_one_out import leave_one_out
from gpflow_dwp.selection.scores import RowScores
from gpflow_dwp.selection.trainer import Trainer


def test_what_is_left_of_noise_belongs_to_the_function() -> None:
    """Catches noise that stays, scores that are not of what is kept, and a model that changes."""
    rng = np.random.default_rng(5)
    X = rng.uniform(-1.7, 1.7, (140, 2))
    Y = np.where(X[:, :1] > 0.3 * X[:, 1:], 1.0, -1.0) + 0.1 * X[:, 1:]
    Y = np.concatenate([Y, 0.3 * np.sin(3.0 * X[:, :1])], axis=1)
    choice = Choice(likelihood="noise_free", depth=2)
    trainer = Trainer(X, Y, None, np.zeros(2), choice, 0, False, None)
    model = build_deep_wishart_process(
        (X, Y), 2, num_inducing=20, likelihood="noise_free", output="regression", seed=0
    )
    for variance in (model.likelihood.variance, model.output_layer.noise_variance):
        variance.assign(np.full(variance.shape, 0.03))
    before = RowScores.of(leave_one_out(model, 20), Y, trainer.steps)
    found = condition(trainer, model, 10)
    np.testing.assert_allclose(model.likelihood.variance, 0.03)
    assert not model.output_layer.num_neighbours
    assert found.model.output_layer.num_neighbours == 10
    assert np.max(found.model.likelihood.variance) <= MOST_NUGGET * (1.0 + 1e-6)
    assert found.scores.mean.log_density > before.mean.log_density + 0.1
    again = RowScores.of(leave_one_out(found.model, 20), Y, trainer.steps)
    np.testing.assert_allclose(again.crps, found.scores.crps, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(again.log_density, found.scores.log_density, rtol=1e-3, atol=1e-3)
