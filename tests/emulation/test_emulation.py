"""Emulators: what is asked of a fitted model, against second implementations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from exact_process import Exact, one_layer
from scipy.stats import norm, qmc

from gpflow_dwp import build_deep_wishart_process, emulation
from gpflow_dwp.emulation.emulator import as_emulator, sobol_points
from gpflow_dwp.emulation.leave_one_out import LeaveOneOutPredictions
from gpflow_dwp.estimator import DeepWishartRegressor, _further_runs
from gpflow_dwp.exceptions import TargetWarning
from gpflow_dwp.likelihoods.named import MOST_NUGGET
from gpflow_dwp.models import DeepWishartProcess, model_from_bytes
from gpflow_dwp.selection import conditioning, policy
from gpflow_dwp.selection import leave_one_out as leave_one_out_of_model

HERE = Path(__file__).parent
BOUNDS = np.array([[-np.pi, np.pi]] * 3)
SQUARE = np.array([[0.0, 1.0], [0.0, 2.0]])

pytestmark = pytest.mark.usefixtures("untraced", "plain_single_layers")


def ishigami(X: np.ndarray) -> np.ndarray:
    return np.sin(X[:, 0]) + 7.0 * np.sin(X[:, 1]) ** 2 + 0.1 * X[:, 2] ** 4 * np.sin(X[:, 0])


def hill(X: np.ndarray) -> np.ndarray:
    return 5.0 + 20.0 * np.sin(3.0 * X[:, 0]) * np.exp(-X[:, 1])


def ridge(X: np.ndarray) -> np.ndarray:
    return np.tanh(8.0 * (X[:, 0] - 0.5 * X[:, 1]))


def design(bounds: np.ndarray, size: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    unit = qmc.LatinHypercube(len(bounds), optimization="random-cd", seed=rng).random(size)
    return qmc.scale(unit, *bounds.T)


def single_layer(X: np.ndarray, y: np.ndarray, **arguments: object) -> DeepWishartRegressor:
    return one_layer(**arguments).fit(X, y)


@pytest.fixture(scope="module")
def emulator() -> DeepWishartRegressor:
    X = design(BOUNDS, 150)
    return single_layer(X, ishigami(X))


@pytest.fixture(scope="module")
def noisy() -> tuple[DeepWishartRegressor, Exact]:
    X = design(SQUARE, 25)
    y = hill(X) + 0.5 * np.random.default_rng(1).standard_normal(25)
    found = single_layer(X, y, likelihood="gaussian")
    return found, Exact(found, X, y)


@pytest.fixture(scope="module")
def deep() -> DeepWishartProcess:
    X = design(SQUARE, 15)
    return build_deep_wishart_process((X, ridge(X)[:, None]), depth=2, width=3)


def test_leave_one_out_is_that_of_refitting() -> None:
    """Catches another row's prediction, and units of the model in place of raw ones."""
    X = design(SQUARE, 30)
    y = ridge(X)
    y = y + 0.05 * y.std() * np.random.default_rng(0).standard_normal(30)
    fitted = single_layer(X, y, likelihood="gaussian")
    found = emulation.leave_one_out(fitted)
    assert found.mean.shape == found.std.shape == (30,)
    for row in (0, 17):
        others = np.arange(30) != row
        exact = Exact(fitted, X[others], y[others])
        mean, covariance = exact(X[[row]])
        std = np.sqrt(covariance[0, 0] + exact.scale**2 * exact.noise)
        np.testing.assert_allclose([found.mean[row], found.std[row]], [mean[0], std], rtol=1e-3)
        density = norm.logpdf(y[row], mean[0], std)
        np.testing.assert_allclose(found.log_density[row], density, atol=1e-2)


def test_leave_one_out_of_a_deep_model_may_be_smoothed(deep: DeepWishartProcess) -> None:
    """Catches other draws, and weights that prefer draws which know the run."""
    found = emulation.leave_one_out(deep, num_samples=40)
    expected = leave_one_out_of_model(deep, 40, 0)
    np.testing.assert_allclose(found.mean, expected.mean())
    smoothed = emulation.leave_one_out(deep, num_samples=40, smoothed=True)
    assert smoothed.k_hat.shape == (15,)
    assert smoothed.log_density.mean() < found.log_density.mean()


def test_outliers_are_named_in_the_figure() -> None:
    """Catches rows that are counted otherwise, and a panel without its lines."""
    observed = np.array([0.0, 1.0, 2.0, 9.0])
    plain = LeaveOneOutPredictions(observed, np.arange(4.0), np.ones(4), *[np.zeros(4)] * 2)
    assert plain.outliers.tolist() == [3]
    _, right = emulation.plot_leave_one_out(plain).axes
    assert [text.get_text() for text in right.texts] == ["3"]
    assert sorted(line.get_ydata()[0] for line in right.lines[1:]) == [-3.0, -2.0, 2.0, 3.0]


def test_gradients_are_finite_differences_of_predictions(emulator: Any, deep: Any) -> None:
    """Catches units that are forgotten, rows that mix, and random numbers that change."""
    step = 1e-4
    for model, bounds in ((emulator, BOUNDS), (deep, SQUARE)):
        x, seen = design(bounds, 5, seed=3), as_emulator(model)
        found = emulation.gradient(model, x)
        for column, direction in enumerate(step * np.eye(len(bounds))):
            ends = [seen.moments(x + sign * direction) for sign in (1.0, -1.0)]
            for slopes, up, down in zip(found, *ends, strict=True):
                if slopes is found[1]:
                    up, down = np.sqrt(up), np.sqrt(down)
                slope = slopes[:, column].reshape(up.shape)
                np.testing.assert_allclose((up - down) / (2 * step), slope, rtol=1e-5, atol=1e-5)


def test_sobol_indices_and_main_effects_of_ishigami(emulator: DeepWishartRegressor) -> None:
    """Catches indices of other inputs, intervals without the truth, and parts of what is no sum."""
    found = emulation.sobol_indices(emulator, BOUNDS, num_functions=16)
    for name, truth in (("first", (0.314, 0.442, 0.0)), ("total", (0.558, 0.442, 0.244))):
        np.testing.assert_allclose(getattr(found, name), truth, atol=0.03)
        lower, upper = getattr(found, f"{name}_interval")
        assert ((lower <= np.add(truth, 1e-3)) & (np.subtract(truth, 1e-3) <= upper)).all()
    effects = emulation.main_effects(emulator, BOUNDS, resolution=7, num_functions=8)
    curve = np.sin(effects.points[0]) * (1.0 + 0.1 * np.pi**4 / 5.0) + 3.5
    np.testing.assert_allclose(effects.mean[0], curve, atol=0.4)
    lower, upper = effects.interval
    assert (lower <= upper).all() and effects.shares is None


def test_intervals_of_main_effects_are_those_of_the_joint_posterior(noisy: Any) -> None:
    """Catches covariances between points that are left out, and another scale."""
    fitted, exact = noisy
    effects = emulation.main_effects(fitted, SQUARE, resolution=3, num_points=16)
    points = sobol_points(SQUARE, 16, 0)
    points[:, 1] = effects.points[1, 2]
    mean, covariance = exact(points)
    half = 1.96 * np.sqrt(covariance.mean())
    np.testing.assert_allclose(effects.mean[1, 2], mean.mean(), rtol=1e-3)
    found = effects.interval[:, 1, 2] - effects.mean[1, 2]
    np.testing.assert_allclose(found, [-half, half], rtol=1e-2)


def test_main_effects_average_over_draws_of_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches the interval under one draw, and means of draws that count for nothing."""
    monkeypatch.setattr(policy, "FEWEST_ITERATIONS", 10)
    X = design(SQUARE, 10)
    model = single_layer(X, X.prod(axis=1), kernel="Matern52")
    assert model.model_.output_layer.kernel_draws is not None
    effects = emulation.main_effects(model, SQUARE, resolution=2, num_points=16)
    points = sobol_points(SQUARE, 16, 0)
    points[:, 0] = effects.points[0, 1]
    units = model._raw_units()
    drawn = model._draws(4_000, 0).sample_f(units.to_model(points)).numpy().mean(axis=1)
    expected = np.quantile(units.to_raw(drawn), [0.025, 0.975])
    np.testing.assert_allclose(effects.interval[:, 0, 1], expected, atol=0.1 * np.ptp(expected))


def test_shares_of_a_sum_of_functions() -> None:
    """Catches a part that goes to another input, a line that is forgotten, and inputs as they are.
    By another route: the functions that were added."""
    cube = np.array([[0.0, 4.0]] * 3)
    X = design(cube, 60, seed=2)
    y = np.sin(3.0 * X[:, 0]) + 0.5 * X[:, 1]
    fitted = single_layer(X, y, kernel="AdditiveMatern52")
    found = emulation.main_effects(fitted, cube, resolution=2, num_points=64).shares
    X = sobol_points(cube, 64, 0)
    truth = np.array([np.sin(3.0 * X[:, 0]), 0.5 * X[:, 1]])
    np.testing.assert_allclose(found.single.sum() + found.joint, 1.0)
    y = truth.sum(axis=0)
    expected = [np.cov(part, y)[0, 1] / y.var(ddof=1) for part in truth]
    np.testing.assert_allclose(found.single[:2], expected, atol=0.05)
    np.testing.assert_allclose([found.single[2], found.joint], 0.0, atol=0.05)


def test_a_linear_trend_goes_on_far_from_all_runs() -> None:
    """Catches a trend that ends with the runs, is sure of itself, or is another model's."""

    def truth(X: np.ndarray) -> np.ndarray:
        return 3.0 + 2.0 * X[:, 0] - X[:, 1] + 0.5 * np.sin(9.0 * X[:, 1])

    X = np.random.default_rng(11).random((25, 2))
    y = truth(X) + 0.1 * np.random.default_rng(0).standard_normal(25)
    fitted = single_layer(X, y, likelihood="auto", kernel="auto", mean_function="linear")
    far = np.array([[0.5, 0.5], [3.0, 0.5], [-9.0, 0.2]])
    mean, std = fitted.predict(far, return_std=True, include_noise=False)
    expected, covariance = Exact(fitted, X, y)(far)
    np.testing.assert_allclose(mean, expected, rtol=1e-3)
    np.testing.assert_allclose(std, np.sqrt(np.diag(covariance)), rtol=1e-2)
    assert (np.abs(mean - truth(far)) < 3.0 * std).all() and (std[1:] > 2.0 * std[:-1]).all()
    wrong = {"mean_function": "quadratic"}, {"kernel": "Matern52"}, {"kernel": "auto", "depth": 2}
    for arguments in wrong:
        given = {"mean_function": "linear", **arguments}
        with pytest.raises(ValueError, match="'linear'"):
            DeepWishartRegressor(**given).fit(X, y)


@pytest.mark.parametrize(
    ("criterion", "replicates"), [("ALM", False), ("ALC", False), ("ALC", True)]
)
def test_a_batch_is_what_conditioning_asks_for(
    noisy: Any, criterion: str, replicates: bool
) -> None:
    """Catches a variance that counts noise, and a batch whose runs ignore each other. And
    replicates that are judged as new runs: of candidates in a corner they tell more."""
    fitted, exact = noisy
    candidates = design((0.2 if replicates else 1.0) * SQUARE, 40, seed=5)
    given = {"criterion": criterion, "candidates": candidates, "replicates": replicates}
    found = emulation.suggest(fitted, SQUARE, 3, **given)
    if replicates:
        candidates = np.concatenate([candidates, exact.X])
    covariance, noise = exact(candidates)[1], exact.scale**2 * exact.noise
    for run in found:
        after = [
            covariance - np.outer(column, column) / (column[index] + noise)
            for index, column in enumerate(covariance)
        ]
        is_alm = criterion == "ALM"
        gains = np.diagonal(covariance) if is_alm else [-np.trace(each[:40, :40]) for each in after]
        best = int(np.argmax(gains))
        np.testing.assert_allclose(run, candidates[best])
        covariance = after[best]


def test_a_loop_meets_each_run_it_is_told() -> None:
    """Catches runs that are lost, and a refit that forgets what there was."""
    X = design(SQUARE, 16)
    fitted = single_layer(X, ridge(X))
    new = emulation.suggest(fitted, SQUARE, 8, candidates=64)
    fitted.tell(new, ridge(new))
    assert fitted.model_.num_data == 24
    assert np.abs(fitted.predict(X) - ridge(X)).max() < 0.03
    assert np.abs(fitted.predict(new) - ridge(new)).max() < 0.03


def test_runs_far_outside_are_fitted_in_units_of_their_own() -> None:
    """Catches the scale of the first runs, in which later ones are noise, and lost arguments."""
    X = design(SQUARE, 40)
    near, both = 0.02 * X[:6], np.concatenate([0.02 * X[:6], X])
    fitted = single_layer(near, ridge(near), warm_start=True).tell(X, ridge(X))
    anew = single_layer(both, ridge(both))
    np.testing.assert_array_equal(fitted.input_standardiser_.scale, anew.input_standardiser_.scale)
    np.testing.assert_allclose(fitted.predict(X), anew.predict(X), atol=1e-3)


@pytest.mark.usefixtures("eager")
def test_noise_that_depends_on_inputs_is_told_and_left_out() -> None:
    """Catches a model without a regression's rows, for which each of the two ended in an error."""
    X = design(SQUARE, 12)
    noisy = single_layer(X, hill(X), likelihood="heteroskedastic", num_steps=2, num_inducing=5)
    left_out = emulation.leave_one_out(noisy)
    np.testing.assert_array_equal(left_out.observed, hill(X))
    assert (left_out.std > 0.5 * noisy.predict(X, return_std=True)[1]).all()
    assert noisy.tell(X[:2] + 0.01, hill(X[:2] + 0.01), num_steps=2).model_.num_data == 14
    assert len(emulation.leave_one_out(noisy).crps) == 14


@pytest.mark.usefixtures("eager")
def test_the_better_of_two_starts_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a start from nothing that is kept because it is new, or never, and parts of a deep
    model that do not fit the runs it has grown by."""
    log_density = Mock(side_effect=[1.0, 0.0, 0.0, 1.0])
    monkeypatch.setattr(_further_runs, "_log_density", log_density)
    monkeypatch.setattr(_further_runs, "_TIMES_ANEW", 1)
    X, given = design(SQUARE, 8), {"kernel": "SquaredExponential", "likelihood": "gaussian"}
    fitted = DeepWishartRegressor(depth=2, width=2, num_steps=2, num_samples=1, **given)
    before = fitted.fit(X, ridge(X)).model_
    for number, kept in enumerate((0, 3), start=1):
        fitted.tell([[0.5, 1.0], [0.1, 0.1]], [1.0, np.nan], num_steps=1)
        compared = [call.args[0] for call in log_density.call_args_list]
        assert len(compared) == 2 * number and fitted.model_ is compared[kept]
        assert (fitted.model_.num_data, fitted.num_failed_) == (8 + number, number)
    grown = compared[1]
    assert before.inducing_variable.Z.shape[0] == 8 and grown.inducing_variable.Z.shape[0] == 9
    kernels = [model.layers[0].kernel.lengthscales.numpy() for model in (before, grown)]
    np.testing.assert_allclose(*kernels, rtol=0.2)


@pytest.mark.filterwarnings("ignore::gpflow_dwp.exceptions.TargetWarning")
def test_failed_runs_are_left_out_counted_and_avoided() -> None:
    """Catches NaN that are trained on, and proposals where runs fail."""
    unit = np.array([[0.0, 1.0]] * 2)
    X = design(unit, 60)
    y = np.where(X.sum(1) > 1.6, np.nan, ridge(X))
    fitted = single_layer(X, y, failures=True)
    assert fitted.num_failed_ == np.isnan(y).sum()
    assert fitted.model_.num_data == 60 - fitted.num_failed_
    found = emulation.suggest(fitted, unit, 20, criterion="ALM")
    assert np.mean(found.sum(1) > 1.6) <= 0.1
    effects = emulation.main_effects(fitted, unit, resolution=3, num_points=64, num_functions=2)
    assert np.isfinite(effects.mean).all()
    with pytest.raises(ValueError, match="all runs failed"):
        single_layer(X, np.full(60, np.nan))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        single_layer(X, y[:-1])


@pytest.mark.usefixtures("eager")
def test_a_deep_model_without_noise_learns_and_looks_at_near_runs(monkeypatch: Any) -> None:
    """Catches one that only appends runs, and noise that comes back with them."""
    monkeypatch.setattr(conditioning, "_SHARES_OF_NOISE", (1.0,))
    monkeypatch.setattr(policy, "FEWEST_ITERATIONS", 1)  # with which the first fit is conditioned
    X = design(SQUARE, 123)
    given = {"kernel": "SquaredExponential", "likelihood": "noise_free", "num_inducing": 4}
    fitted = DeepWishartRegressor(depth=2, width=2, num_steps=1, num_samples=1, **given)
    fitted.fit(X[:122], ridge(X[:122]))
    models = [fitted.model_, fitted.tell(X[122:], ridge(X[122:]), num_steps=1).model_]
    assert models[1].num_data == 123
    for model in models:
        assert model.output_layer.num_neighbours == policy.NEIGHBOURS_OF_FIT
        assert model.likelihood.variance.numpy() <= MOST_NUGGET * (1.0 + 1e-6)
    scales = [model.layers[0].kernel.lengthscales.numpy() for model in models]
    assert (np.diff(scales, axis=0) != 0.0).all()


def test_several_outputs_share_a_model() -> None:
    """Catches an axis of outputs that is lost, or mixed with that of inputs, and a constant."""
    X = design(SQUARE, 18)
    y = np.stack([hill(X), np.full(18, 7.0), X[:, 0]], axis=1)
    with pytest.warns(TargetWarning, match="1 of 3 targets are constant"):
        fitted = single_layer(X, y)
    x = X[:4]
    mean, std = fitted.predict(x, return_std=True)
    np.testing.assert_allclose(mean, y[:4], atol=0.05)
    assert (std[:, 1] == 0.0).all() and (std[:, ::2] > 0.0).all()
    assert emulation.implausibility(fitted, x, [5.0, 7.1, 0.0]).min() > 1e100
    with pytest.raises(ValueError, match="column 2"):
        fitted.tell(x, np.zeros((4, 3)))
    assert emulation.leave_one_out(fitted).mean.shape == (18, 3)
    assert emulation.gradient(fitted, x)[0].shape == (4, 2, 3)
    found = emulation.sobol_indices(fitted, SQUARE, num_points=256, num_functions=2)
    assert found.first_interval.shape == (2, 2, 3)
    np.testing.assert_allclose(found.first[:, 2], [1.0, 0.0], atol=0.05)
    effects = emulation.main_effects(fitted, SQUARE, resolution=4, num_points=16, num_functions=2)
    assert effects.mean.shape == (2, 4, 3)
    errors = np.abs(np.array([1.0, 7.0, 0.2]) - mean)
    worst = np.max(errors[:, ::2] / std[:, ::2], axis=1)
    np.testing.assert_allclose(emulation.implausibility(fitted, x, [1.0, 7.0, 0.2]), worst)
    with pytest.raises(ValueError, match="observation must be 3"):
        emulation.implausibility(fitted, x, [1.0, 2.0])


@pytest.mark.slow
def test_outputs_with_kernels_of_their_own_are_emulated_as_if_alone(tmp_path: Path) -> None:
    """Catches kernels, noises or posteriors of outputs that change places, in any prediction."""
    X = design(SQUARE, 25)
    y = np.stack([hill(X), np.sin(3.0 * X[:, 1])], axis=1)
    both = single_layer(X[:23], y[:23]).tell(X[23:], y[23:])
    kernels = both.candidates_[-1].kernel, type(both.model_.output_layer.kernel).__name__
    assert kernels == ("SeparateIndependent", "SeparateIndependent")
    both.save(tmp_path / "both")
    both = DeepWishartRegressor.load(tmp_path / "both")
    alone = [single_layer(X[:23], each[:23]).tell(X[23:], each[23:]) for each in y.T]
    mean, std = both.predict(X[:4] + 0.1, return_std=True)
    left_out = emulation.leave_one_out(both)
    effects = emulation.main_effects(both, SQUARE, resolution=3, num_points=64)
    for index, one in enumerate(alone):
        own, own_std = one.predict(X[:4] + 0.1, return_std=True)
        tolerance = {"rtol": 2e-2, "atol": 1e-2 * y[:, index].std()}
        np.testing.assert_allclose(mean[:, index], own, **tolerance)
        np.testing.assert_allclose(std[:, index], own_std, **tolerance)
        found = emulation.leave_one_out(one)
        np.testing.assert_allclose(left_out.std[:, index], found.std, **tolerance)
        interval = emulation.main_effects(one, SQUARE, resolution=3, num_points=64).interval
        np.testing.assert_allclose(effects.interval[..., index], interval, **tolerance)


def test_a_kept_emulator_loads_and_predicts_the_same() -> None:
    """Catches a format that is no longer read, and other draws."""
    model = model_from_bytes((HERE / "kept_emulator.zip").read_bytes())
    kept = json.loads((HERE / "kept_predictions.json").read_text(encoding="utf-8"))
    mean, variance = model.posterior(20, seed=0).predict_y(np.array(kept["points"]))
    np.testing.assert_allclose(mean[:, 0], kept["mean"], rtol=1e-6)
    np.testing.assert_allclose(variance[:, 0], kept["variance"], rtol=1e-5)


def test_bad_input_is_named(emulator: DeepWishartRegressor) -> None:
    """Catches bounds in the wrong order, inputs outside of them, and what was never fitted."""
    wrong = (BOUNDS[:2], "shape"), (BOUNDS[:, ::-1], "pairs"), (0.5 * BOUNDS, "within bounds")
    for bounds, message in wrong:
        with pytest.raises(ValueError, match=message):
            emulation.suggest(emulator, bounds, candidates=BOUNDS.T)
    with pytest.raises(ValueError, match="candidates must be an integer of at least 2, got 0"):
        emulation.suggest(emulator, BOUNDS, 2, candidates=0)
    with pytest.raises(ValueError, match="num_points must be a positive integer, got 0"):
        emulation.main_effects(emulator, BOUNDS, num_points=0)
    unfit = (DeepWishartRegressor(), "must be fitted"), ("gp", "DeepWishartRegressor")
    for model, message in unfit:
        with pytest.raises(ValueError, match=message):
            emulation.leave_one_out(model)
