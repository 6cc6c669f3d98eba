"""Posteriors over iterates, of every kind and for every kind of model."""

from __future__ import annotations

import io
import json
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
from gpflow_dwp.exceptions import SavedModelError
from gpflow_dwp.files import seal, unseal
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

DIMENSION = 4


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
every_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
def iterates() -> np.ndarray:
    rng = np.random.default_rng(0)
    root = rng.standard_normal((DIMENSION, DIMENSION))
    return 1e-2 * rng.standard_normal((400, DIMENSION)) @ root.T + np.arange(DIMENSION)


def _collect(posterior: IteratePosterior, iterates: np.ndarray) -> None:
    for iterate in iterates:
        assign_parameter_vector(posterior.model, iterate)
        posterior.collect()


@every_kind
def test_mean_is_exact(kind: str, iterates: np.ndarray) -> None:
    posterior = KINDS[kind](_Vector())
    _collect(posterior, iterates)

    np.testing.assert_allclose(posterior.distribution().mean, iterates.mean(0), rtol=1e-9)
    assert posterior.num_collected == 400
    posterior.use_mean()
    np.testing.assert_allclose(posterior.model.vector, iterates.mean(0), rtol=1e-9)


def test_average_has_no_spread(iterates: np.ndarray) -> None:
    posterior = IterateAverage(_Vector())
    _collect(posterior, iterates)

    np.testing.assert_array_equal(posterior.distribution().covariance(), np.zeros((4, 4)))
    posterior.sample(seed=0)
    np.testing.assert_allclose(posterior.model.vector, iterates.mean(0))


def test_swag_has_the_covariance_of_its_paper(iterates: np.ndarray) -> None:
    posterior = SWAG(_Vector(), rank=20)
    _collect(posterior, iterates)

    running = np.cumsum(iterates, axis=0) / np.arange(1, 401)[:, None]
    deviations = (iterates - running)[-20:]
    low_rank = deviations.T @ deviations / 19.0
    expected = 0.5 * np.diag(iterates.var(0)) + 0.5 * low_rank
    np.testing.assert_allclose(posterior.distribution().covariance(), expected, rtol=1e-9)


def test_small_variances_around_large_means_survive() -> None:
    iterates = 1e4 + 1e-5 * np.random.default_rng(0).standard_normal((300, DIMENSION))
    for kind in ("swag", "em"):
        posterior = KINDS[kind](_Vector())
        _collect(posterior, iterates)

        variances = np.diag(posterior.distribution().covariance())
        np.testing.assert_allclose(variances, iterates.var(0), rtol=0.5)


def test_factor_analysis_has_the_covariance_of_the_iterates(iterates: np.ndarray) -> None:
    posterior = FactorAnalysisPosterior(_Vector(), OnlineEM(2, warm_up=50))
    _collect(posterior, np.tile(iterates, (5, 1)))

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


@every_kind
def test_saved_and_loaded(kind: str, iterates: np.ndarray, tmp_path: Path) -> None:
    posterior = KINDS[kind](_Vector())
    _collect(posterior, iterates[:200])
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".iterates.npz.partial").write_text("of a killed process")
    posterior.save(tmp_path / "run")
    assert len(list((tmp_path / "run").iterdir())) == 1

    other = KINDS[kind](_Vector())
    other.load(tmp_path / "run")
    for one in (posterior, other):
        _collect(one, iterates[200:])
    for part, expected in zip(other.distribution(), posterior.distribution(), strict=True):
        np.testing.assert_array_equal(part, expected)
    assert other.num_collected == 400


def test_what_cannot_be_loaded(iterates: np.ndarray, tmp_path: Path) -> None:
    posterior = SWAG(_Vector(), rank=3)
    _collect(posterior, iterates[:10])
    posterior.save(tmp_path)

    with pytest.raises(SavedModelError, match="kind='SWAG', but this posterior has 'IterateAver"):
        IterateAverage(_Vector()).load(tmp_path)
    with pytest.raises(SavedModelError, match="rank=3, but this posterior has 4"):
        SWAG(_Vector(), rank=4).load(tmp_path)
    with pytest.raises(SavedModelError, match="dimension=4, but this posterior has 2"):
        SWAG(gpflow.kernels.Matern32(), rank=3).load(tmp_path)
    with pytest.raises(SavedModelError, match="cannot be read"):
        posterior.load(tmp_path / "nothing")
    (tmp_path / "iterates.npz").write_bytes(b"not an archive")
    with pytest.raises(SavedModelError, match="cannot be read"):
        posterior.load(tmp_path)
    assert posterior.num_collected == 10


def _header(**changes: Any) -> np.ndarray:
    header = {"kind": "SWAG", "dimension": DIMENSION, "rank": 3, "num_collected": 10}
    return np.array(json.dumps(seal(header | changes)))


def _archive(**arrays: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut off": lambda content: content[: len(content) // 2],
    "no header": lambda _: _archive(mean=np.zeros(DIMENSION)),
    "header no JSON": lambda _: _archive(header=np.array("{")),
    "no count": lambda content: _with_header(content, num_collected=None),
    "other arrays": lambda content: _with_arrays(content, mean=np.zeros(DIMENSION)),
    "no seal": lambda content: _with_arrays(content, header=np.array('{"num_collected": 9}')),
    "negative count": lambda content: _with_header(content, num_collected=-1),
}


def _with_header(content: bytes, **changes: Any) -> bytes:
    with np.load(io.BytesIO(content)) as archive:
        arrays = dict(archive)
    header = unseal(json.loads(str(arrays["header"])))
    return _archive(**(arrays | {"header": _header(**(header | changes))}))


def _with_arrays(content: bytes, **changes: np.ndarray) -> bytes:
    with np.load(io.BytesIO(content)) as archive:
        return _archive(**(dict(archive) | changes))


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files(damage: str, iterates: np.ndarray, tmp_path: Path) -> None:
    posterior = SWAG(_Vector(), rank=3)
    _collect(posterior, iterates[:10])
    before = posterior.distribution()
    posterior.save(tmp_path)
    path = tmp_path / "iterates.npz"
    content = DAMAGES[damage](path.read_bytes())
    assert content != path.read_bytes()
    path.write_bytes(content)

    with pytest.raises(SavedModelError, match=r"iterates\.npz (cannot be read|is damaged): "):
        posterior.load(tmp_path)
    for part, expected in zip(posterior.distribution(), before, strict=True):
        np.testing.assert_array_equal(part, expected)
    assert posterior.num_collected == 10


def test_an_ensemble_is_loaded_as_a_whole_or_not_at_all(
    iterates: np.ndarray, tmp_path: Path
) -> None:
    ensemble = MultiSWAG([IterateAverage(_Vector()) for _ in range(2)])
    for member in ensemble.members:
        _collect(member, iterates[:10])
    ensemble.save(tmp_path)
    first, other = IterateAverage(_Vector()), SWAG(_Vector(), rank=3)

    with pytest.raises(SavedModelError, match="kind='IterateAverage', but this posterior has 'SW"):
        MultiSWAG([first, other]).load(tmp_path)
    with pytest.raises(SavedModelError, match="not collected by a MultiSWAG of 1 members"):
        MultiSWAG([first]).load(tmp_path)
    assert first.num_collected == other.num_collected == 0


@every_kind
def test_too_few_iterates(kind: str) -> None:
    posterior = KINDS[kind](_Vector())

    with pytest.raises(ValueError, match=r"needs at least \d collected iterates, got 0"):
        posterior.sample(seed=0)
    np.testing.assert_array_equal(posterior.model.vector, np.zeros(DIMENSION))


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


def test_bad_settings() -> None:
    with pytest.raises(ValueError, match="rank must be an integer of at least 2, got 1"):
        SWAG(_Vector(), rank=1)
    with pytest.raises(ValueError, match="start_step must be an integer of at least 0, got -1"):
        IterateAverage(_Vector(), start_step=-1)


def test_parameters_that_are_not_finite_are_not_collected() -> None:
    posterior = IterateAverage(_Vector())
    posterior.model.vector.unconstrained_variable.assign(np.full(DIMENSION, np.nan))

    with pytest.raises(ValueError, match="model must have finite parameters"):
        posterior.collect()
    assert posterior.num_collected == 0


def _data() -> tuple[np.ndarray, np.ndarray]:
    X = np.linspace(-1.0, 1.0, 12)[:, None]
    return X, np.sin(3.0 * X)


def _svgp() -> BayesianModel:
    X, _ = _data()
    return gpflow.models.SVGP(
        gpflow.kernels.Matern52(), gpflow.likelihoods.Gaussian(0.1), X[::3].copy(), num_data=12
    )


MODELS: dict[str, Callable[[], BayesianModel]] = {
    "svgp": _svgp,
    "dwp": lambda: gpflow_dwp.build_deep_wishart_process(_data(), 1, num_inducing=6),
    "network": lambda: gpflow_dwp.build_matrix_gaussian_network(_data(), 2, num_samples=2),
}


def _train(model: BayesianModel, posterior: IteratePosterior) -> None:
    if isinstance(model, VariationalModel):
        gpflow_dwp.fit(
            model, _data(), 24, callbacks=[posterior], callback_interval=2, progress=False
        )
        return
    optimizer = gpflow.keras.tf_keras.optimizers.Adam(0.01)
    loss = model.training_loss_closure(_data())
    for _ in range(12):
        optimizer.minimize(loss, model.trainable_variables)
        posterior.collect()


@pytest.mark.parametrize("name", MODELS)
def test_every_model(name: str) -> None:
    model = MODELS[name]()
    posterior = SWAG(model, rank=4)
    _train(model, posterior)
    assert posterior.num_collected == 12
    own = parameter_vector(model)
    X, Y = _data()
    options: dict[str, Any] = {} if name == "svgp" else {"num_samples": 3}

    mean, variance = posterior.predict_y(X, 4, **options)
    density = posterior.predict_log_density((X, Y), 4, **options)
    latent, _ = posterior.predict_f(X, 4, **options)
    np.testing.assert_array_equal(parameter_vector(model), own)
    assert mean.shape == variance.shape == latent.shape == (12, 1)
    assert density.shape == (12,)
    assert np.all(np.isfinite(density)) and np.all(variance > 0.0)


def test_predictions_are_the_mixture() -> None:
    model = _svgp()
    posterior = SWAG(model, rank=4)
    _train(model, posterior)
    X, Y = _data()
    moments, densities = [], []
    for at_draw in posterior.at_draws(5, seed=3):
        moments.append([part.numpy() for part in at_draw.predict_y(X)])
        densities.append(at_draw.predict_log_density((X, Y)).numpy())

    mean, variance = posterior.predict_y(X, 5, seed=3)
    means, variances = np.array(moments).swapaxes(0, 1)
    np.testing.assert_allclose(mean, means.mean(0))
    np.testing.assert_allclose(variance, (variances + means**2).mean(0) - means.mean(0) ** 2)
    density = posterior.predict_log_density((X, Y), 5, seed=3)
    np.testing.assert_allclose(density, logsumexp(densities, axis=0) - np.log(5.0))


@pytest.mark.parametrize(
    ("likelihood", "dtype"),
    [
        (gpflow.likelihoods.Softmax, np.int64),
        (gpflow.likelihoods.MultiClass, np.int32),
        (gpflow.likelihoods.MultiClass, np.float64),
    ],
)
def test_densities_of_labels(likelihood: Any, dtype: Any) -> None:
    X, _ = _data()
    labels = np.arange(12)[:, None] % 3
    model = gpflow.models.SVGP(
        gpflow.kernels.Matern52(), likelihood(3), X[::3].copy(), num_latent_gps=3
    )
    posterior = IterateAverage(model)
    posterior.collect()

    tf.random.set_seed(0)
    density = posterior.predict_log_density((X, labels.astype(dtype)), 2)
    # Softmax integrates by Monte Carlo.
    expected = model.predict_log_density((X, labels))
    np.testing.assert_allclose(density, expected, atol=0.3)


def test_start_step_leaves_the_first_iterates_out() -> None:
    model = MODELS["dwp"]()
    posterior = IterateAverage(model, start_step=6)
    gpflow_dwp.fit(model, _data(), 10, callbacks=[posterior], callback_interval=2, progress=False)

    assert posterior.num_collected == 2


def test_parameters_are_put_back_after_a_failure() -> None:
    model = _svgp()
    posterior = SWAG(model, rank=4)
    _train(model, posterior)
    own = parameter_vector(model)

    with pytest.raises(TypeError) as error:
        posterior.predict_f(_data()[0], 2, num_samples=3)
    np.testing.assert_array_equal(parameter_vector(model), own)
    assert "num_samples" in str(error.value)


def test_several_starts(iterates: np.ndarray, tmp_path: Path) -> None:
    members = [SWAG(_svgp(), rank=4) for _ in range(2)]
    for index, member in enumerate(members):
        member.model.q_mu.assign(member.model.q_mu + float(index))
        _train(member.model, member)
    ensemble = MultiSWAG(members)
    X, _ = _data()

    mean, variance = ensemble.predict_y(X, 6)
    draws = [model.predict_y(X) for model in ensemble.at_draws(6)]
    np.testing.assert_allclose(mean, np.mean([draw[0] for draw in draws], axis=0))
    assert np.all(variance > np.mean([draw[1] for draw in draws], axis=0))

    ensemble.save(tmp_path)
    others = MultiSWAG([SWAG(_svgp(), rank=4) for _ in range(2)])
    others.load(tmp_path)
    for other, member in zip(others.members, members, strict=True):
        np.testing.assert_array_equal(other.distribution().mean, member.distribution().mean)


def test_bad_ensembles() -> None:
    member = IterateAverage(_Vector())
    with pytest.raises(ValueError, match="members must hold at least one posterior"):
        MultiSWAG([])
    with pytest.raises(ValueError, match="members must have a model each"):
        MultiSWAG([member, IterateAverage(member.model)])
    ensemble = MultiSWAG([member, IterateAverage(_Vector())])
    with pytest.raises(ValueError, match="multiple of the number of members, 2, got 3"):
        ensemble.predict_f(np.zeros((1, 1)), 3)


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(ValueError, match="model must be an instance of Module, got NoneType"):
        SWAG(None)  # type: ignore[arg-type]
