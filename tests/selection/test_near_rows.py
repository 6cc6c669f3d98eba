"""Single layers fitted to rows given those near them, and what comes of many rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gpflow
import numpy as np
import pytest

from gpflow_dwp import build_deep_wishart_process
from gpflow_dwp.estimator import DeepWishartRegressor
from gpflow_dwp.gaussian_process.predictions import leave_out
from gpflow_dwp.kernels.values import values_of
from gpflow_dwp.likelihoods import WarpedStudentT
from gpflow_dwp.selection import leave_one_out
from gpflow_dwp.selection.choice import Choice
from gpflow_dwp.selection.near_rows import NearRows, fit_to_near_rows
from gpflow_dwp.selection.single_layers import SingleLayers

pytestmark = pytest.mark.usefixtures("plain_single_layers")

RNG = np.random.default_rng(0)
X = RNG.uniform(-2.0, 2.0, (300, 2))
F = np.sin(X[:, :1]) + X[:, 1:]
KERNEL = gpflow.kernels.SquaredExponential(1.5, [0.5, 4.0])


def test_neighbours_are_of_rows_that_count_and_by_lengthscales() -> None:
    """Catches indices of one order taken for those of another, and distances without scales."""
    order, places = RNG.permutation(300)[:200], np.array([150, 3, 40])
    rows, index = NearRows(X, order).others(places, values_of(KERNEL))
    np.testing.assert_array_equal(rows[index[:, -1]], order[places])
    scaled = X / [0.5, 4.0]
    for row, others in zip(order[places], index[:, :-1], strict=True):
        may_be = order[order != row]
        apart = np.linalg.norm(scaled[may_be] - scaled[row], axis=1)
        assert {*rows[others]} == {*may_be[np.argsort(apart)[: index.shape[1] - 1]]}


def test_left_out_with_rows_as_inducing_points_it_is_that_of_the_exact_process() -> None:
    """Catches rows that are mixed up, and the row itself among its neighbours."""
    rows = np.array([5, 0, 17])
    data = X[:40], F[:40] + 0.1 * RNG.standard_normal((40, 1))
    model = build_deep_wishart_process(data, 1, output="regression", kernel=KERNEL, num_inducing=40)
    model.output_layer.num_neighbours = 5
    model.output_layer.noise_variance.assign(model.likelihood.variance)
    found = leave_one_out(model, rows=rows)
    noise = model.likelihood.variance.numpy()
    mean, variance = leave_out(*data, np.full(40, noise), KERNEL)
    np.testing.assert_allclose(found.means[0], mean[rows], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(found.variances[0, :, 0], variance[rows] + noise, rtol=1e-3)


@pytest.fixture(scope="module")
def regressor() -> Iterator[DeepWishartRegressor]:
    """Of more rows than are exact: 7 a period, of which 3.5 choose, and 2 are started from."""
    x = np.random.default_rng(1).uniform(0.0, 1.0, (350, 1))
    y = np.sin(2.0 * np.pi * 50.0 * x[:, 0])
    given = {"kernel": "SquaredExponential", "likelihood": "gaussian", "num_inducing": 20}
    model = DeepWishartRegressor(depth=1, random_state=0, **given)
    with pytest.MonkeyPatch.context() as patch:
        for name, rows in (("EXACT_ROWS", 300), ("ROWS_FOR_CHOICE", 175), ("ROWS_FOR_STARTS", 90)):
            patch.setattr(f"gpflow_dwp.selection.policy.{name}", rows)
        yield model.fit(x, y)


def test_what_few_rows_do_not_show_is_seen(regressor: DeepWishartRegressor) -> None:
    """Catches a choice by some rows alone: more rows of a fast function are no worse."""
    new = np.linspace(0.01, 0.99, 100)[:, None]
    error = regressor.predict(new) - np.sin(2.0 * np.pi * 50.0 * new[:, 0])
    assert regressor.model_.output_layer.num_neighbours
    assert np.sqrt(np.mean(error**2)) < 0.2


@pytest.mark.usefixtures("eager")
def test_given_tails_and_weights_of_many_rows_are_heeded(monkeypatch: Any) -> None:
    """Catches tails that are asked for and dropped, and weights that are taken for no noise."""
    monkeypatch.setattr("gpflow_dwp.selection.policy.EXACT_ROWS", 200)
    x, outliers = X + 0.3 * RNG.standard_normal(X.shape), np.zeros(300)
    outliers[:12] = 3.0 * RNG.standard_normal(12)
    y = np.sin(x[:, 0]) + 0.1 * RNG.standard_normal(300) + outliers
    settings = {"depth": 1, "kernel": "SquaredExponential", "num_inducing": 20, "random_state": 0}
    model = DeepWishartRegressor(likelihood="student_t", num_steps=4, **settings)
    model.fit(x, y, sample_weight=np.where(np.arange(300) < 150, 2.0, 1.0))
    assert isinstance(model.model_.likelihood, WarpedStudentT)
    assert model.model_.output_layer.num_neighbours
    assert np.sqrt(np.mean((model.predict(x[::4]) - np.sin(x[::4, 0])) ** 2)) < 0.05


@pytest.mark.parametrize("has_outliers", [True, False])
def test_tails_are_kept_where_rows_contradict_their_copies(has_outliers: bool) -> None:
    """Catches densities of -30,000 of others like them, and tails of noise that has none."""
    copies = F[:9] + 3.0 if has_outliers else F[:9]
    data = np.vstack([X, X[:9]]), np.vstack([F, copies]) + 0.1 * RNG.standard_normal((309, 1))
    singles = SingleLayers(*data, None, np.zeros(1), Choice(num_steps=5), 0)
    plain = singles.plain(["SquaredExponential"])
    free, given = (
        fit_to_near_rows(singles, plain[0], plain, is_given=is_given) for is_given in (False, True)
    )
    assert isinstance(free.likelihood, WarpedStudentT) == has_outliers
    assert not isinstance(given.likelihood, WarpedStudentT)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("depth", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_several_outputs_are_predicted_from_rows_near(depth: int, monkeypatch: Any) -> None:
    """Catches outputs that are chosen by bounds, and neighbours that were not observed."""
    monkeypatch.setattr("gpflow_dwp.selection.policy.EXACT_ROWS", 80)
    rng, x, f = np.random.default_rng(5), X[:160], F[:160, 0]
    fast = np.sin(20.0 * x[:, 0])
    y = np.stack([f + 0.1 * rng.standard_normal(160), fast], axis=1)
    y[rng.random(160) < 0.3, 0] = np.nan
    settings = {"kernel": "SquaredExponential", "likelihood": "gaussian", "num_inducing": 20}
    settings |= {"width": 2, "random_state": 0, "num_prediction_samples": 5}
    steps = 10 if depth == 1 else 1
    model = DeepWishartRegressor(depth=depth, **settings, num_steps=steps).fit(x, y)
    layer = model.model_.output_layer
    assert layer.num_neighbours and len(layer.kernels) == 2
    errors = np.abs(model.predict(x[::4]) - np.stack([f, fast], axis=1)[::4])
    assert np.all(np.sqrt(np.mean(errors**2, axis=0)) < ([0.1, 0.2] if depth == 1 else [0.5, 1.0]))
    assert np.isfinite(leave_one_out(model.model_, rows=np.arange(5)).means).all()
    model.tell(x[:1] + 5.0, [[np.nan, 1.0]])
    assert len(model.model_.output_layer.targets.numpy()) == 161


def test_further_rows_are_taken_in_at_once(regressor: DeepWishartRegressor) -> None:
    new = np.array([[1.1], [1.101]])
    before = regressor.predict(new, return_std=True)[1]
    regressor.tell(new, [3.0, 3.0])
    mean, after = regressor.predict(new, return_std=True)
    assert len(regressor.model_.output_layer.targets.numpy()) == 352
    assert np.all(after < before) and np.all(mean > 1.0)
