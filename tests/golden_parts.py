"""Golden numbers of what is beside models: distributions, functions, training, estimators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import reference
import tensorflow as tf
from golden_models import (
    KERNEL_PROCESSES,
    OBSERVATIONS,
    SMALL,
    XNEW,
    X,
    by_size,
    functions,
    gaussian,
    inverse,
    latent,
    move,
    wishart,
)
from gpflow import likelihoods
from gpflow.kernels import Matern32, SquaredExponential

from gpflow_dwp import bijectors, distributions, fit
from gpflow_dwp.estimator import DeepWishartClassifier, DeepWishartRegressor
from gpflow_dwp.gaussian_process import fit_gaussian_process
from gpflow_dwp.kernels import sample_random_functions
from gpflow_dwp.likelihoods import SinhArcsinh, WarpedGaussian, WarpedStudentT
from gpflow_dwp.models import FunctionDraws
from gpflow_dwp.selection import select_model

_SEED = tf.constant([3, 4])


def distribution_numbers() -> dict[str, Any]:
    """Samples, densities, their gradients and moments of all distributions."""
    numbers: dict[str, Any] = {}
    names = [n for n in distributions.__all__ if isinstance(getattr(distributions, n), type)]
    for name in names:
        for size, df in [(4, 2), (3, 3), (3, 5)]:
            rng = np.random.default_rng(10 * size + df)
            parameters = reference.random_parameters(name, rng, size, df, (2,))
            counts = {} if name in ("GeneralisedBartlett", "InverseWishart") else {"df": df}
            tensors = {key: tf.constant(value) for key, value in parameters.items()}
            with tf.GradientTape(persistent=True) as tape:
                tape.watch(tensors)
                distribution = getattr(distributions, name)(**counts, **tensors)
                sample = distribution.sample(3, seed=_SEED)
                log_prob = distribution.log_prob(sample)
            case = f"{name} {size} {df}"
            numbers[f"{case}, sample"] = sample
            numbers[f"{case}, log_prob"] = log_prob
            numbers[f"{case}, mean"] = distribution.mean()
            for target, label in [(sample, "sample"), (log_prob, "log_prob")]:
                gradients = tape.gradient(target, tensors)
                for key, gradient in gradients.items():
                    numbers[f"{case}, d {label} / d {key}"] = gradient
    return numbers


def bijector_numbers() -> dict[str, Any]:
    """Values and log-determinants of all bijectors."""
    rng = np.random.default_rng(0)
    trapezoid = reference.random_tril(rng, 2, 4, 3)
    singular = trapezoid @ np.swapaxes(trapezoid, -1, -2)
    tril = reference.random_tril(rng, 2, 3, 3)
    invertible = reference.random_invertible(rng, 2, 4, 4)
    cases = {
        "ColumnScaledTril": (bijectors.ColumnScaledTril(), tril),
        "RightTriangularProduct": (bijectors.RightTriangularProduct(tril), trapezoid),
        "SingularCongruence": (bijectors.SingularCongruence(invertible, 3), singular),
        "TallCholeskyOuterProduct": (bijectors.TallCholeskyOuterProduct(3), trapezoid),
    }
    numbers: dict[str, Any] = {}
    for name, (bijector, x) in cases.items():
        y = bijector.forward(x).numpy()  # as an array: TFP would find its inverse in a cache
        numbers[f"{name}, forward"] = y
        numbers[f"{name}, inverse"] = bijector.inverse(y)
        numbers[f"{name}, forward log-determinant"] = bijector.forward_log_det_jacobian(x)
        numbers[f"{name}, inverse log-determinant"] = bijector.inverse_log_det_jacobian(y)
    return numbers


def function_numbers() -> dict[str, Any]:
    """Functions and Gram matrices from priors, and functions from posteriors in closed form."""
    numbers: dict[str, Any] = {}
    Y = functions(X)
    for name, builder in KERNEL_PROCESSES.items():
        model = builder((X, Y), 3, seed=5, **SMALL)
        move(model)
        layer = model.hidden_layers[0]
        prior = layer.prior(layer.kernel(X[:5])[None])
        numbers[f"{name}, prior"] = prior.sample(2, seed=_SEED)
        for index, gram in enumerate(model.posterior(3, seed=2).gram_matrices(XNEW)):
            numbers[f"{name}, gram {index}"] = gram
        if builder is not inverse:
            numbers[f"{name}, functions"] = FunctionDraws(model, 3, seed=6)(XNEW)
    for kernel in (SquaredExponential(lengthscales=[1.0, 2.0]), Matern32()):
        drawn = sample_random_functions(kernel, 2, 2, num_samples=3, num_features=20, seed=_SEED)
        numbers[f"prior of {type(kernel).__name__}"] = drawn(tf.constant(XNEW[None]))
    return numbers


def fit_numbers() -> dict[str, Any]:
    """The course and the end of training in full, in minibatches, and with natural gradients."""
    Y = functions(X)[:, :1]
    runs = {
        "wishart": (wishart((X, Y), 2, seed=5, **SMALL), {}),
        "gaussian, minibatches": (
            gaussian((X, Y), 2, seed=5, **SMALL),
            {"batch_size": 5, "protocol": "papers"},
        ),
        "latent-variable, natural": (
            latent((X, Y), "LV-GP", num_inducing=5, seed=5),
            {"protocol": "natural", "num_importance_samples": 3},
        ),
    }
    numbers: dict[str, Any] = {}
    for name, (model, options) in runs.items():
        history = fit(model, (X, Y), 50, seed=8, progress=False, **options)
        numbers[f"{name}, elbo"] = history.elbo[[0, 1, 2, 5, 10, 20, 35, 49]]
        numbers[f"{name}, log ratios"] = history.log_ratios[::15]
        numbers |= by_size(f"{name}, variable", model.trainable_variables)
        numbers[f"{name}, predict_y"] = model.predict_y(XNEW, num_samples=4, seed=3)
    return numbers


def selection_numbers() -> dict[str, Any]:
    """Single layers by L-BFGS, and a choice of models."""
    Y = OBSERVATIONS["positive"](functions(X))
    noises = {
        "Gaussian": likelihoods.Gaussian(0.05),
        "warped": WarpedGaussian(SinhArcsinh(), 0.05),
        "Student": WarpedStudentT(SinhArcsinh(), 0.05),
    }
    numbers: dict[str, Any] = {}
    for name, likelihood in noises.items():
        inducing = X[:6] if name == "warped" else None
        kernel = SquaredExponential(lengthscales=[1.0, 1.0])
        found = fit_gaussian_process((X, Y), kernel, likelihood, inducing, max_iterations=15)
        numbers[f"{name}, elbo"] = found.elbo
        numbers[f"{name}, course"] = found.trace[::5]
        numbers |= by_size(f"{name}, variable", [*kernel.variables, *likelihood.variables])
    selection = select_model((X, Y), depth=1, seed=1, progress=False)
    numbers["candidates"] = [each.elbo for each in selection.candidates]
    numbers["candidates, choices"] = [
        [each.depth, each.ard, each.likelihood.startswith("warped"), each.num_data]
        for each in selection.candidates
    ]
    selection.model.output_layer.set_kernel_draws(None)  # too far from rounding to be recorded
    numbers["selected, predict_y"] = selection.model.predict_y(XNEW, num_samples=4, seed=3)
    return numbers


def estimator_numbers() -> dict[str, Any]:
    """Predictions in raw units."""
    f = functions(X)
    settings: dict[str, Any] = {
        "depth": 2,
        "kernel": "SquaredExponential",
        "num_inducing": 5,
        "num_steps": 4,
        "num_prediction_samples": 4,
        "random_state": 0,
    }
    raw, new = 3.0 + 10.0 * X, 3.0 + 10.0 * XNEW
    regressor = DeepWishartRegressor(likelihood="gaussian", **settings)
    regressor.fit(raw, 100.0 + 5.0 * f[:, 0])
    mean, deviation = regressor.predict(new, return_std=True)
    y = 100.0 + 5.0 * functions(XNEW)[:, 0]
    classifier = DeepWishartClassifier(**{**settings, "depth": 1}).fit(raw, np.argmax(f, 1))
    return {
        "regressor, mean": mean,
        "regressor, deviation": deviation,
        "regressor, quantiles": regressor.predict_quantiles(new, [0.1, 0.5, 0.9]),
        "regressor, log density": regressor.predict_log_density(new, y),
        "regressor, samples": regressor.sample_y(new, 3, random_state=0),
        "regressor, elbo": regressor.history_.elbo[-1:],
        "classifier, probabilities": classifier.predict_proba(new),
        "classifier, elbo": classifier.history_.elbo,
    }


PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    "bijectors": bijector_numbers,
    "distributions": distribution_numbers,
    "estimators": estimator_numbers,
    "fit": fit_numbers,
    "functions": function_numbers,
    "selection": selection_numbers,
}
"""What computes the numbers of each group."""
