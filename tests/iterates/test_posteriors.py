"""Posteriors over iterates, of every kind and for every kind of model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.models import BayesianModel
from scipy.special import logsumexp

import gpflow_dwp
from gpflow_dwp.iterates import (
    SWAG,
    FactorAnalysisPosterior,
    IterateAverage,
    IteratePosterior,
    MultiSWAG,
    OnlineEM,
    OnlineGradientAscent,
    assign_parameter_vector,
    parameter_vector,
)
from gpflow_dwp.models import VariationalModel
from gpflow_dwp.random import as_seed, fold_in

DIMENSION = 4
X = np.linspace(-1.0, 1.0, 12)[:, None]
DATA = X, np.sin(3.0 * X)


class _Vector(gpflow.models.BayesianModel):
    """A model whose only parameter is a vector, in float64."""

    def __init__(self) -> None:
        super().__init__()
        self.vector = gpflow.Parameter(np.zeros(DIMENSION))

    def maximum_log_likelihood_objective(self) -> tf.Tensor:
        return tf.constant(0.0)


KINDS: dict[str, Callable[[BayesianModel], IteratePosterior]] = {
    "average": IterateAverage,
    "swag": lambda model: SWAG(model, rank=3),
    "em": lambda model: FactorAnalysisPosterior(model, OnlineEM(2, warm_up=5)),
    "ascent": lambda model: FactorAnalysisPosterior(model, OnlineGradientAscent(2, warm_up=5)),
}


@pytest.fixture(scope="module")
def iterates() -> np.ndarray:
    rng = np.random.default_rng(0)
    root = rng.standard_normal((DIMENSION, DIMENSION))
    return 1e-2 * rng.standard_normal((30, DIMENSION)) @ root.T + np.arange(DIMENSION)


def _collect(posterior: IteratePosterior, iterates: np.ndarray) -> None:
    for iterate in iterates:
        assign_parameter_vector(posterior.model, iterate)
        posterior.collect()


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_the_mean_and_goes_on_from_a_checkpoint(
    kind: str, iterates: np.ndarray, tmp_path: Path
) -> None:
    """Catches state that a checkpoint misses: a posterior goes on as if nothing had been."""
    posterior, other = KINDS[kind](_Vector()), KINDS[kind](_Vector())
    with pytest.raises(ValueError, match=r"needs at least \d collected iterates, got 0"):
        posterior.sample(seed=0)
    np.testing.assert_array_equal(posterior.model.vector, np.zeros(DIMENSION))
    _collect(posterior, iterates[:15])
    path = tf.train.Checkpoint(posterior).write(str(tmp_path / "run"))
    tf.train.Checkpoint(other).read(path).assert_consumed()
    for one in (posterior, other):
        _collect(one, iterates[15:])
    for part, expected in zip(other.distribution(), posterior.distribution(), strict=True):
        np.testing.assert_array_equal(part, expected)
    assert posterior.num_collected == other.num_collected == 30
    np.testing.assert_allclose(posterior.distribution().mean, iterates.mean(0), rtol=1e-9)
    posterior.use_mean()
    np.testing.assert_allclose(posterior.model.vector, iterates.mean(0), rtol=1e-9)


def test_average_has_no_spread_and_swag_the_covariance_of_its_paper(iterates: np.ndarray) -> None:
    average, posterior = IterateAverage(_Vector()), SWAG(_Vector(), rank=20)
    for each in (average, posterior):
        _collect(each, iterates)

    np.testing.assert_array_equal(average.distribution().covariance(), np.zeros((4, 4)))
    average.sample(seed=0)
    np.testing.assert_allclose(average.model.vector, iterates.mean(0))
    running = np.cumsum(iterates, axis=0) / np.arange(1, 31)[:, None]
    deviations = (iterates - running)[-20:]
    low_rank = deviations.T @ deviations / 19.0
    expected = 0.5 * np.diag(iterates.var(0)) + 0.5 * low_rank
    np.testing.assert_allclose(posterior.distribution().covariance(), expected, rtol=1e-9)


def test_small_variances_around_large_means_survive() -> None:
    iterates = 1e4 + 1e-5 * np.random.default_rng(0).standard_normal((60, DIMENSION))
    for posterior in (SWAG(_Vector(), rank=20), KINDS["em"](_Vector())):
        _collect(posterior, iterates)

        variances = np.diag(posterior.distribution().covariance())
        np.testing.assert_allclose(variances, iterates.var(0), rtol=0.5)


def test_factor_analysis_has_the_covariance_of_the_iterates(iterates: np.ndarray) -> None:
    posterior = FactorAnalysisPosterior(_Vector(), OnlineEM(2, warm_up=20))
    _collect(posterior, np.tile(iterates, (20, 1)))

    expected = np.cov(iterates.T)
    covariance = np.asarray(posterior.distribution().covariance())
    np.testing.assert_allclose(np.diag(covariance), np.diag(expected), rtol=0.2)
    assert np.linalg.norm(covariance - expected) < 0.2 * np.linalg.norm(expected)


def test_a_parameter_that_does_not_move_stays(iterates: np.ndarray) -> None:
    still = iterates.copy()
    still[:, 1] = 3.0
    for kind in ("swag", "em", "ascent"):
        posterior = KINDS[kind](_Vector())
        _collect(posterior, still)

        posterior.sample(seed=0)
        np.testing.assert_allclose(posterior.model.vector[1], 3.0, atol=1e-6)


@pytest.mark.parametrize("algorithm", [OnlineEM, OnlineGradientAscent])
@pytest.mark.parametrize(("warm_up", "needed"), [(2, 4), (5, 6)])
def test_factor_analysis_needs_iterates_after_its_warm_up(
    algorithm: Any, warm_up: int, needed: int, iterates: np.ndarray
) -> None:
    posterior = FactorAnalysisPosterior(_Vector(), algorithm(2, warm_up=warm_up))
    _collect(posterior, iterates[: needed - 1])

    with pytest.raises(ValueError, match=f"at least {needed} collected iterates, got {needed - 1}"):
        posterior.distribution()
    _collect(posterior, iterates[needed - 1 : needed])
    assert posterior.distribution().mean.shape == (DIMENSION,)


def _svgp() -> BayesianModel:
    return gpflow.models.SVGP(
        gpflow.kernels.Matern52(), gpflow.likelihoods.Gaussian(0.1), X[::3].copy(), num_data=12
    )


MODELS: dict[str, Callable[[], BayesianModel]] = {
    "svgp": _svgp,
    "dwp": lambda: gpflow_dwp.build_deep_wishart_process(DATA, 1, num_inducing=6),
    "network": lambda: gpflow_dwp.build_matrix_gaussian_network(DATA, 2, num_samples=2),
}


def _wander(posterior: IteratePosterior) -> None:
    """Collect five iterates around the model's parameters."""
    start, rng = parameter_vector(posterior.model), np.random.default_rng(0)
    for _ in range(5):
        assign_parameter_vector(posterior.model, start + 0.05 * rng.standard_normal(start.shape))
        posterior.collect()


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("name", MODELS)
def test_predictions_of_every_model_are_the_mixture(name: str) -> None:
    """Catches iterates of the first steps that count, a seed that all draws share, and a model that
    is left with parameters that are not its own, also after a failure."""
    model = MODELS[name]()
    posterior = SWAG(model, rank=4, start_step=1)
    if isinstance(model, VariationalModel):
        each = {"callbacks": [posterior], "callback_interval": 1}
        gpflow_dwp.fit(model, DATA, 5, **each, progress=False)
        assert posterior.num_collected == 4
    else:
        _wander(posterior)
    own, seed = parameter_vector(model), as_seed(3)
    moments, densities = [], []
    for index, at_draw in enumerate(posterior.at_draws(2, seed=3)):
        options = {} if name == "svgp" else {"num_samples": 2, "seed": fold_in(seed, index)}
        moments.append([part.numpy() for part in at_draw.predict_y(X, **options)])
        densities.append(at_draw.predict_log_density(DATA, **options).numpy())
    options.pop("seed", None)

    mean, variance = posterior.predict_y(X, 2, seed=3, **options)
    means, variances = np.array(moments).swapaxes(0, 1)
    np.testing.assert_allclose(mean, means.mean(0))
    np.testing.assert_allclose(variance, (variances + means**2).mean(0) - means.mean(0) ** 2)
    density = posterior.predict_log_density(DATA, 2, seed=3, **options)
    np.testing.assert_allclose(density, logsumexp(densities, axis=0) - np.log(2.0))
    assert posterior.predict_f(X, 1, **options)[0].shape == (12, 1)
    with pytest.raises(TypeError, match="unknown"):
        posterior.predict_f(X, 2, unknown=3)
    np.testing.assert_array_equal(parameter_vector(model), own)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("kind", ["Softmax", "MultiClass"])
def test_densities_of_labels(kind: str) -> None:
    labels = np.arange(12)[:, None] % 3
    likelihood = getattr(gpflow.likelihoods, kind)(3)
    kernel = gpflow.kernels.Matern52()
    model = gpflow.models.SVGP(kernel, likelihood, X[::3].copy(), num_latent_gps=3)
    posterior = IterateAverage(model)
    posterior.collect()

    tf.random.set_seed(0)
    given = labels if kind == "Softmax" else labels.astype(float)
    density = posterior.predict_log_density((X, given), 2)
    # Softmax integrates by Monte Carlo.
    expected = model.predict_log_density((X, labels))
    np.testing.assert_allclose(density, expected, atol=0.3)


def test_several_starts(tmp_path: Path) -> None:
    members = [SWAG(_svgp(), rank=4) for _ in range(2)]
    for index, member in enumerate(members):
        member.model.q_mu.assign(member.model.q_mu + float(index))
        _wander(member)
    ensemble = MultiSWAG(members)

    mean, variance = ensemble.predict_y(X, 6)
    draws = [model.predict_y(X) for model in ensemble.at_draws(6)]
    np.testing.assert_allclose(mean, np.mean([draw[0] for draw in draws], axis=0))
    assert np.all(variance > np.mean([draw[1] for draw in draws], axis=0))

    path = tf.train.Checkpoint(ensemble).write(str(tmp_path / "ensemble"))
    others = MultiSWAG([SWAG(_svgp(), rank=4) for _ in range(2)])
    tf.train.Checkpoint(others).read(path).assert_consumed()
    assert others.members[0].num_collected == 5
    for other, member in zip(others.members, members, strict=True):
        np.testing.assert_array_equal(other.distribution().mean, member.distribution().mean)


def test_what_is_refused() -> None:
    member = SWAG(_Vector())
    ensemble = MultiSWAG([member, SWAG(_Vector())])
    refused: dict[str, Callable[[], object]] = {
        "members must hold at least one posterior": lambda: MultiSWAG([]),
        "members must have a model each": lambda: MultiSWAG([member, member]),
        "multiple of the number of members, 2, got 3": lambda: ensemble.predict_f(np.eye(1), 3),
        "model must be an instance of Module, got NoneType": lambda: SWAG(None),  # type: ignore[arg-type]
        "rank must be an integer of at least 2, got 1": lambda: SWAG(_Vector(), rank=1),
        "start_step must be an integer of at least 0": lambda: SWAG(_Vector(), start_step=-1),
        "model must have finite parameters": member.collect,
        r"vector must have shape \(4,\), got \(3,\)": lambda: assign_parameter_vector(
            member.model, np.zeros(3)
        ),
        "Module has no trainable parameters": lambda: parameter_vector(tf.Module()),
    }
    member.model.vector.unconstrained_variable.assign(np.full(DIMENSION, np.nan))
    for message, make in refused.items():
        with pytest.raises(ValueError, match=message):
            make()
    assert member.num_collected == 0 and np.isnan(parameter_vector(member.model)).all()


def test_papers_are_those_of_members_and_models() -> None:
    """Catches a posterior that is cited without its method, or without its model."""
    model, vector = gpflow_dwp.build_matrix_gaussian_network(DATA), _Vector()
    keys = ["wilson2020", "maddox2019", "louizos2016", "brownlie2021", "GPflow2017"]
    text = gpflow_dwp.citation(MultiSWAG([SWAG(model), KINDS["em"](vector)]))

    assert [key for key in keys if key in text] == keys and text.count("@") == len(keys)


def test_round_trip_of_a_parameter_vector() -> None:
    kernel = gpflow.kernels.Matern32(lengthscales=[1.0, 2.0])
    vector = parameter_vector(kernel)
    assert vector.shape == (3,)

    assign_parameter_vector(kernel, vector + 0.5)
    np.testing.assert_allclose(parameter_vector(kernel), vector + 0.5)
    np.testing.assert_allclose(kernel.variance.unconstrained_variable, np.log(np.expm1(1.0)) + 0.5)
    gpflow.set_trainable(kernel.variance, False)
    assert parameter_vector(kernel).shape == (2,)
