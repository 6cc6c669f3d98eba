"""Chains of emulators, against quadrature over what exact Gaussian processes pass on."""

from __future__ import annotations

import copy
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import gpflow
import numpy as np
import pandas
import pytest
import scipy.stats
import tensorflow as tf
from exact_process import Exact, one_layer
from scipy.stats import qmc

from gpflow_dwp import emulation
from gpflow_dwp.emulation.emulator import as_emulator
from gpflow_dwp.estimator import ChainedEmulator, DeepWishartRegressor

pytestmark = pytest.mark.usefixtures("eager", "untraced")

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(20)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
MIXTURE = gpflow.kernels.LinearCoregionalization(
    [gpflow.kernels.SquaredExponential()], W=np.ones((2, 1))
)
SQUARE = np.array([[0.0, 1.0]] * 2)


def design(size: int, num_inputs: int = 2, seed: int = 10) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return qmc.LatinHypercube(num_inputs, optimization="random-cd", seed=rng).random(size)


def fine(X: np.ndarray) -> np.ndarray:
    return (6.0 * X[:, 0] - 2.0) ** 2 * np.sin(12.0 * X[:, 0] - 4.0)


def coarse(X: np.ndarray) -> np.ndarray:
    return 0.5 * fine(X) + 10.0 * X[:, 0] - 10.0


def under_draws(regressor: DeepWishartRegressor, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance under each draw of the kernel, [20, N]."""
    scale = regressor.output_standardiser_.scale[0]
    points = regressor._raw_units().to_model(x)
    moments = regressor._posterior().predict_f_components(points)
    mean, variance = (np.broadcast_to(part[..., 0], (20, len(x))) for part in moments)
    return regressor.output_standardiser_.mean[0] + scale * mean, scale**2 * variance


def passed_on(
    first: DeepWishartRegressor, x: np.ndarray, predict: object
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation of what gets normals of the first, by quadrature under each draw."""
    mean, variance = under_draws(first, x)
    inputs = mean + NODES[:, None, None] * np.sqrt(variance)  # [20 nodes, 20 draws, N]
    found, spread = (
        np.einsum("sksn->ksn", part.reshape(20, 20, 20, -1)) for part in predict(inputs.ravel())
    )
    total = np.einsum("k,ksn->n", WEIGHTS, found) / 20
    second = np.einsum("k,ksn->n", WEIGHTS, spread + found**2) / 20
    return total, np.sqrt(second - total**2)


@pytest.fixture(scope="module")
def linked() -> ChainedEmulator:
    X = design(7)
    first = one_layer().fit(X, 2.0 + np.sin(5.0 * X[:, 0]) * X[:, 1])
    W = np.stack([np.linspace(1.0, 3.0, 7), design(7, 1)[:, 0]], axis=1)
    second = one_layer().fit(W, 10.0 * np.cos(2.0 * W[:, 0]) + W[:, 1])
    return ChainedEmulator([first, second], [None, [2, 0]])


def test_moments_are_those_of_quadrature(linked: ChainedEmulator) -> None:
    """Catches means in place of draws, columns that change places, and units that are forgotten."""
    first, second = linked.links
    x = design(6, seed=11)

    def predict(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return under_draws(second, np.stack([w, np.resize(x[:, 0], len(w))], axis=1))

    mean, std = passed_on(first, x, predict)
    many = ChainedEmulator(linked.links, [None, [2, 0]], num_samples=4_096)
    found = many.predict(x, return_std=True)
    by_means = np.sqrt(predict(first.predict(x))[1].mean(0))
    assert (std > 1.5 * by_means).any()
    np.testing.assert_allclose(found[0], mean, atol=0.05 * std.max())
    np.testing.assert_allclose(found[1], std, rtol=0.1, atol=1e-3)
    lower, upper = many.predict_interval(x, 0.9)
    assert ((lower < mean) & (mean < upper)).all()


def test_functions_are_those_of_the_predictions(linked: ChainedEmulator) -> None:
    """Catches coherent draws of another chain than the one of single points."""
    x = design(4, seed=11)
    mean, std = linked.predict(x, return_std=True)
    drawn = linked.sample_y(x, 400)
    np.testing.assert_allclose(drawn.mean(axis=1), mean, atol=0.2 * std.max())
    np.testing.assert_allclose(drawn.std(axis=1), std, rtol=0.25, atol=0.02)


def test_all_of_emulation_takes_a_chain(linked: ChainedEmulator, tmp_path: Path) -> None:
    """Catches what reads a single model, gradients that end at a link, and attributes not saved."""
    x = design(5, seed=12)
    mean, std = linked.predict(x, return_std=True)
    slopes = emulation.gradient(linked, x)[0]
    ends = [linked.predict(x + sign * np.array([[1e-5, 0.0]])) for sign in (1.0, -1.0)]
    np.testing.assert_allclose(slopes[:, 0], (ends[0] - ends[1]) / 2e-5, rtol=1e-3, atol=1e-3)
    found = emulation.implausibility(linked, x, 1.0, observation_std=0.3)
    np.testing.assert_allclose(found, np.abs(1.0 - mean) / np.sqrt(std**2 + 0.09))
    effects = emulation.main_effects(linked, SQUARE, resolution=2, num_points=32, num_functions=8)
    assert effects.interval.shape == (2, 2, 2) and effects.shares is None
    new = emulation.suggest(linked, SQUARE, 2, candidates=x)
    assert all((each == x).all(axis=1).any() for each in new)
    with pytest.raises(ValueError, match=r"call suggest\(chain.links\[i\]"):
        emulation.suggest(linked, SQUARE, replicates=True)
    linked.save(tmp_path / "chain")
    loaded = ChainedEmulator.load(tmp_path / "chain")
    np.testing.assert_array_equal(loaded.predict(x), mean)
    left_out = emulation.leave_one_out(linked).mean
    np.testing.assert_array_equal(left_out, emulation.leave_one_out(linked.links[1]).mean)


def test_seeds_go_by_names_that_all_of_scipy_knows(
    linked: ChainedEmulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches ``rng``, which SciPy has since 1.15: older ones are allowed."""
    sobol, indices = Mock(side_effect=qmc.Sobol), Mock(side_effect=scipy.stats.sobol_indices)
    monkeypatch.setattr(qmc, "Sobol", sobol)
    monkeypatch.setattr(scipy.stats, "sobol_indices", indices)
    chain = ChainedEmulator(linked.links, [None, [2, 0]], num_samples=8)
    found = emulation.sobol_indices(chain, SQUARE, num_points=16, num_functions=8)
    assert found.first.shape == (2,) and sobol.called and indices.called
    calls = [*sobol.call_args_list, *indices.call_args_list]
    assert not any("rng" in call.kwargs for call in calls)


def test_an_exported_chain_needs_tensorflow_alone(linked: ChainedEmulator, tmp_path: Path) -> None:
    """Catches a parameter that is no constant, other draws, and units of the model."""
    linked.export(tmp_path / "exported")
    served, x = tf.saved_model.load(str(tmp_path / "exported")), design(3, seed=11)
    mean, std = linked.predict(x, return_std=True)
    found = served.signatures["predict_y"](X=tf.constant(x))
    np.testing.assert_allclose(found["mean"].numpy()[:, 0], mean)
    np.testing.assert_allclose(np.sqrt(found["variance"])[:, 0], std)
    functions = linked._raw_units().sample_functions(linked._posterior(), x)
    np.testing.assert_allclose(served.sample(tf.constant(x))["samples"], functions, rtol=1e-6)
    densities = served.log_density(tf.constant(x), tf.constant(mean[:, None]))["log_density"]
    np.testing.assert_allclose(densities, linked.predict_log_density(x, mean))


def test_a_run_fails_by_what_its_own_link_gets(
    linked: ChainedEmulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches a third link that is asked at outputs of the first."""
    first, second = linked.links
    third, x = one_layer().fit(design(7, 1), np.arange(7.0)), design(5, seed=12)
    monkeypatch.setattr(third, "_failure_at", lambda w: 1.0 / (1.0 + np.exp(-w[:, 0])))
    chain = ChainedEmulator([first, second, third], [None, [2, 0], [3]])
    passed = second.predict(np.stack([first.predict(x), x[:, 0]], axis=1))
    np.testing.assert_allclose(chain.predict_failure(x), third._failure_at(passed[:, None]))


@pytest.mark.filterwarnings("ignore:.*targets are constant")
def test_finer_versions_are_fitted_anew_where_an_output_is_constant() -> None:
    """Catches outputs that are put in another shape without the constant one."""
    X, few = design(9, 1), design(5, 1, seed=11)
    runs = [(x, np.stack([f(x), np.ones(len(x))], axis=1)) for x, f in ((X, coarse), (few, fine))]
    chain = ChainedEmulator.coarse_to_fine(runs, one_layer())
    chain.tell([[0.5]], [[coarse(np.array([[0.5]]))[0], 1.0]], stage=0)
    assert chain.links[1].model_.num_data == 5
    np.testing.assert_allclose(chain.predict(few)[:, 1], 1.0)


def test_finer_versions_that_are_fitted_anew_have_all_their_rows() -> None:
    """Catches a tenth of them that is lost each time."""
    runs = [(X, f(X)) for X, f in ((design(20, 1), coarse), (design(12, 1, seed=11), fine))]
    chain = ChainedEmulator.coarse_to_fine(runs, one_layer(early_stopping=True))
    count = chain.links[1].model_.num_data
    chain.tell([[0.5]], coarse(np.array([[0.5]])), stage=0)
    assert chain.links[1].model_.num_data == count < 12


def without(chain: ChainedEmulator, x: float, kept: np.ndarray) -> tuple[float, float]:
    """What coarse and fine emulators without kernel draws predict from some fine runs, in NumPy."""
    first, *others = chain.links
    mean, std = first.predict([[x]], return_std=True, include_noise=False)
    nodes, means, seconds = mean + NODES * std, [], []
    for each, added in zip(others, (0.0, nodes), strict=True):
        X, y = (part[kept] for part in each._rows[:2])
        exact = Exact(each, X, y[:, 0])
        found, covariance = exact(np.column_stack([np.full(20, x), nodes]))
        left = np.diag(covariance) * len(X) / max(len(X) - 4, 1)
        variance = left + exact.scale**2 * exact.noise
        means.append(WEIGHTS @ (added + found))
        seconds.append(WEIGHTS @ (variance + (added + found) ** 2))
    return np.mean(means), np.sqrt(np.mean(seconds) - np.mean(means) ** 2)


def test_coarse_to_fine_is_the_mixture_of_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a difference that is not added again, or to another draw than was passed.

    And a run that is left out of one of both emulators alone.
    """
    X, few, x = design(9, 1), design(5, 1, seed=11), design(12, 1, seed=12)
    runs = [(X, coarse(X)), (few, fine(few))]
    chain = ChainedEmulator.coarse_to_fine(runs, one_layer())
    first, direct, relative = chain.links

    def predict(w: np.ndarray, link: DeepWishartRegressor) -> tuple[np.ndarray, np.ndarray]:
        mean, variance = under_draws(link, np.column_stack([np.resize(x, len(w)), w]))
        return mean + (w if link is relative else 0.0), variance * 5.0 / (5 - 2 - 2)

    moments = [passed_on(first, x, partial(predict, link=each)) for each in (direct, relative)]
    mean = 0.5 * (moments[0][0] + moments[1][0])
    std = np.sqrt(np.mean([s**2 + (m - mean) ** 2 for m, s in moments], axis=0))
    found = chain.predict(x, return_std=True)
    np.testing.assert_allclose(found[0], mean, atol=0.05 * std.max())
    np.testing.assert_allclose(found[1], std, rtol=0.1, atol=0.03 * std.max())
    lower, upper = chain.predict_interval(x)
    assert np.mean((lower <= fine(x)) & (fine(x) <= upper)) >= 0.9
    chain.tell(x[:3], coarse(x[:3]), stage=0)
    assert [each.model_.num_data for each in chain.links] == [12, 5, 5]
    np.testing.assert_allclose(direct._rows[0][:, 1], chain.links[0].predict(few))
    for each in chain.links:  # whose coarse runs are else not known well enough at the fine ones
        each.model_.output_layer.set_kernel_draws(None)
    np.testing.assert_allclose(chain.predict(few), fine(few), atol=0.05)
    left_out = emulation.leave_one_out(chain, num_samples=256)
    np.testing.assert_allclose(left_out.observed, fine(few))
    for row in (0, 3):
        mean, std = without(chain, few[row, 0], np.arange(5) != row)
        np.testing.assert_allclose(left_out.mean[row], mean, atol=0.05 * std)
        np.testing.assert_allclose(left_out.std[row], std, rtol=0.05)
    monkeypatch.setattr(chain, "_left_out", lambda _: (None, None))  # once more
    with pytest.raises(ValueError, match="smoothed must be False of chains"):
        emulation.leave_one_out(chain, smoothed=True)


def test_a_field_is_its_components_and_what_they_leave(tmp_path: Path) -> None:
    """Catches patterns that are scaled twice, variance left out, and constant outputs.

    By another route: eigenvectors of the covariance.
    """
    X = design(12)
    times = np.linspace(0.0, 1.0, 30)
    amplitudes = np.stack([1.0 + X[:, 0], X[:, 1] ** 2, 0.05 * np.sin(9.0 * X[:, 0])], axis=1)
    waves = np.stack([np.cos(3.0 * times), 5.0 * times, np.sin(20.0 * times)])
    Y = np.insert(amplitudes @ waves + 100.0, 3, 7.0, axis=1)
    chain = ChainedEmulator.of_field(X, Y, one_layer(), num_components=2)
    x, varies = design(5, seed=11), np.arange(31) != 3
    center, scale = Y[:, varies].mean(axis=0), Y[:, varies].std(axis=0)
    Z = (Y[:, varies] - center) / scale
    patterns = np.linalg.eigh(Z.T @ Z)[1][:, :-3:-1].T
    left = np.sum((Z - Z @ patterns.T @ patterns) ** 2, axis=0) / (12 - 1 - 2)
    of_components = one_layer().fit(X, Z @ patterns.T)
    mean, std = of_components.predict(x, return_std=True)
    found = chain.predict(x, return_std=True)
    np.testing.assert_allclose(found[0][:, varies], center + scale * (mean @ patterns), atol=1e-3)
    expected = scale * np.sqrt(std**2 @ patterns**2 + left)
    # Draws of two kernels are as many pairs, of which covariances are not quite zero.
    np.testing.assert_allclose(found[1][:, varies], expected, rtol=0.03)
    np.testing.assert_array_equal(found[0][:, 3], 7.0)
    np.testing.assert_array_equal(found[1][:, 3], 0.0)
    drawn = chain.sample_y(x, 1_000)
    np.testing.assert_allclose(drawn.std(axis=2)[:, varies], expected, rtol=0.15)
    assert np.isfinite(chain.predict_log_density(X[:2], Y[:2])).all()
    left_out = emulation.leave_one_out(chain)
    components = emulation.leave_one_out(of_components)
    chain.tell(x[:2], np.stack([Y[0], np.full(31, np.nan)])).save(tmp_path / "field")
    told = emulation.leave_one_out(ChainedEmulator.load(tmp_path / "field"))
    np.testing.assert_array_equal(told.observed, np.concatenate([Y, Y[:1]]))
    mean, std = components.mean @ patterns, components.std**2 @ patterns**2
    np.testing.assert_allclose(left_out.mean[:, varies], center + scale * mean, atol=1e-2)
    np.testing.assert_allclose(left_out.std[:, varies], scale * np.sqrt(std + left), rtol=0.03)
    with pytest.raises(ValueError, match=r"y must have shape .1, 31., got"):
        chain.tell(x[:1], Y[:1, :4])


def test_a_field_of_few_runs_takes_fewer_components_than_these() -> None:
    """Catches a default that is refused where runs are not of low rank."""
    Y = np.random.default_rng(0).standard_normal((6, 9))
    assert len(ChainedEmulator.of_field(design(6), Y, one_layer())._field[1]) == 4


def test_noise_of_coefficients_is_in_observations_of_a_field_alone() -> None:
    """Catches draws of a field without it, in which outputs that go together are independent."""
    X = design(30)
    amplitudes = X + 0.2 * np.random.default_rng(0).standard_normal(X.shape)
    Y = amplitudes @ np.stack([np.ones(8), np.linspace(-1.0, 1.0, 8)])
    chain = ChainedEmulator.of_field(X, Y, one_layer(likelihood="gaussian"), num_components=2)
    std = chain.predict(X[:3], return_std=True)[1]
    assert (chain.predict(X[:3], return_std=True, include_noise=False)[1] < 0.6 * std).all()
    drawn = chain.sample_y(X[:3], 1_000)
    np.testing.assert_allclose(drawn.std(axis=2), std, rtol=0.15)
    assert np.corrcoef(drawn[0, 3:5])[0, 1] > 0.9


def test_deep_links_and_outputs_with_kernels_of_their_own() -> None:
    """Catches draws of hidden layers that meet another draw's inputs, and outputs that mix."""
    X = design(7)
    y = np.stack([np.sin(5.0 * X[:, 0]), X[:, 1]], axis=1)
    first = one_layer().fit(X, y)
    deep = DeepWishartRegressor(depth=2, kernel=["SquaredExponential"] * 2, num_steps=2, width=3)
    deep.set_params(random_state=0).fit(y, np.tanh(5.0 * y[:, 0]) + y[:, 1])
    x = design(5, seed=11)
    mean, std = first.predict(x, return_std=True)
    drawn = mean + std * np.random.default_rng(0).standard_normal((40, 1, 2))
    parts = deep.predict(drawn.reshape(-1, 2), return_std=True)
    means, deviations = (np.reshape(part, (40, 5)) for part in parts)
    chain = ChainedEmulator([first, deep])
    found = chain.predict(x, return_std=True)
    expected = np.sqrt(np.mean(deviations**2, axis=0) + means.var(axis=0))
    np.testing.assert_allclose(found[0], means.mean(axis=0), atol=0.3 * expected.max())
    np.testing.assert_allclose(found[1], expected, rtol=0.3)
    backwards = ChainedEmulator([deep, first], [[0, 1], [2, 0]], num_samples=16)
    assert backwards.predict(y[:3]).shape == backwards.sample_y(y[:3], 2)[..., 0].shape == (3, 2)


def test_noise_is_passed_on_or_not() -> None:
    """Catches observations where functions are meant, and the reverse."""
    rng = np.random.default_rng(0)
    X = np.linspace(0.0, 1.0, 60)[:, None]
    noisy = one_layer(likelihood="gaussian").fit(X, X[:, 0] + 0.2 * rng.standard_normal(60))
    noisy.model_.output_layer.set_kernel_draws(None)
    W = np.linspace(-1.0, 2.0, 12)[:, None]
    tripled = one_layer().fit(W, 3.0 * W[:, 0])
    spread = [
        ChainedEmulator([noisy, tripled], include_noise=each).predict(X[:1], return_std=True)[1]
        for each in (True, False)
    ]
    for found, noise in zip(spread, (True, False), strict=True):
        std = noisy.predict(X[:1], return_std=True, include_noise=noise)[1]
        np.testing.assert_allclose(found, 3.0 * std, rtol=0.05)


def test_a_masked_output_is_a_failed_run() -> None:
    """Catches a mask that is lost, and what stands below it."""
    X = design(7)
    chain = ChainedEmulator([one_layer().fit(X, X[:, 0])])
    chain.tell(design(2, seed=3), np.ma.masked_array([0.5, -999.0], [False, True]))
    assert (chain.links[0].num_failed_, chain.links[0].model_.num_data) == (1, 8)


def test_a_chain_knows_the_names_of_columns() -> None:
    """Catches a frame whose columns change places, and a warning of names that a matrix lacks."""
    X = pandas.DataFrame(design(7), columns=["a", "b"])
    first = one_layer().fit(X, X["a"] + 2.0 * X["b"])
    chain = ChainedEmulator([first], [[2, 0]], num_inputs=3)
    given = pandas.DataFrame({"b": X["b"], "c": 0.0, "a": X["a"]})
    np.testing.assert_allclose(chain.predict(given), first.predict(X), atol=1e-4)
    np.testing.assert_array_equal(chain.predict_failure(given), np.zeros(7))
    with pytest.raises(ValueError, match=r"columns .'a', 'b'. for the first link, got .'b', 'a'."):
        chain.predict(given[["a", "c", "b"]])
    assert not hasattr(chain, "feature_names_in_")


@pytest.mark.parametrize("kind", ["coarse_to_fine", "of_field"])
def test_emulators_made_of_frames_know_their_names(kind: str) -> None:
    """Catches a warning of names that links lack, and indices that are named by number."""
    X = pandas.DataFrame(design(7), columns=["a", "b"])
    Y = np.stack([X["a"] + X["b"], X["a"] - X["b"], X["b"] ** 2], axis=1)
    if kind == "of_field":
        chain = ChainedEmulator.of_field(X, Y, one_layer(), num_components=1)
    else:
        chain = ChainedEmulator.coarse_to_fine([(X, Y[:, 0]), (X[:5], Y[:5, 1])], one_layer())
    chain.tell(X[:1] + 0.01, Y[:1] if kind == "of_field" else Y[:1, 1])
    chain.predict(X)
    assert list(chain.links[0].feature_names_in_) == ["a", "b"]
    assert list(as_emulator(chain).columns.names) == ["a", "b"]
    with pytest.raises(ValueError, match="got .'b', 'a'."):
        chain.predict(X[["b", "a"]])


def test_bad_input_is_named(linked: ChainedEmulator) -> None:
    """Catches links that do not fit together, and an index beside the outputs."""
    first, second = linked.links
    with pytest.raises(ValueError, match="fitted DeepWishartRegressors"):
        ChainedEmulator([first, one_layer()])
    with pytest.raises(ValueError, match="columns must say what link 2 takes"):
        ChainedEmulator([first, second])
    with pytest.raises(ValueError, match="below 3"):
        ChainedEmulator([first, second], [None, [2, 3]])
    mixed = copy.copy(first)
    mixed.model_ = SimpleNamespace(output_layer=SimpleNamespace(kernel=MIXTURE))
    with pytest.raises(ValueError, match="got one with a LinearCoregionalization"):
        ChainedEmulator([mixed, second], [None, [0, 1]])
    with pytest.raises(ValueError, match="X must have 2 columns"):
        linked.predict(np.zeros((1, 3)))
    with pytest.raises(ValueError, match="stage must be"):
        linked.tell([[0.5, 0.5]], [1.0], stage=2)
    with pytest.raises(ValueError, match="two versions"):
        ChainedEmulator.coarse_to_fine([(np.zeros((2, 1)), np.zeros(2))])
