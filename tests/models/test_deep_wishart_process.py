"""The bound: limits, a second implementation, minibatches, and GPflow's contract."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpflow
import gpflow.kernels as gk
import model_reference
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.keras import tf_keras
from model_reference import tiny_model, toy_data

from gpflow_dwp.exceptions import CholeskyError, UnsupportedKernelError
from gpflow_dwp.layers import GlobalInducingGPLayer, WishartLayer
from gpflow_dwp.models import DeepWishartProcess
from gpflow_dwp.random import as_seed, normal_at_points, split_seed

DATA = toy_data()


def output_layer(num_inducing: int = 5, num_outputs: int = 1) -> GlobalInducingGPLayer:
    return GlobalInducingGPLayer(
        gk.SquaredExponential(), num_outputs, pseudo_targets=np.zeros((num_inducing, num_outputs))
    )


def hidden_layer(num_inducing: int = 5) -> WishartLayer:
    return WishartLayer(gk.SquaredExponential(), 2, num_inducing, seed=0)


def exact_regression(num_outputs: int) -> tuple[DeepWishartProcess, gpflow.models.GPR, Any]:
    """A model of depth 1 with its inducing points on the data, and GPflow's exact one."""
    X, Y = toy_data(num_outputs=num_outputs)
    kernel = gk.Matern32(variance=1.3, lengthscales=[0.7, 1.9])
    noise_variance = 0.2
    output = GlobalInducingGPLayer(
        kernel, num_outputs, pseudo_targets=Y, precision=1.0 / noise_variance
    )
    likelihood = gpflow.likelihoods.Gaussian(noise_variance)
    model = DeepWishartProcess([output], likelihood, X, num_data=len(X))
    return model, gpflow.models.GPR((X, Y), kernel, noise_variance=noise_variance), (X, Y)


@pytest.mark.parametrize("num_outputs", [1, 2])
def test_depth_1_with_all_points_inducing_is_exact(num_outputs: int) -> None:
    model, exact, data = exact_regression(num_outputs)

    np.testing.assert_allclose(model.elbo(data), exact.log_marginal_likelihood(), atol=1e-6)


@pytest.mark.parametrize("full_cov", [False, True])
@pytest.mark.parametrize("full_output_cov", [False, True])
def test_depth_1_predicts_as_exact_regression(full_cov: bool, full_output_cov: bool) -> None:
    model, exact, _ = exact_regression(2)
    Xnew = toy_data(7, seed=5)[0]

    mean, covariance = model.predict_f(Xnew, full_cov, full_output_cov)

    expected_mean, expected_covariance = exact.predict_f(Xnew, full_cov=full_cov)
    np.testing.assert_allclose(mean, expected_mean, atol=1e-8)
    if not full_output_cov:
        np.testing.assert_allclose(covariance, expected_covariance, atol=1e-8)
    elif full_cov:
        assert covariance.shape == (7, 2, 7, 2)
        for p in range(2):
            for q in range(2):
                expected = expected_covariance[p] if p == q else np.zeros((7, 7))
                np.testing.assert_allclose(covariance[:, p, :, q], expected, atol=1e-8)
    else:
        np.testing.assert_allclose(covariance, tf.linalg.diag(expected_covariance), atol=1e-8)


def test_depth_1_predictions_of_observations_are_exact() -> None:
    model, exact, _ = exact_regression(1)
    new = toy_data(7, seed=5)

    for value, expected in zip(model.predict_y(new[0]), exact.predict_y(new[0]), strict=True):
        np.testing.assert_allclose(value, expected, atol=1e-8)
    np.testing.assert_allclose(
        model.predict_log_density(new), exact.predict_log_density(new), atol=1e-8
    )


@pytest.mark.parametrize(
    ("depth", "arguments"),
    [
        (1, {}),
        (2, {"posterior": "GW"}),
        (2, {"posterior": "A", "whiten": True}),
        (2, {"posterior": "AB", "width": 7}),
        (3, {"posterior": "AB", "data": toy_data(num_outputs=2)}),
    ],
)
def test_bound_is_that_of_dense_numpy_loops(depth: int, arguments: dict[str, Any]) -> None:
    data = arguments.get("data", DATA)
    model = tiny_model(depth, expected_log_ratio=False, **arguments)
    path_seed, target_seed = split_seed(as_seed(3), 2)
    num_layers, num_samples = len(model.layers), model.num_samples
    bartlett_factors = [
        layer.bartlett_factor.bartlett().sample(num_samples, seed=seed).numpy()
        for layer, seed in zip(model.hidden_layers, split_seed(path_seed, num_layers), strict=False)
    ]
    noise = [
        normal_at_points(tf.constant(data[0]), seed, num_samples, layer.df).numpy()
        for layer, seed in zip(
            model.hidden_layers, split_seed(target_seed, num_layers), strict=False
        )
    ]
    if depth == 1:
        bartlett_factors = [np.zeros((1, 0, 0))]

    terms = model.elbo_terms(data, seed=3)

    data_term, log_ratios = model_reference.numpy_elbo_terms(model, data, bartlett_factors, noise)
    np.testing.assert_allclose(terms.log_ratios, log_ratios, rtol=1e-6)
    np.testing.assert_allclose(terms.data, data_term, rtol=1e-6)
    np.testing.assert_allclose(model.elbo(data, seed=3), data_term + log_ratios.sum(), rtol=1e-6)


@pytest.mark.parametrize("depth", range(1, 7))
def test_bound_and_gradient_are_finite_from_random_starts(depth: int) -> None:
    model = tiny_model(depth, num_samples=2)
    for start in range(2):
        model_reference.randomise(model, seed=start, scale=0.5)
        with tf.GradientTape() as tape:
            bound = model.elbo(DATA, seed=start)
        gradients = tape.gradient(bound, model.trainable_variables)

        assert np.isfinite(bound)
        assert all(np.all(np.isfinite(gradient)) for gradient in gradients)


def test_average_over_disjoint_batches_is_the_full_data_term() -> None:
    model = tiny_model(3)
    X, Y = DATA

    full = model.elbo_terms(DATA, seed=1)
    batches = [model.elbo_terms((X[i : i + 3], Y[i : i + 3]), seed=1) for i in range(0, 12, 3)]

    np.testing.assert_allclose(np.mean([terms.data for terms in batches]), full.data, rtol=1e-10)
    for terms in batches:
        np.testing.assert_array_equal(terms.log_ratios, full.log_ratios)


def test_bound_scales_with_num_data() -> None:
    model = tiny_model()
    before = model.elbo_terms(DATA, seed=1)

    model.num_data = 120

    np.testing.assert_allclose(model.elbo_terms(DATA, seed=1).data, 10.0 * before.data)


def test_seeds() -> None:
    model = tiny_model()

    assert model.elbo(DATA, seed=1) == model.elbo(DATA, seed=1)
    assert model.elbo(DATA, seed=1) != model.elbo(DATA, seed=2)
    assert model.elbo(DATA) != model.elbo(DATA)


def test_expected_log_ratios_are_the_mean_of_sampled_ones() -> None:
    model = tiny_model(2, num_samples=2_000, expected_log_ratio=False)
    sampled = np.array([model.elbo_terms(DATA, seed=s).log_ratios[0] for s in range(10)])

    model.layers[0].expected_log_ratio = True

    exact = model.elbo_terms(DATA, seed=0).log_ratios[0].numpy()
    model_reference.assert_same_mean(sampled, exact, k_sigma=5.0)


def test_log_prior_density_is_part_of_the_training_loss() -> None:
    model = tiny_model(1)
    before = model.training_loss(DATA)
    zero, one = np.float64(0.0), np.float64(1.0)
    model.layers[0].pseudo_targets.prior = tfp.distributions.Normal(zero, one)

    np.testing.assert_allclose(
        model.training_loss(DATA), before - model.log_prior_density(), rtol=1e-12
    )
    assert model.log_prior_density() < 0.0


LIKELIHOODS: dict[str, tuple[Callable[[], Any], Callable[[np.ndarray], np.ndarray]]] = {
    "gaussian": (gpflow.likelihoods.Gaussian, lambda Y: Y),
    "student_t": (gpflow.likelihoods.StudentT, lambda Y: Y),
    "bernoulli": (gpflow.likelihoods.Bernoulli, lambda Y: 1.0 * (Y > 0.0)),
    "softmax": (lambda: gpflow.likelihoods.Softmax(3), lambda Y: np.digitize(Y, [-0.5, 0.5])),
    "multi_class": (
        lambda: gpflow.likelihoods.MultiClass(3),
        lambda Y: np.digitize(Y, [-0.5, 0.5]),
    ),
    "poisson": (gpflow.likelihoods.Poisson, lambda Y: np.round(2.0 + Y)),
    "heteroskedastic": (gpflow.likelihoods.HeteroskedasticTFPConditional, lambda Y: Y),
    "gaussian_of_x": (
        lambda: gpflow.likelihoods.Gaussian(gpflow.functions.Linear(np.ones((2, 1)), 9.0)),
        lambda Y: Y,
    ),
}


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_likelihoods(name: str) -> None:
    make_likelihood, observe = LIKELIHOODS[name]
    X, Y = DATA[0], observe(DATA[1])
    model = tiny_model(2, data=(X, Y), likelihood=make_likelihood())
    num_outputs = model.output_layer.num_outputs
    X, Y = X[:4], Y[:4]

    mean, variance = model.predict_y(X, num_samples=3)
    f_mean, f_variance = model.predict_f(X, num_samples=3)
    log_densities = model.predict_log_density((X, Y), num_samples=3)
    samples = model.predict_f_samples(X, 2)

    assert np.isfinite(model.elbo((X, Y)))
    assert f_mean.shape == f_variance.shape == (4, num_outputs)
    assert samples.shape == (2, 4, num_outputs)
    assert mean.shape == variance.shape == (4, 3 if name in ("softmax", "multi_class") else 1)
    assert log_densities.shape == (4,)
    for values in (mean, variance, f_mean, f_variance, log_densities, samples):
        assert np.all(np.isfinite(values))
    assert np.all(variance.numpy() >= 0.0)
    if name in ("softmax", "multi_class"):
        np.testing.assert_allclose(np.sum(mean, axis=1), 1.0, atol=0.02)


def test_switched_likelihood() -> None:
    X, Y = DATA
    parts = [gpflow.likelihoods.Gaussian(variance) for variance in (0.1, 2.0)]
    switched = np.concatenate([Y, (np.arange(len(Y)) % 2)[:, None]], axis=1)
    model = DeepWishartProcess(
        [hidden_layer(), output_layer(num_outputs=1)],
        gpflow.likelihoods.SwitchedLikelihood(parts),
        X[:5],
        num_data=len(X),
        num_samples=3,
    )

    value = model.elbo_terms((X, switched), seed=0).data

    expected = 0.0
    for index, part in enumerate(parts):
        model.likelihood = part
        rows = slice(index, None, 2)
        expected += 0.5 * model.elbo_terms((X[rows], Y[rows]), seed=0).data
    np.testing.assert_allclose(value, expected, rtol=1e-10)


@pytest.mark.parametrize("compiled", [False, True])
def test_training_loss_closure_can_be_minimised(compiled: bool) -> None:
    model = tiny_model(2, posterior="GW", whiten=True)
    loss = model.training_loss_closure(DATA, compile=compiled)
    optimizer = tf_keras.optimizers.Adam(0.02)
    before = -model.elbo(DATA, seed=0)

    for _ in range(20):
        optimizer.minimize(loss, model.trainable_variables)

    assert -model.elbo(DATA, seed=0) < before - 10.0


def test_training_loss_closure_takes_an_iterator() -> None:
    model = tiny_model(1)
    dataset = tf.data.Dataset.from_tensor_slices(DATA).repeat().shuffle(12, seed=0).batch(4)
    loss = model.training_loss_closure(iter(dataset), compile=True)
    optimizer = tf_keras.optimizers.Adam(0.02)
    before = -model.elbo(DATA, seed=0)

    for _ in range(20):
        optimizer.minimize(loss, model.trainable_variables)

    assert -model.elbo(DATA, seed=0) < before - 10.0


def test_parameter_paths_are_stable() -> None:
    model = tiny_model(2)

    assert set(gpflow.utilities.parameter_dict(model)) == {
        ".layers[0].kernel.variance",
        ".layers[0].kernel.lengthscales",
        ".layers[0].bartlett_factor.concentration",
        ".layers[0].bartlett_factor.rate",
        ".layers[0].bartlett_factor.loc",
        ".layers[0].bartlett_factor.scale",
        ".layers[0].bartlett_factor.packed_row_mixing",
        ".layers[0].bartlett_factor.column_mixing_tril",
        ".layers[0].scale_mixture.root",
        ".layers[0].scale_mixture.root_scale",
        ".layers[0].scale_mixture.proportion",
        ".layers[1].kernel.variance",
        ".layers[1].kernel.lengthscales",
        ".layers[1].pseudo_targets",
        ".layers[1].precision_tril",
        ".likelihood.variance",
        ".inducing_variable.Z",
    }


def test_print_summary(capsys: pytest.CaptureFixture[str]) -> None:
    gpflow.utilities.print_summary(tiny_model(2), fmt="simple")

    assert "layers[1].precision_tril" in capsys.readouterr().out


def test_values_can_be_read_and_assigned() -> None:
    model, other = tiny_model(2), tiny_model(2)
    model_reference.randomise(other, seed=9)
    assert model.elbo(DATA, seed=0) != other.elbo(DATA, seed=0)

    gpflow.utilities.multiple_assign(other, gpflow.utilities.read_values(model))

    np.testing.assert_allclose(other.elbo(DATA, seed=0), model.elbo(DATA, seed=0), rtol=1e-8)


def test_deepcopy_is_independent() -> None:
    model = tiny_model(2)
    before = model.elbo(DATA, seed=0)

    copy = gpflow.utilities.deepcopy(model)
    assert copy.elbo(DATA, seed=0) == before
    model_reference.randomise(copy, seed=9)

    assert model.elbo(DATA, seed=0) == before
    assert copy.elbo(DATA, seed=0) != before


def test_freeze() -> None:
    model = tiny_model(2)

    frozen = gpflow.utilities.freeze(model)

    assert frozen.trainable_variables == ()
    np.testing.assert_allclose(frozen.elbo(DATA, seed=0), model.elbo(DATA, seed=0), rtol=1e-12)


def test_set_trainable() -> None:
    model = tiny_model(2)
    number = len(model.trainable_variables)

    gpflow.utilities.set_trainable(model.layers[0].kernel, False)

    assert len(model.trainable_variables) == number - 2


def test_integers_and_single_precision_are_taken_as_data() -> None:
    model = tiny_model(2)
    X, Y = np.round(DATA[0]), np.round(DATA[1])

    expected = model.elbo((X, Y), seed=0)

    assert model.elbo((X.astype(np.float32), Y.astype(int)), seed=0) == expected


def test_bound_names_the_layer_whose_factorisation_fails() -> None:
    model = tiny_model(3)
    model.layers[1].kernel.variance.unconstrained_variable.assign(np.nan)

    with pytest.raises(CholeskyError, match=r"layers\[1\]: .* a layer's K_ii failed"):
        model.elbo(DATA)


def build(layers: list[Any], **changes: Any) -> DeepWishartProcess:
    arguments = {
        "likelihood": gpflow.likelihoods.Gaussian(),
        "inducing_variable": DATA[0][:5],
        "num_data": 12,
        **changes,
    }
    return DeepWishartProcess(layers, **arguments)


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ([], "layers must end in an output layer, got NoneType"),
        ([hidden_layer()], "layers must end in an output layer, got WishartLayer"),
        ([output_layer(), hidden_layer()], "must end in an output layer, got WishartLayer"),
        (
            [output_layer(), output_layer()],
            "got GlobalInducingGPLayer, GlobalInducingGPLayer",
        ),
        ([hidden_layer(4), output_layer()], r"layers\[0\] is made for 4 inducing .* has 5"),
        ([hidden_layer(), output_layer(6)], r"layers\[1\] is made for 6 inducing .* has 5"),
    ],
)
def test_layers_that_do_not_fit_are_refused(layers: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(layers)


@pytest.mark.parametrize("name", ["num_data", "num_samples", "num_prediction_samples"])
@pytest.mark.parametrize("value", [0, -1, 2.0, True, None])
def test_numbers_that_are_not_positive_integers_are_refused(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{name} must be a positive integer, got {value}"):
        build([output_layer()], **{name: value})


def test_relevance_determination_is_refused_above_the_first_layer() -> None:
    layers = [hidden_layer(), output_layer()]
    layers[0].kernel = gk.SquaredExponential(lengthscales=[1.0, 2.0])
    build(layers)

    layers[1].kernel = gk.SquaredExponential(lengthscales=[1.0, 2.0])
    with pytest.raises(UnsupportedKernelError, match="ARD"):
        build(layers)


def test_likelihood_with_other_latent_functions_is_refused() -> None:
    with pytest.raises(ValueError, match="Softmax needs 3 latent functions, .* num_outputs=1"):
        build([output_layer()], likelihood=gpflow.likelihoods.Softmax(3))


def test_inducing_points_may_be_an_object() -> None:
    points = gpflow.inducing_variables.InducingPoints(DATA[0][:5])

    assert build([output_layer()], inducing_variable=points).inducing_variable is points
