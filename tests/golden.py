"""Numbers that a seed fixes, of everything that users build: bounds, gradients, predictions, fits.

``python tests/golden.py`` records them in ``golden.json``, and says what has changed since they
were recorded last. ``test_golden.py`` holds the package to them.

Variables are told apart by their shape and by size alone, and moved from where they start in the
same way: what they are called, and in which order a module has them, changes nothing here.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import reference
import tensorflow as tf
from gpflow import likelihoods
from gpflow.kernels import Matern32, SquaredExponential

from gpflow_dwp import (
    bijectors,
    build_deep_gaussian_process,
    build_deep_inverse_wishart_process,
    build_deep_wishart_process,
    build_latent_variable_deep_gp,
    build_matrix_gaussian_network,
    distributions,
    fit,
)
from gpflow_dwp.estimator import DeepWishartClassifier, DeepWishartRegressor
from gpflow_dwp.kernels import sample_random_functions
from gpflow_dwp.likelihoods import SinhArcsinh, WarpedGaussian, WarpedStudentT
from gpflow_dwp.models import FunctionDraws
from gpflow_dwp.selection import fit_gaussian_process, select_model

Numbers = dict[str, np.ndarray]
Builder = Callable[..., Any]

STORED = Path(__file__).with_name("golden.json")
SMALLEST = 1e-6
"""What is smaller than this, gradients that are zero among them, is compared as if it were this."""

_MOST_NUMBERS = 8
_SEED = tf.constant([3, 4])


def digest(value: Any) -> np.ndarray:
    """An array of few numbers as it is; of more, its shape, its norm and two projections."""
    array = np.asarray(value)
    if not np.all(np.isfinite(array)):
        raise FloatingPointError("a number is not finite")
    if array.size <= _MOST_NUMBERS:
        return array.astype(np.float64)
    flat = array.astype(np.float64).ravel()
    directions = np.random.default_rng(array.size).normal(size=(2, array.size))
    return np.concatenate([array.shape, [np.linalg.norm(flat)], directions @ flat])


def digests(name: str, values: Iterable[Any]) -> Numbers:
    """Digests of arrays whose order says nothing, named by shape and place in order of norms."""
    arrays = sorted(
        (np.asarray(value, np.float64) for value in values),
        key=lambda array: (array.shape, round(float(np.linalg.norm(array)), 6), array.sum()),
    )
    return {f"{name} {n:02} {list(array.shape)}": digest(array) for n, array in enumerate(arrays)}


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
    "share": lambda f: 0.5 + 0.4 * np.tanh(f[:, :1]),
    "binary": lambda f: (f[:, :1] > 0.0).astype(float),
    "label": lambda f: np.argmax(f, 1)[:, None].astype(float),
    "count": lambda f: np.round(2.0 + 2.0 * f[:, :1]).clip(0.0),
}
X, XNEW = inputs(14, seed=0), inputs(3, seed=1)


def bound_and_gradient(model: Any, data: Any, name: str = "bound", **arguments: Any) -> Numbers:
    """The bound's terms, and its gradient."""
    with tf.GradientTape() as tape:
        terms = model.elbo_terms(data, seed=7, **arguments)
        bound = terms.weighted_sum()
    gradients = tape.gradient(
        bound, model.trainable_variables, unconnected_gradients=tf.UnconnectedGradients.ZERO
    )
    numbers = {name: digest(bound), f"{name}, log ratios": digest(terms.log_ratios)}
    return {**numbers, **digests(f"{name}, gradient", gradients)}


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
    moments: bool = True,
    observed: bool = True,
    likelihood: Callable[[], Any] | None = None,
    **arguments: Any,
) -> Numbers:
    """All that a model says of a small table, with its variables moved from where they start.

    :param builder: Of the package.
    :param depth: Or an architecture.
    :param kind: Of the observations: a key of :data:`OBSERVATIONS`.
    :param dtype: GPflow's default float.
    :param bounds: Arguments of bounds besides the plain one.
    :param weights: Whether rows count as often as a weight says.
    :param missing: Whether an observation is missing.
    :param joint: Whether covariances and functions are among the numbers.
    :param moments: Whether moments and densities of observations are.
    :param observed: Whether draws of observations are.
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
            arguments["likelihood"] = likelihood()
        model = builder(data, depth, num_samples=3, seed=5, **arguments)
        move(model)
        model.num_prediction_samples = 4
        numbers = bound_and_gradient(model, data)
        for name, options in (bounds or {}).items():
            numbers |= bound_and_gradient(model, data, name, **options)
        posterior = model.posterior(seed=9)
        asked: dict[str, Any] = {"predict_f": posterior.predict_f(XNEW)}
        if moments:
            asked["predict_y"] = posterior.predict_y(XNEW)
            asked["predict_log_density"] = posterior.predict_log_density((XNEW, new))
        if observed:
            asked["sample_y"] = model.predict_y_samples(XNEW, 3, seed=4)
        if joint:
            asked["predict_f, full_cov"] = posterior.predict_f(XNEW, full_cov=True)
            asked["predict_f, both"] = posterior.predict_f(XNEW, True, True)[1]
            asked["sample_f"] = model.predict_f_samples(XNEW, 3, seed=4)
            asked["sample_f, points alone"] = posterior.sample_f(XNEW, False)
        for name, value in asked.items():
            for index, part in enumerate(tf.nest.flatten(value)):
                numbers[f"{name} {index}"] = digest(part)
    return numbers


wishart, gaussian = build_deep_wishart_process, build_deep_gaussian_process
inverse, latent = build_deep_inverse_wishart_process, build_latent_variable_deep_gp
network = build_matrix_gaussian_network
KERNEL_PROCESSES = {"wishart": wishart, "gaussian": gaussian, "inverse": inverse}
SMALL: dict[str, Any] = {"num_inducing": 5, "output": "pseudo_targets"}
REGRESSION: dict[str, Any] = {"num_inducing": 5, "output": "regression"}
FEW: dict[str, Any] = {"joint": False, "kind": "one"}
WEIGHTED_BOUND = {"importance-weighted": {"num_importance_samples": 3}}
DOUBLY = {
    **WEIGHTED_BOUND,
    "doubly": {"num_importance_samples": 3, "doubly_reparameterized": True},
}


def heteroskedastic() -> Any:
    """Two functions for one column: location and scale."""
    return likelihoods.HeteroskedasticTFPConditional()


LIKELIHOODS: dict[str, tuple[str, Callable[[], Any]]] = {
    "noise of inputs": (
        "one",
        lambda: likelihoods.Gaussian(gpflow.functions.Linear(np.full((2, 1), 0.01), 0.5)),
    ),
    "Student": ("one", lambda: likelihoods.StudentT(0.2, df=4.0)),
    "WarpedGaussian": ("positive", lambda: WarpedGaussian(SinhArcsinh(), 0.05)),
    "WarpedStudentT": ("positive", lambda: WarpedStudentT(SinhArcsinh(), 0.05, df=4.0)),
    "Exponential": ("positive", likelihoods.Exponential),
    "Gamma": ("positive", likelihoods.Gamma),
    "Beta": ("share", likelihoods.Beta),
    "Poisson": ("count", likelihoods.Poisson),
    "Bernoulli": ("binary", likelihoods.Bernoulli),
    "MultiClass": ("label", lambda: likelihoods.MultiClass(3)),
    "heteroskedastic": ("one", heteroskedastic),
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
            for family in ("GW", "A", "AB")
            for whiten in (False, True)
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
            "depth 3": (builder, 3, {**SMALL}),
            "depth 2, three outputs": (builder, 2, {**SMALL, "kind": "three"}),
            "correlated": (builder, 2, {**SMALL, "kind": "three", "num_functions": 2}),
            "latents": (builder, 2, {**SMALL, "latent_dim": 1, "bounds": WEIGHTED_BOUND}),
            "float32": (builder, 2, {**SMALL, "dtype": np.float32}),
        }
        cases[f"{name}, regression"] = {
            "depth 2, three outputs": (builder, 2, {**REGRESSION, "kind": "three"}),
            "depth 3, weights": (builder, 3, {**REGRESSION, "weights": True, "joint": False}),
            "warp": (builder, 2, {**REGRESSION, **FEW, "warp": True}),
            "Student": (builder, 2, {**REGRESSION, **FEW, "noise": "student_t"}),
            "float32": (builder, 2, {**REGRESSION, "dtype": np.float32}),
        }
    matern = [SquaredExponential(lengthscales=[1.0, 2.0]) + Matern32(), "Matern52"]
    linear = gpflow.functions.Linear
    cases["one layer"] = {
        "pseudo-targets": (wishart, 1, {**SMALL}),
        "regression": (wishart, 1, {**REGRESSION}),
        "gaussian": (gaussian, 1, {**REGRESSION, **FEW}),
        "inverse": (inverse, 1, {**SMALL, **FEW}),
    }
    cases["wishart, options"] = {
        "sampled ratio": (wishart, 2, {**SMALL, **FEW, "expected_log_ratio": False}),
        "sampled ratio, entropy": (
            wishart,
            2,
            {**SMALL, **FEW, "expected_log_ratio": False, "stick_the_landing": False},
        ),
        "width": (wishart, 2, {**SMALL, **FEW, "width": 7}),
        "kernels": (wishart, 2, {**SMALL, **FEW, "kernel": matern}),
        "mean function": (
            wishart,
            2,
            {**SMALL, **FEW, "mean_function": linear(np.ones((2, 1)), [0.5])},
        ),
        "kmeans, missing": (
            wishart,
            2,
            {**SMALL, "joint": False, "kind": "three", "missing": True, "inducing": "kmeans"},
        ),
        "inverse, sampled ratio": (inverse, 2, {**SMALL, **FEW, "expected_log_ratio": False}),
        "Student and warp": (wishart, 2, {**SMALL, **FEW, "noise": "student_t", "warp": True}),
    }
    local = {"num_inducing": 5, "num_functions": 2}
    cases["latent-variable"] = {
        "GP": (latent, "GP", {**local}),
        "GP-GP": (latent, "GP-GP", {**local, "kind": "three"}),
        "LV-GP-GP": (latent, "LV-GP-GP", {**local, "bounds": DOUBLY}),
        "GP-LV-GP": (latent, "GP-LV-GP", {**local, "bounds": DOUBLY, "joint": False}),
        "Bernoulli": (
            latent,
            "LV-GP",
            {**local, "kind": "binary", "likelihood": likelihoods.Bernoulli, "joint": False},
        ),
        "float32": (latent, "LV-GP-GP", {**local, "bounds": DOUBLY, "dtype": np.float32}),
    }
    small = {"width": 4, "num_pseudo_data": 2}
    cases["network"] = {
        "depth 1": (network, 1, {**small, "observed": False}),
        "depth 3": (network, 3, {**small, "largest_dropout": 0.2, "activation": "tanh"}),
        "no mean, cosine": (network, 2, {**small, "zero_mean": True, "activation": "cos"}),
        "lower": (
            network,
            2,
            {
                **small,
                "kind": "three",
                "column_covariance": "full",
                "row_covariance": "rank_one",
                "learn_precision": False,
            },
        ),
        "MultiClass": (
            network,
            2,
            {**small, "kind": "label", "likelihood": lambda: likelihoods.MultiClass(3)},
        ),
        "float32": (network, 2, {**small, "dtype": np.float32}),
    }
    return cases


def distribution_numbers() -> Numbers:
    """Samples, densities, their gradients and moments of all distributions."""
    numbers: Numbers = {}
    names = [n for n in distributions.__all__ if isinstance(getattr(distributions, n), type)]
    for name in names:
        for size, df in [(4, 2), (3, 3), (3, 5)]:
            rng = np.random.default_rng(10 * size + df)
            parameters = reference.random_parameters(name, rng, size, df, (2,))
            counts = {} if name in ("GeneralisedBartlett", "InverseWishart") else {"df": df}
            for dtype in (np.float64, np.float32):
                tensors = {key: tf.constant(value, dtype) for key, value in parameters.items()}
                with tf.GradientTape(persistent=True) as tape:
                    tape.watch(tensors)
                    distribution = getattr(distributions, name)(**counts, **tensors)
                    sample = distribution.sample(3, seed=_SEED)
                    log_prob = distribution.log_prob(sample)
                case = f"{name} {size} {df}{' float32' * (dtype is np.float32)}"
                numbers[f"{case}, sample"] = digest(sample)
                numbers[f"{case}, log_prob"] = digest(log_prob)
                numbers[f"{case}, mean"] = digest(distribution.mean())
                for target, label in [(sample, "sample"), (log_prob, "log_prob")]:
                    gradients = tape.gradient(target, tensors)
                    for key, gradient in gradients.items():
                        numbers[f"{case}, d {label} / d {key}"] = digest(gradient)
    return numbers


def bijector_numbers() -> Numbers:
    """Values and log-determinants of all bijectors."""
    rng = np.random.default_rng(0)
    trapezoid = reference.random_trapezoid(rng, 2, 4, 3)
    singular = trapezoid @ np.swapaxes(trapezoid, -1, -2)
    tril, invertible = (
        reference.random_tril(rng, 2, 3, 3),
        reference.random_invertible(rng, 2, 4, 4),
    )
    cases = {
        "ColumnScaledTril": (bijectors.ColumnScaledTril(), tril),
        "RightTriangularProduct": (bijectors.RightTriangularProduct(tril), trapezoid),
        "SingularCongruence": (bijectors.SingularCongruence(invertible, 3), singular),
        "TallCholeskyOuterProduct": (bijectors.TallCholeskyOuterProduct(3), trapezoid),
    }
    numbers: Numbers = {}
    for name, (bijector, x) in cases.items():
        y = bijector.forward(x).numpy()  # as an array: TFP would find its inverse in a cache
        numbers[f"{name}, forward"] = digest(y)
        numbers[f"{name}, inverse"] = digest(bijector.inverse(y))
        numbers[f"{name}, forward log-determinant"] = digest(bijector.forward_log_det_jacobian(x))
        numbers[f"{name}, inverse log-determinant"] = digest(bijector.inverse_log_det_jacobian(y))
    return numbers


def function_numbers() -> Numbers:
    """Functions and Gram matrices from priors, and functions from posteriors in closed form."""
    numbers: Numbers = {}
    Y = functions(X)
    for name, builder in KERNEL_PROCESSES.items():
        model = builder((X, Y), 3, seed=5, **SMALL)
        move(model)
        layer = model.hidden_layers[0]
        prior = layer.prior(layer.kernel(X[:5])[None])
        numbers[f"{name}, prior"] = digest(prior.sample(2, seed=_SEED))
        for index, gram in enumerate(model.posterior(3, seed=2).gram_matrices(XNEW)):
            numbers[f"{name}, gram {index}"] = digest(gram)
        if builder is not inverse:
            numbers[f"{name}, functions"] = digest(FunctionDraws(model, 3, seed=6)(XNEW))
    model = gaussian((X, Y), 2, seed=5, **SMALL)
    common = model.posterior(3, seed=2, common_random_numbers=True)
    numbers["common random numbers"] = digest(common.predict_f(XNEW)[0])
    for kernel in (SquaredExponential(lengthscales=[1.0, 2.0]), Matern32()):
        drawn = sample_random_functions(kernel, 2, 2, num_samples=3, num_features=20, seed=_SEED)
        numbers[f"prior of {type(kernel).__name__}"] = digest(drawn(tf.constant(XNEW[None])))
    return numbers


def fit_numbers() -> Numbers:
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
            {"protocol": "natural", "num_importance_samples": 3, "doubly_reparameterized": True},
        ),
    }
    numbers: Numbers = {}
    for name, (model, options) in runs.items():
        history = fit(model, (X, Y), 200, seed=8, progress=False, **options)
        numbers[f"{name}, elbo"] = digest(history.elbo[[0, 1, 2, 5, 10, 20, 50, 100, 150, 199]])
        numbers[f"{name}, log ratios"] = digest(history.log_ratios[::50])
        numbers |= digests(f"{name}, variable", model.trainable_variables)
        numbers[f"{name}, predict_y"] = digest(model.predict_y(XNEW, num_samples=4, seed=3))
    return numbers


def selection_numbers() -> Numbers:
    """Single layers by L-BFGS, and a choice of models."""
    Y = OBSERVATIONS["positive"](functions(X))
    noises = {
        "Gaussian": likelihoods.Gaussian(0.05),
        "warped": WarpedGaussian(SinhArcsinh(), 0.05),
        "Student": WarpedStudentT(SinhArcsinh(), 0.05),
    }
    numbers: Numbers = {}
    for name, likelihood in noises.items():
        inducing = X[:6] if name == "warped" else None
        kernel = SquaredExponential(lengthscales=[1.0, 1.0])
        found = fit_gaussian_process((X, Y), kernel, likelihood, inducing, max_iterations=15)
        numbers[f"{name}, elbo"] = digest(found.elbo)
        numbers[f"{name}, course"] = digest(found.course[::5])
        numbers |= digests(f"{name}, variable", [*kernel.variables, *likelihood.variables])
    selection = select_model((X, Y), num_steps=20, seed=1, progress=False)
    numbers["candidates"] = digest([each.elbo for each in selection.candidates])
    numbers["candidates, choices"] = digest(
        [[each.depth, each.ard, each.warp, each.num_data] for each in selection.candidates]
    )
    numbers["selected, predict_y"] = digest(selection.model.predict_y(XNEW, num_samples=4, seed=3))
    return numbers


def estimator_numbers() -> Numbers:
    """Predictions in raw units."""
    f = functions(X)
    settings: dict[str, Any] = {
        "depth": 2,
        "kernel": "SquaredExponential",
        "num_inducing": 5,
        "num_steps": 20,
        "num_prediction_samples": 4,
        "random_state": 0,
    }
    raw, new = 3.0 + 10.0 * X, 3.0 + 10.0 * XNEW
    regressor = DeepWishartRegressor(warp=False, noise="gaussian", **settings)
    regressor.fit(raw, 100.0 + 5.0 * f[:, 0])
    mean, deviation = regressor.predict(new, return_std=True)
    y = 100.0 + 5.0 * functions(XNEW)[:, 0]
    classifier = DeepWishartClassifier(**settings).fit(raw, np.argmax(f, 1))
    return {
        "regressor, mean": digest(mean),
        "regressor, deviation": digest(deviation),
        "regressor, quantiles": digest(regressor.predict_quantiles(new, [0.1, 0.5, 0.9])),
        "regressor, log density": digest(regressor.predict_log_density(new, y)),
        "regressor, samples": digest(regressor.sample_y(new, 3, random_state=0)),
        "regressor, elbo": digest(regressor.history_.elbo[::4]),
        "classifier, probabilities": digest(classifier.predict_proba(new)),
        "classifier, elbo": digest(classifier.history_.elbo[::4]),
    }


def _of_cases(cases: dict[str, tuple[Builder, Any, dict[str, Any]]]) -> Numbers:
    return {
        f"{case}: {name}": value
        for case, (builder, depth, arguments) in cases.items()
        for name, value in model_numbers(builder, depth, **arguments).items()
    }


GROUPS: dict[str, Callable[[], Numbers]] = {
    **{name: functools.partial(_of_cases, cases) for name, cases in _cases().items()},
    "bijectors": bijector_numbers,
    "distributions": distribution_numbers,
    "estimators": estimator_numbers,
    "fit": fit_numbers,
    "functions": function_numbers,
    "selection": selection_numbers,
}
"""What computes the numbers of each group."""


def read() -> dict[str, dict[str, np.ndarray]]:
    """What has been recorded, group by group."""
    groups = json.loads(STORED.read_text(encoding="utf-8"))
    return {
        group: {name: np.asarray(value) for name, value in numbers.items()}
        for group, numbers in groups.items()
    }


def largest_difference(value: np.ndarray, stored: np.ndarray) -> float:
    """Relative to the largest of the stored numbers; infinity where shapes differ."""
    if value.shape != stored.shape:
        return np.inf
    difference = float(np.max(np.abs(value - stored), initial=0.0))
    return difference / max(float(np.max(np.abs(stored), initial=0.0)), SMALLEST)


def differences(numbers: Numbers, stored: Numbers) -> dict[str, float]:
    """Of every name in one of the two, how much the numbers differ; infinity for one alone."""
    return {
        name: largest_difference(numbers[name], stored[name])
        if name in numbers and name in stored
        else np.inf
        for name in {**stored, **numbers}
    }


def record() -> None:
    """Compute all numbers, say how far they are from those recorded, and record them."""
    stored = read() if STORED.exists() else {}
    lines, changes = [], {}
    for group, compute in GROUPS.items():
        numbers = compute()
        found = differences(numbers, stored.get(group, {}))
        changes |= {f"{group}: {name}": change for name, change in found.items() if change}
        entries = ",\n".join(
            f"{json.dumps(name)}: {json.dumps(value.tolist())}" for name, value in numbers.items()
        )
        lines.append(f"{json.dumps(group)}: {{\n{entries}\n}}")
    gone = [group for group in stored if group not in GROUPS]
    print(f"{len(changes)} entries changed; groups that are gone: {gone}")
    for name, change in sorted(changes.items(), key=lambda item: -item[1])[:20]:
        print(f"{change:.1e}  {name}")
    STORED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    record()
