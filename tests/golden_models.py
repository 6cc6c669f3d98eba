"""Golden numbers of models: bounds, gradients, predictions and draws, and what they are made from.

Variables are told apart by their shapes and sizes alone, and moved from where they start by what
their shapes say: what they are called, and their order in a module, changes no number.
"""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Callable, Iterable
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow import likelihoods
from gpflow.kernels import Matern32, SquaredExponential

from gpflow_dwp import build_deep_gaussian_process as gaussian
from gpflow_dwp import build_deep_inverse_wishart_process as inverse
from gpflow_dwp import build_deep_wishart_process as wishart
from gpflow_dwp import build_latent_variable_deep_gp as latent
from gpflow_dwp import build_matrix_gaussian_network as network
from gpflow_dwp.likelihoods import SinhArcsinh, WarpedStudentT

KERNEL_PROCESSES = {"wishart": wishart, "gaussian": gaussian, "inverse": inverse}
SMALL: dict[str, Any] = {"num_inducing": 5, "output": "pseudo_targets"}


def by_size(name: str, values: Iterable[Any]) -> dict[str, Any]:
    """Arrays whose order says nothing, named by their place in order of shapes and norms."""
    arrays = sorted(
        (np.asarray(value) for value in values),
        key=lambda array: (array.shape, round(float(np.linalg.norm(array)), 6), array.sum()),
    )
    return {f"{name} {n:02}": array for n, array in enumerate(arrays)}


def move(module: tf.Module) -> None:
    """Move every variable from where it starts, by what its shape alone says."""
    for variable in module.trainable_variables:
        steps = 0.1 * np.cos(1.0 + np.arange(np.prod(variable.shape, dtype=int)))
        variable.assign_add(tf.cast(steps.reshape(variable.shape), variable.dtype))


def inputs(num: int, seed: int) -> np.ndarray:
    """Two columns, of which float32 holds all digits."""
    X = np.random.default_rng(seed).normal(size=(num, 2))
    return X.astype(np.float32).astype(np.float64)


def functions(X: np.ndarray) -> np.ndarray:
    """Three smooth columns, with noise that is a function of X."""
    weights = np.array([[1.0, -0.5, 0.3], [0.4, 1.0, -1.2]])
    return np.sin(2.0 * X @ weights) + 0.1 * np.cos(97.0 * X @ weights)


OBSERVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "one": lambda f: f[:, :1],
    "three": lambda f: f,
    "positive": lambda f: np.exp(f[:, :1]),
    "binary": lambda f: (f[:, :1] > 0.0).astype(float),
    "label": lambda f: np.argmax(f, 1)[:, None].astype(float),
    "count": lambda f: np.round(2.0 + 2.0 * f[:, :1]).clip(0.0),
}
X, XNEW = inputs(14, seed=0), inputs(3, seed=1)

Builder = Callable[..., Any]

REGRESSION: dict[str, Any] = {"num_inducing": 5, "output": "regression"}
FEW: dict[str, Any] = {"joint": False, "kind": "one"}
WEIGHTED_BOUND = {"importance-weighted": {"num_importance_samples": 3}}


def bound_and_gradient(
    model: Any, data: Any, name: str = "bound", **arguments: Any
) -> dict[str, Any]:
    """The bound's terms, and its gradient."""
    with tf.GradientTape() as tape:
        terms = model.elbo_terms(data, seed=7, **arguments)
        bound = terms.weighted_sum()
    gradients = tape.gradient(
        bound, model.trainable_variables, unconnected_gradients=tf.UnconnectedGradients.ZERO
    )
    numbers = {name: bound, f"{name}, log ratios": terms.log_ratios}
    return {**numbers, **by_size(f"{name}, gradient", gradients)}


def model_numbers(
    builder: Builder,
    depth: Any = 2,
    *,
    kind: str = "one",
    dtype: type = np.float64,
    bounds: dict[str, dict[str, Any]] | None = None,
    weights: bool = False,
    missing: bool = False,
    joint: bool = True,
    likelihood: Callable[[], Any] | None = None,
    **arguments: Any,
) -> dict[str, Any]:
    """All that a model says of a small table, with its variables moved from where they start.

    :param builder: Of the package.
    :param depth: Or an architecture.
    :param kind: Of the observations: a key of :data:`OBSERVATIONS`.
    :param dtype: GPflow's default float.
    :param bounds: Arguments of bounds besides the plain one.
    :param weights: Whether rows count as often as a weight says.
    :param missing: Whether an observation is missing.
    :param joint: Whether covariances and functions are among the numbers.
    :param likelihood: Makes one.
    :param arguments: Of the builder.
    """
    with gpflow.config.as_context(gpflow.config.Config(float=dtype)):
        Y, new = (OBSERVATIONS[kind](functions(points)) for points in (X, XNEW))
        if missing:
            Y = Y.copy()
            Y[2, 0] = np.nan
        data = (X, Y, np.linspace(0.5, 1.5, len(X))) if weights else (X, Y)
        if likelihood is not None:
            arguments["likelihood"] = likelihood() if callable(likelihood) else likelihood
        # A copy, because a model moves the kernels that it is given.
        model = builder(data, depth, num_samples=3, seed=5, **copy.deepcopy(arguments))
        move(model)
        model.num_prediction_samples = 4
        numbers = bound_and_gradient(model, data)
        for name, options in (bounds or {}).items():
            numbers |= bound_and_gradient(model, data, name, **options)
        posterior = model.posterior(seed=9)
        asked = {
            "predict_f": posterior.predict_f(XNEW),
            "predict_y": posterior.predict_y(XNEW),
            "predict_log_density": posterior.predict_log_density((XNEW, new)),
        }
        with contextlib.suppress(NotImplementedError):
            asked["sample_y"] = model.predict_y_samples(XNEW, 3, seed=4)
        if joint:
            asked["predict_f, full_cov"] = posterior.predict_f(XNEW, full_cov=True)
            asked["sample_f"] = model.predict_f_samples(XNEW, 3, seed=4)
            asked["sample_f, points alone"] = posterior.sample_f(XNEW, False)
        for name, value in asked.items():
            for index, part in enumerate(tf.nest.flatten(value)):
                numbers[f"{name} {index}"] = part
    return numbers


LIKELIHOODS: dict[str, tuple[str, Callable[[], Any]]] = {
    "noise of inputs": (
        "one",
        lambda: likelihoods.Gaussian(gpflow.functions.Linear(np.full((2, 1), 0.01), 0.5)),
    ),
    "Student": ("one", lambda: likelihoods.StudentT(0.2, df=4.0)),
    "WarpedStudentT": ("positive", lambda: WarpedStudentT(SinhArcsinh(), 0.05, df=4.0)),
    "Poisson": ("count", likelihoods.Poisson),
    "MultiClass": ("label", lambda: likelihoods.MultiClass(3)),
    "heteroskedastic": ("one", likelihoods.HeteroskedasticTFPConditional),
}


def _cases() -> dict[str, dict[str, tuple[Builder, Any, dict[str, Any]]]]:
    """Of each group, its cases: builder, depth and arguments."""
    cases: dict[str, dict[str, tuple[Builder, Any, dict[str, Any]]]] = {
        "posteriors": {
            f"{family}{', whitened' * whiten}": (
                wishart,
                2,
                {**SMALL, "joint": False, "posterior": family, "whiten": whiten},
            )
            for family, whiten in (("GW", False), ("A", True), ("AB", False))
        },
        "likelihoods": {
            name: (
                gaussian if name == "Poisson" else wishart,
                2,
                {**SMALL, "kind": kind, "likelihood": likelihood, "joint": False},
            )
            for name, (kind, likelihood) in LIKELIHOODS.items()
        },
    }
    for name, builder in KERNEL_PROCESSES.items():
        cases[name] = {
            "depth 2, three outputs": (builder, 2, {**SMALL, "kind": "three"}),
            "float32": (builder, 2, {**SMALL, **FEW, "dtype": np.float32}),
            "regression, weights": (builder, 2, {**REGRESSION, **FEW, "weights": True}),
        }
    cases["wishart"]["regression"] = (wishart, 2, {**REGRESSION, "kind": "three"})
    cases["wishart"]["depth 3"] = (wishart, 3, {**SMALL, "joint": False})
    cases["outputs"] = {
        "warp": (wishart, 2, {**REGRESSION, **FEW, "likelihood": "warped"}),
        "Student": (wishart, 2, {**REGRESSION, **FEW, "likelihood": "student_t"}),
    }
    cases["one layer"] = {
        "pseudo-targets": (wishart, 1, {**SMALL}),
        "regression": (wishart, 1, {**REGRESSION}),
        "gaussian": (gaussian, 1, {**REGRESSION, **FEW}),
        "inverse": (inverse, 1, {**SMALL, **FEW}),
    }
    matern = [SquaredExponential(lengthscales=[1.0, 2.0]) + Matern32(), "Matern52"]
    linear = gpflow.functions.Linear(np.ones((2, 1)), [0.5])
    some_missing = {"joint": False, "kind": "three", "missing": True}
    cases["wishart, options"] = {
        "sampled ratio": (wishart, 2, {**SMALL, **FEW, "expected_log_ratio": False}),
        "width": (wishart, 2, {**SMALL, **FEW, "width": 7}),
        "kernels": (wishart, 2, {**SMALL, **FEW, "kernel": matern}),
        "mean function": (wishart, 2, {**SMALL, **FEW, "mean_function": linear}),
        "kmeans, missing": (wishart, 2, {**SMALL, **some_missing, "inducing": "kmeans"}),
        "inverse, sampled ratio": (inverse, 2, {**SMALL, **FEW, "expected_log_ratio": False}),
    }
    local, binary = {"num_inducing": 5, "num_functions": 2}, {"joint": False, "kind": "binary"}
    cases["latent-variable"] = {
        "GP": (latent, "GP", {**local}),
        "GP-GP": (latent, "GP-GP", {**local, "kind": "three", "joint": False}),
        "LV-GP-GP": (latent, "LV-GP-GP", {**local, "bounds": WEIGHTED_BOUND}),
        "GP-LV-GP": (latent, "GP-LV-GP", {**local, "bounds": WEIGHTED_BOUND, "joint": False}),
        "Bernoulli": (latent, "LV-GP", {**local, **binary, "likelihood": likelihoods.Bernoulli}),
        "float32": (latent, "LV-GP-GP", {**local, "bounds": WEIGHTED_BOUND, "dtype": np.float32}),
    }
    small = {"width": 4, "num_pseudo_data": 2}
    rank_one = {"column_covariance": "rank_one", "row_covariance": "rank_one"}
    labels = {"joint": False, "kind": "label", "likelihood": LIKELIHOODS["MultiClass"][1]}
    cases["network"] = {
        "depth 1": (network, 1, {**small}),
        "depth 3": (network, 3, {**small, **FEW, "largest_dropout": 0.2, "activation": "tanh"}),
        "no mean, cosine": (network, 2, {**small, **FEW, "zero_mean": True, "activation": "cos"}),
        "rank one": (network, 2, {**small, **rank_one, "kind": "three", "learn_precision": False}),
        "MultiClass": (network, 2, {**small, **labels}),
        "float32": (network, 2, {**small, **FEW, "dtype": np.float32}),
    }
    return cases


def _of_cases(cases: dict[str, tuple[Builder, Any, dict[str, Any]]]) -> dict[str, Any]:
    return {
        f"{case}: {name}": value
        for case, (builder, depth, arguments) in cases.items()
        for name, value in model_numbers(builder, depth, **arguments).items()
    }


MODELS: dict[str, Callable[[], dict[str, Any]]] = {
    name: functools.partial(_of_cases, cases) for name, cases in _cases().items()
}
"""What computes the numbers of each group."""
