"""What is common to all models' bounds: likelihoods with variables of their own."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from model_reference import assert_gradients_are_finite_differences, tiny_model, toy_data
from scipy import integrate, stats

from gpflow_dwp import fit
from gpflow_dwp.exceptions import NonFiniteBoundError
from gpflow_dwp.latent_variable_deep_gp import build_latent_variable_deep_gp
from gpflow_dwp.likelihoods import GammaGaussian
from gpflow_dwp.matrix_gaussian import build_matrix_gaussian_network
from gpflow_dwp.models import (
    VariationalModel,
    build_deep_inverse_wishart_process,
    build_deep_wishart_process,
)

X = np.linspace(-1.0, 1.0, 8)[:, None]
DATA = X, X**2
CONCENTRATION, RATE = 6.0, 0.6


@pytest.mark.parametrize(
    ("build", "options"),
    [
        (build_deep_wishart_process, {"output": "pseudo_targets", "kernel": "Matern52"}),
        (build_deep_wishart_process, {"whiten": True, "expected_log_ratio": False}),
        (build_deep_inverse_wishart_process, {}),
    ],
)
def test_second_derivatives_are_those_of_the_gradient(build: Any, options: dict[str, Any]) -> None:
    """Catches gradients written by hand that take a factor of a covariance, or a parameter, for a
    constant where they are differentiated again."""
    points = np.linspace(-1.0, 1.0, 4)[:, None]
    model = build(DATA, depth=2, inducing=points, seed=0, **options)
    # What a draw of a gamma variable does as its shape changes is not what its gradient says.
    variables = [
        each.unconstrained_variable
        for path, each in gpflow.utilities.parameter_dict(model).items()
        if each.trainable and not path.endswith(("concentration", "df"))
    ]
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=each.shape) for each in variables]

    def weighted_slope() -> tf.Tensor:
        with tf.GradientTape() as tape:
            bound = model.elbo(DATA, seed=0)
        slopes = tape.gradient(bound, variables)
        return tf.add_n([tf.reduce_sum(a * b) for a, b in zip(slopes, weights, strict=True)])

    assert_gradients_are_finite_differences(weighted_slope, variables, 1e-4)


def test_a_narrow_posterior_of_the_precision_does_not_lift_the_bound_over_the_evidence() -> None:
    kernel = gpflow.kernels.SquaredExponential(lengthscales=0.7)
    covariance = kernel(X).numpy()

    def density(precision: float) -> float:
        normal = stats.multivariate_normal(cov=covariance + np.eye(8) / precision)
        prior = stats.gamma.pdf(precision, CONCENTRATION, scale=1.0 / RATE)
        return float(normal.pdf(DATA[1][:, 0]) * prior)

    evidence = np.log(integrate.quad(density, 0.01, 80.0)[0])
    likelihood = GammaGaussian(CONCENTRATION, RATE)
    model = build_deep_wishart_process(DATA, 1, kernel=[kernel], likelihood=likelihood)
    best = 14.0
    model.inducing_variable.Z.assign(X)
    model.output_layer.pseudo_targets.assign(DATA[1])
    model.output_layer.precision_tril.assign(np.sqrt(best) * np.eye(8))
    bounds = {}
    for concentration in (10.0, 1e4):
        likelihood.precision.concentration.assign(concentration)
        likelihood.precision.rate.assign(concentration / best)
        bounds[concentration] = float(model.elbo(DATA, seed=0))

    assert bounds[1e4] < bounds[10.0] < evidence
    # Without the divergence it would be no bound.
    assert bounds[1e4] + likelihood.kl_divergence() > evidence


class Recording(gpflow.likelihoods.Gaussian):
    """Records whether AutoGraph would rewrite what runs when a term of the likelihood is traced."""

    seen: ClassVar[set[str]] = set()

    def __getattribute__(self, name: str) -> Any:
        if name in ("_variational_expectations", "_predict_mean_and_var", "_predict_log_density"):
            self.seen.add(tf.__internal__.autograph.control_status_ctx().status.name)
        return super().__getattribute__(name)


def test_autograph_rewrites_nothing_when_users_compile() -> None:
    model = build_deep_wishart_process(DATA, 1, num_inducing=5, likelihood=Recording())
    rows = tuple(tf.constant(part) for part in DATA)
    loss = model.training_loss_closure(rows, compile=True)
    posterior = model.posterior(2)

    for call in (
        loss,
        tf.function(lambda: model.predict_y(rows[0], num_samples=2)),
        tf.function(lambda: model.predict_log_density(rows, num_samples=2)),
        tf.function(lambda: posterior.predict_warped_components(rows[0])),
    ):
        model.likelihood.seen.clear()
        call.get_concrete_function()
        assert model.likelihood.seen == {"DISABLED"}


def test_a_regression_on_new_rows_is_that_of_a_model_of_them() -> None:
    data, more = toy_data(12), toy_data(20, seed=1)
    model, fresh = (tiny_model(1, data=rows, output="regression") for rows in (data, more))
    values = gpflow.utilities.read_values(model)
    kept = {path: values[path] for path in values if not path.endswith((".inputs", ".targets"))}
    gpflow.utilities.multiple_assign(fresh, kept)
    compiled = tf.function(lambda points: model.predict_f(points)[0], autograph=False)
    before = compiled(more[0])

    model.set_data(more)

    assert model.num_data == 20
    expected = fresh.predict_f(more[0])[0]
    np.testing.assert_allclose(model.predict_f(more[0])[0], expected, rtol=1e-10)
    np.testing.assert_allclose(compiled(more[0]), expected, rtol=1e-10)
    assert np.abs(before - expected).max() > 1e-3
    np.testing.assert_allclose(model.elbo(more, seed=0), fresh.elbo(more, seed=0), rtol=1e-10)


@pytest.mark.usefixtures("eager")
def test_training_goes_on_with_new_rows_and_with_no_others() -> None:
    data, more = toy_data(12), toy_data(20, seed=1)
    model = tiny_model(1, data=data, output="regression")
    for rows in (more, (data[0][:6], data[1][:6])):
        with pytest.raises(ValueError, match=r"num_data=12 rows, got \d+; model.set_data\(data\)"):
            fit(model, rows, 1)
    with pytest.raises(ValueError, match="on, in their order and with their weights, got"):
        fit(model, (data[0], -data[1]), 1)
    other = tiny_model(1, output="regression")
    model.set_data(more)
    other.set_data(more)

    history = fit(model, more, 2, kl_annealing_steps=0, progress=False)

    assert history.num_data == 20
    # A single layer's bound has no noise.
    np.testing.assert_allclose(history.elbo[0], other.elbo(more, seed=0), rtol=1e-10)

    weighted = build_deep_wishart_process((*DATA, WEIGHTS), 1)
    with pytest.raises(ValueError, match="rows .* with their weights, got others"):
        fit(weighted, DATA, 1)
    weighted.set_data((X[:5], DATA[1][:5]))
    np.testing.assert_array_equal(weighted.output_layer.weights, np.ones(5))
    for weights in ([np.ones(5)], []):
        fit(weighted, (X[:5], DATA[1][:5], *weights), 1, progress=False)


WEIGHTS = np.array([1.0, 2.0, 0.0, 1.0, 3.0, 1.0, 1.0, 1.0])
REPEATED = tuple(np.repeat(part, WEIGHTS.astype(int), axis=0) for part in DATA)


@pytest.mark.parametrize("output", ["regression", "pseudo_targets"])
def test_a_weight_is_a_number_of_rows(output: str) -> None:
    """Against the bound of repeated rows; catches weights that miss the output's posterior."""
    arguments: Any = {"inducing": X[::2], "output": output}
    weighted = build_deep_wishart_process((*DATA, WEIGHTS), 2, **arguments)
    repeated = build_deep_wishart_process(REPEATED, 2, **arguments)
    if output == "pseudo_targets":
        repeated.output_layer.pseudo_targets.assign(weighted.output_layer.pseudo_targets)

    terms = weighted.elbo_terms((*DATA, WEIGHTS), seed=1)

    expected = repeated.elbo_terms(REPEATED, seed=1)
    np.testing.assert_allclose(terms.data, expected.data, rtol=1e-9)
    np.testing.assert_allclose(terms.log_ratios, expected.log_ratios, rtol=1e-9)
    np.testing.assert_allclose(weighted.predict_f(X)[0], repeated.predict_f(X)[0], atol=1e-9)


@pytest.mark.parametrize(
    ("build", "arguments"),
    [
        (build_deep_wishart_process, {"depth": 1, "output": "pseudo_targets"}),
        (build_latent_variable_deep_gp, {"architecture": "LV-GP"}),
        (build_matrix_gaussian_network, {}),
    ],
)
def test_every_model_takes_weights_and_names_what_is_missing_or_not_finite(
    build: Callable[..., VariationalModel], arguments: dict[str, Any]
) -> None:
    """Catches a bound that is too good for each row, as some say nothing."""
    model = build(DATA, **arguments)
    message = rf"not a finite number: the likelihood \({type(model.likelihood).__name__}\) has an"
    infinite = X, np.full_like(X, 1e200)
    with pytest.raises(NonFiniteBoundError, match=message) as caught:
        model.elbo(infinite, seed=0)
    assert caught.value.step is None
    assert not np.isfinite(tf.function(model.elbo, autograph=False)(infinite, seed=0))

    without = float(model.elbo_terms(DATA, seed=1).data)

    assert float(model.elbo_terms((*DATA, np.ones(8)), seed=1).data) == without
    assert float(model.elbo_terms((*DATA, np.full(8, 2.0)), seed=1).data) == 2.0 * without
    Y = np.where(np.arange(8)[:, None] == 2, np.nan, DATA[1])
    for use in (model.elbo, functools.partial(fit, model)):
        with pytest.raises(ValueError, match="an observation in each row, got none in row 3"):
            use((X, Y))


def test_training_with_weights() -> None:
    """Minibatches carry their rows' weights: a row of none is not learned from."""
    Y = DATA[1] + 5.0 * (WEIGHTS == 0.0)[:, None]
    data = X, Y, WEIGHTS
    model = build_deep_wishart_process(data, 1, output="pseudo_targets", inducing=X)
    fit(model, data, 100, batch_size=4, progress=False)
    assert np.all(np.abs(model.predict_f(X)[0] - DATA[1])[:, 0] < 0.5)
