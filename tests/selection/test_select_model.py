"""Choosing a model by its bound."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import pytest
from sklearn.datasets import make_regression

from gpflow_dwp.layers import RegressionGPLayer
from gpflow_dwp.likelihoods import WarpedGaussian, WarpedStudentT
from gpflow_dwp.models import DeepWishartProcess
from gpflow_dwp.models.deepening import start_at
from gpflow_dwp.objectives import Estimator
from gpflow_dwp.selection import _search, select_model
from gpflow_dwp.selection._search import Search, Trial
from gpflow_dwp.selection.gaussian_process import GaussianProcessFit

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 2))
SIGNAL = np.sin(2.0 * X[:, :1])
NOISE = 0.1 * RNG.standard_normal((60, 1))
SHORT: dict[str, Any] = {"num_steps": 60, "progress": False}


def standardised(Y: np.ndarray) -> np.ndarray:
    return (Y - Y.mean(axis=0)) / Y.std(axis=0)


def test_the_best_candidate_is_kept() -> None:
    """Catches a deeper model that is kept although its bound is lower, and kernels mixed up."""
    data = X, standardised(SIGNAL + NOISE)
    selection = select_model(data, **SHORT)

    of_all_rows = [each for each in selection.candidates if each.num_data == len(X)]
    assert selection.best.elbo >= max(each.elbo for each in of_all_rows if each.depth > 1)
    single = [each for each in selection.candidates if each.depth == 1 and not each.warp]
    assert selection.best.kernel == max(single, key=lambda each: each.elbo).kernel
    assert not selection.best.warp
    model = selection.model
    assert type(model.layers[0].kernel).__name__ == selection.best.kernel
    np.testing.assert_allclose(selection.best.elbo, model.elbo(data, seed=0), rtol=1e-2)
    error = model.predict_f(X)[0] - data[1]
    assert np.sqrt(np.mean(np.square(error))) < 0.3


def test_targets_are_warped_where_that_pays() -> None:
    """Catches a warp that is never tried, or whose Jacobian is left out of the comparison."""
    skewed = X, standardised(np.exp(1.5 * (SIGNAL + NOISE)))
    selection = select_model(skewed, depth=1, kernel="Matern52", **SHORT)

    assert selection.best.warp
    assert isinstance(selection.model.likelihood, WarpedGaussian)
    # The process, its warp, heavy tails, the model of all rows, and noise by place.
    assert [each.warp for each in selection.candidates] == [False, True, True, True, False]
    assert selection.best.noise == "gaussian"
    assert not select_model(skewed, depth=1, kernel="Matern52", warp=False, **SHORT).best.warp


def test_tails_are_heavy_where_that_pays() -> None:
    """Catches a bound without the factor of the rows' precisions, and precisions that are lost."""
    outliers = np.where(np.arange(60)[:, None] % 12 == 0, 2.0, 0.0)
    data = X, standardised(SIGNAL + NOISE + outliers)
    selection = select_model(data, depth=1, kernel="Matern52", warp=False, **SHORT)

    assert (selection.best.noise, selection.best.warp) == ("student_t", False)
    model = selection.model
    np.testing.assert_allclose(selection.best.elbo, model.elbo(data, seed=0), rtol=1e-2)
    precisions = model.output_layer.precisions.numpy()
    assert precisions[::12].max() < 0.2 < 0.6 < np.median(precisions)
    gaussian = select_model(
        data, depth=1, kernel="Matern52", warp=False, noise="gaussian", **SHORT
    ).model
    errors = [
        np.mean(np.abs(each.predict_f(X)[0] - data[1])[outliers == 0.0])
        for each in (model, gaussian)
    ]
    assert errors[0] < 0.7 * errors[1]


@pytest.mark.parametrize(("gain", "chosen"), [(0.5, WarpedGaussian), (1.5, WarpedStudentT)])
def test_tails_count_a_nat(
    gain: float, chosen: type[WarpedGaussian], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches tails that rows which need them cannot afford: half the log of the rows is 2."""

    def fitted(*arguments: Any, **_: Any) -> GaussianProcessFit:
        has_tails = isinstance(arguments[2], WarpedStudentT)
        return GaussianProcessFit(gain if has_tails else 0.0, np.zeros(1), None)

    monkeypatch.setattr(_search, "fit_gaussian_process", fitted)
    search = Search(X, SIGNAL, None, 10, None, 1, None, False, {}, seed=0)
    start = search.choose_kernel(("Matern52",), warp=True)

    assert type(search.choose_noise(start, True, "auto").likelihood) is chosen


@pytest.mark.parametrize(
    ("arguments", "num_inducing"),
    [
        ({"noise": "heteroskedastic"}, 100),
        ({"noise": "auto", "batch_size": 110}, 120),
        ({"latent_dim": 1}, 100),
    ],
)
def test_noise_that_differs_by_place_gains_where_there_is_such(
    arguments: dict[str, Any], num_inducing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches single layers with such noise that do not start at the process, or are not trained,
    such noise that is never chosen, steps that the chosen model is spared as it was a trial, and
    as few inducing points for many rows as for few.

    Rows to the right are fifteen times as noisy.
    """
    monkeypatch.setattr(_search, "_ROWS_OF_LONG_TRIALS", 100)
    x = np.linspace(-2.0, 2.0, 120)[:, None]
    noise = np.where(x > 0.0, 0.6, 0.04) * np.random.default_rng(1).standard_normal(x.shape)
    data = standardised(x), standardised(np.sin(2.0 * x) + noise)
    longer = {**SHORT, "num_steps": 300, "kernel": "SquaredExponential", "depth": 1}
    usual = select_model(data, noise="gaussian", warp=False, **longer).best
    selection = select_model(
        data, **{"noise": "gaussian", **arguments}, estimator=Estimator(5), warp=False, **longer
    )

    assert selection.best.elbo > usual.elbo + 10.0
    is_by_place = "noise" in arguments
    assert selection.best.noise == ("heteroskedastic" if is_by_place else "gaussian")
    assert selection.best in selection.candidates
    assert selection.model.inducing_variable.num_inducing == num_inducing
    assert len(selection.history.elbo) == (300 if is_by_place else 150)
    bound = selection.model.elbo(data, estimator=Estimator(5), seed=0)
    np.testing.assert_allclose(selection.best.elbo, bound, atol=5.0)
    mean, variance = selection.model.predict_y(data[0])
    assert np.mean(variance[80:]) > 3.0 * np.mean(variance[:40])
    assert np.isfinite(mean).all()


def test_few_rows_have_one_lengthscale() -> None:
    """Catches lengthscales that fit the noise, and one where inputs differ."""
    rng = np.random.default_rng(1)
    inputs = rng.standard_normal((40, 8))
    alike = np.sum(inputs, axis=1, keepdims=True) + rng.standard_normal((40, 1))
    choices = [
        select_model((inputs, standardised(Y)), depth=1, warp=False, noise="gaussian", **SHORT)
        for Y in (alike, np.sin(2.0 * inputs[:, :1]) + 0.1 * alike)
    ]
    assert [choice.best.ard for choice in choices] == [False, True]
    assert choices[0].model.layers[0].kernel.lengthscales.shape == ()


def test_data_without_noise() -> None:
    """Catches a noise that ends at its bound, where the next candidate's cannot start."""
    line = np.linspace(0.0, 6.0, 30)[:, None]
    data = standardised(line), np.sin(line)
    model = select_model(data, depth=1, noise="student_t", **SHORT).model

    assert np.max(np.abs(model.predict_y(standardised(line))[0] - np.sin(line))) < 0.01


def test_the_bound_of_little_noise_is_the_models() -> None:
    """Catches noise less than the jitter, which the process that is fitted lacks, and a trial that
    fails and takes the models before it along."""
    inputs = np.random.default_rng(0).uniform(-1.0, 1.0, (60, 2))
    data = standardised(inputs), standardised(np.sum(inputs, axis=1, keepdims=True) ** 3)
    selection = select_model(data, depth=1, **{**SHORT, "num_steps": 100})

    np.testing.assert_allclose(selection.best.elbo, selection.model.elbo(data, seed=0), rtol=1e-6)
    mean, variance = selection.model.predict_y(data[0])
    assert np.max(np.abs(mean - data[1])) < 0.02 and np.max(variance) < 1e-3


def test_a_depth_that_is_asked_for_is_trained() -> None:
    """Catches a deep model that does not start at the single layer, and explains all as noise.

    With lengthscales of 1 the features of ten inputs tell nothing of each other, and it does.
    """
    inputs, targets = make_regression(200, 10, n_informative=1, noise=20.0, random_state=42)
    data = standardised(inputs), standardised(targets[:, None])
    selection = select_model(data, depth=2, kernel="Matern32", num_inducing=20, **SHORT)

    assert (selection.best.depth, selection.best.kernel) == (2, "Matern32")
    assert selection.model.inducing_variable.num_inducing == 20
    assert len(selection.history.elbo) == 60
    assert np.mean(np.square(selection.model.predict_f(data[0])[0] - data[1])) < 0.25


@pytest.mark.usefixtures("eager")
def test_the_third_layer_is_added_to_two_that_are_trained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Catches a third layer below which all starts anew, and a second that starts at a GP."""
    began: list[tuple[int, int]] = []
    train = Search.train

    def note(model: DeepWishartProcess, shallower: DeepWishartProcess) -> None:
        began.append((len(model.layers), len(shallower.layers)))
        start_at(model, shallower)

    def better(self: Search, *arguments: Any) -> Trial:
        trial = train(self, *arguments)
        depth = len(trial.model.layers)
        return trial._replace(candidate=trial.candidate._replace(elbo=float(depth)))

    monkeypatch.setattr("gpflow_dwp.selection._search.start_at", note)
    monkeypatch.setattr(Search, "train", better)
    data = X[:12], SIGNAL[:12]
    selection = select_model(
        data, kernel="Matern52", warp=False, noise="gaussian", num_steps=2, progress=False
    )
    assert began == [(3, 2)]
    assert len(selection.model.layers) == 3


def test_outputs_have_noises_of_their_own() -> None:
    noisy = SIGNAL + 5.0 * NOISE
    data = X, standardised(np.hstack([SIGNAL + 0.1 * NOISE, noisy]))
    settings = {**SHORT, "warp": False, "noise": "gaussian", "kernel": "Matern52"}
    model = select_model(data, depth=1, **settings).model

    assert isinstance(model.output_layer, RegressionGPLayer)
    first, second = model.likelihood.variance.numpy()
    assert first < second


def test_labels() -> None:
    labels = np.where(SIGNAL > 0.0, 1.0, 0.0)
    likelihood = gpflow.likelihoods.Bernoulli()
    selection = select_model((X, labels), depth=1, likelihood=likelihood, **SHORT)

    probability = selection.model.predict_y(X)[0].numpy()
    assert np.mean((probability > 0.5) == (labels > 0.5)) > 0.9


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"depth": 0}, "depth must be a positive integer, got 0"),
        ({"kernel": "Cubic"}, "kernel must be one of"),
        ({"warp": "yes"}, "warp must be"),
        ({"noise": "heteroskedastic", "warp": True}, "warp must be False where noise is"),
        ({"latent_dim": -1}, "latent_dim must be"),
        ({"estimator": 5}, "estimator must be"),
        ({"noise": "cauchy"}, "noise must be one of"),
        ({"num_inducing": -1}, "num_inducing must be a positive integer, got -1"),
        ({"patience": 0}, "patience must be a positive integer, got 0"),
        ({"validation_data": (X[:, :1], SIGNAL)}, "validation_data cannot be used: X must have 2"),
        ({"validation_data": X}, r"validation_data cannot be used: data must be a pair \(X, Y\)"),
        ({"likelihood": gpflow.likelihoods.Gaussian()}, "likelihood must be None for Gaussian"),
    ],
)
def test_what_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        select_model((X, SIGNAL), **settings)


def test_rows_of_no_weight_are_not_learned_from() -> None:
    """Catches weights that are lost on the way to one of the models that are tried."""
    spoilt = standardised(SIGNAL + NOISE)
    weights = np.where(np.arange(60) % 4 == 0, 0.0, 1.0)
    data = X, np.where(weights[:, None] > 0.0, spoilt, -spoilt), weights
    for depth in (1, 2):
        settings = {**SHORT, "warp": False, "noise": "gaussian", "kernel": "Matern52"}
        model = select_model(data, depth=depth, **settings).model
        error = (model.predict_f(X)[0] - spoilt).numpy()
        assert np.sqrt(np.mean(np.square(error))) < 0.5


def test_held_out_rows_end_the_steps() -> None:
    """Catches held-out rows that are not looked at: of other labels, any learning is for worse."""
    labels = np.where(SIGNAL > 0.0, 1.0, 0.0)
    selection = select_model(
        (X, labels),
        depth=1,
        likelihood=gpflow.likelihoods.Bernoulli(),
        validation_data=(X, 1.0 - labels),
        patience=3,
        **SHORT,
    )

    # The single layer of labels takes 30 steps, is judged after every one from the fifth on.
    assert selection.history.num_steps < 15
    assert "a callback ended the run" in selection.history.stop_reason
