"""Cells of the papers' tables: what they are, and how they are scored."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from model_reference import randomise, tiny_model, toy_data
from scipy import stats
from uci import figures, scores, tables
from uci.cells import BUILDERS, Cell, make_cells, run_cell
from uci.scores import prediction_scores, whole_data_bound

from gpflow_dwp.data import Standardiser
from gpflow_dwp.evaluation import PredictiveDistribution
from gpflow_dwp.latent_variable_deep_gp import build_latent_variable_deep_gp
from gpflow_dwp.matrix_gaussian import build_matrix_gaussian_network

DATA = toy_data()
PLAIN = Standardiser(np.array([0.0]), np.array([1.0]))
TARGET = Standardiser(np.array([100.0]), np.array([20.0]))


def write_archive(folder: Path) -> str:
    """Made-up data under the name of yacht, in the form of a folder of UCI sets."""
    data = folder / "yacht" / "data"
    data.mkdir(parents=True)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    np.savetxt(data / "data.txt", np.hstack([X, 100.0 + 20.0 * np.sin(2.0 * X[:, :1])]))
    for name, values in {
        "index_features": [0, 1],
        "index_target": [2],
        "n_splits": [2],
        **{f"index_test_{split}": range(8) for split in (0, 1)},
        **{f"index_train_{split}": range(8, 40) for split in (0, 1)},
    }.items():
        np.savetxt(data / f"{name}.txt", [*values], fmt="%d")
    return str(folder)


def tiny_cell(**changes: Any) -> Cell:
    sizes = {"num_steps": 4, "num_inducing": 6, "num_samples": 2, "num_prediction_samples": 5}
    return Cell("yacht", 1, "GW", 0, **{**sizes, **changes})


@pytest.mark.parametrize(
    ("protocol", "model", "expected"),
    [
        ("papers", "A", (20_000, None, 100, 10, 100, 1, "papers", None)),
        ("papers", "VMG", (60_000, 20, 100, 1, 100, 1, "vmg", {"num_pseudo_data": 5})),
        ("fast", "DGP", (20_000, None, 100, 2, 100, 1, "fast", None)),
        ("cde", "LV-GP-GP", (100_000, None, 128, 1, 2_000, 5, "natural", None)),
        ("cde-fast", "AB", (20_000, None, 128, 2, 2_000, 1, "fast", None)),
    ],
)
def test_defaults_are_those_of_the_protocol(
    protocol: str, model: str, expected: tuple[Any, ...], tmp_path: Path
) -> None:
    """Catches a paper's cells that are run by another's numbers."""
    (cell,) = make_cells(
        *(["yacht"], [2], [model], [0]),
        protocol=protocol,
        uci_folder=write_archive(tmp_path),
    )
    assert expected == (
        *(cell.num_steps, cell.batch_size, cell.num_inducing, cell.num_samples),
        *(cell.num_prediction_samples, cell.num_importance_samples),
        *(cell.training_protocol, cell.options),
    )


def test_every_combination_has_one_cell(tmp_path: Path) -> None:
    """A model whose name says its depth is there once; splits that are not there are left out."""
    folder = write_archive(tmp_path)
    cells = make_cells(["yacht"], [2, 3], ["A", "GP-GP"], [0, 1, 20], uci_folder=folder)
    assert [(c.depth, c.model, c.split) for c in cells] == [
        *((2, "A", 0), (2, "GP-GP", 0), (2, "A", 1), (2, "GP-GP", 1), (3, "A", 0), (3, "A", 1)),
    ]
    assert len({cell.key for cell in [*cells, tiny_cell(), tiny_cell(seed=1)]}) == 8
    with pytest.raises(TypeError):
        make_cells(["yacht"], [2], ["A"], [0], options={"nope": 1}, uci_folder=folder)
    with pytest.raises(ValueError, match="got nope"):
        make_cells(["yacht"], [2], ["nope"], [0], uci_folder=folder)


@pytest.mark.parametrize("model", BUILDERS)
def test_every_model_is_built(model: str) -> None:
    """Catches an argument that its builder does not take, or that does not get to it."""
    (built,) = [Cell("yacht", 2, model, 0, num_inducing=4, num_samples=3).build(DATA)]
    assert built.num_samples == 3
    if hasattr(built, "inducing_variable"):
        assert built.inducing_variable.Z.shape[0] == 4 and built.rows is None


@pytest.mark.usefixtures("eager")
def test_a_cell_is_trained_and_scored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on from its checkpoint: a second run takes no step more."""
    monkeypatch.setattr(scores, "_FEWEST_SEEDS", 2)
    monkeypatch.setattr(scores, "_MOST_SEEDS", 2)
    folder, checkpoints = write_archive(tmp_path), str(tmp_path / "checkpoints")
    found = run_cell(tiny_cell(), checkpoints, folder)
    again = run_cell(tiny_cell(), checkpoints, folder)
    assert found["elbo"] == again["elbo"] and found["training_seconds"] > 0.0
    assert {"rmse", "crps", "coverage_90", "seconds_per_epoch"} < set(found)
    trace = found.pop("trace")
    assert [point[0] for point in trace] == [1, 2, 3, 4]
    assert all(np.isfinite(value) for value in found.values())
    frame = tables.as_frame([{**asdict(tiny_cell()), **found, "trace": trace}])
    assert len(figures.plot_traces(frame).axes) == 2


def test_bound_of_a_model_without_noise_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where rows are taken in blocks."""
    model = tiny_model(1)
    mean, error = whole_data_bound(model, DATA, num_seeds=3)
    np.testing.assert_allclose(mean, model.elbo(DATA) / 12, rtol=1e-10)
    assert error < 1e-12
    monkeypatch.setattr(scores, "_BLOCK", 5)
    np.testing.assert_allclose(whole_data_bound(model, DATA, num_seeds=2)[0], mean, rtol=1e-10)


def test_prediction_scores_against_the_mixture_itself() -> None:
    """Without hidden layers the mixture is one Gaussian; raw units differ by a factor."""
    model, (X, Y) = tiny_model(1), DATA
    found = prediction_scores(model, X, Y, PLAIN, num_samples=4)
    mean, variance = (part.numpy()[:, 0] for part in model.predict_y(X, num_samples=4))
    z = (Y[:, 0] - mean) / np.sqrt(variance)
    density = stats.norm.logpdf(Y[:, 0], mean, np.sqrt(variance))
    np.testing.assert_allclose(found["test_log_likelihood"], density.mean(), rtol=1e-8)
    np.testing.assert_allclose(found["rmse"], np.sqrt(np.mean((Y[:, 0] - mean) ** 2)), rtol=1e-10)
    for level, quantile in ((50, 0.674490), (90, 1.644854), (95, 1.959964)):
        assert found[f"coverage_{level}"] == np.mean(np.abs(z) <= quantile)


def test_a_network_is_scored_by_the_first_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches draws that are cut from a mixture without its weights, or from its nodes."""
    model, (X, Y) = build_matrix_gaussian_network(DATA, width=4), DATA
    monkeypatch.setattr(scores, "_LARGEST_MIXTURE", 2)
    found = prediction_scores(model, X, Y, PLAIN, num_samples=3)
    components = model.posterior(3, seed=0).predict_warped_components(X)
    few = [
        part.numpy().reshape(-1, 3, *Y.shape)[:, :2].reshape(-1, *Y.shape) for part in components
    ]
    weights = model.likelihood.component_weights(len(few[0]))
    expected = PredictiveDistribution(*few, weights=weights).crps(Y).mean()
    np.testing.assert_allclose(found["crps"], expected, rtol=1e-8)


def test_scores_of_marginals_are_in_standardised_units() -> None:
    """Catches another bandwidth, or statistics of all rows together."""
    model, (X, Y) = build_latent_variable_deep_gp(DATA, "LV-GP", num_inducing=5), DATA
    randomise(model, seed=2)
    raw = TARGET.inverse_transform(Y)
    found = prediction_scores(model, X, raw, TARGET, num_samples=2_000, marginals=True)
    posterior = model.posterior(2_000, seed=0)
    exact = posterior.predict_log_density(DATA).numpy()
    samples = posterior.sample_y(X).numpy()[..., 0]
    np.testing.assert_allclose(found["log_likelihood_standardised"], exact.mean(), rtol=1e-8)
    kernel = [
        stats.gaussian_kde(column, "silverman").logpdf(y)[0]
        for y, column in zip(Y[:, 0], samples.T, strict=True)
    ]
    # Other draws of y: an estimate of a density has a relative error of a few percent.
    assert abs(found["log_likelihood_kernel"] - np.mean(kernel)) < 0.1
    statistics = [stats.shapiro(column).statistic for column in samples.T]
    np.testing.assert_allclose(found["shapiro_wilk"], np.median(statistics), atol=0.02)
