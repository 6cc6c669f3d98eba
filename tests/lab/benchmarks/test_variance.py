"""Estimators of the bound agree in the mean, and their noise is measured as it is."""

from __future__ import annotations

from pathlib import Path

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from study_archive import write_archive

from gpflow_dwp.base import TargetBlocks
from gpflow_dwp.lab.benchmarks._sampled_output import SampledOutputLayer
from gpflow_dwp.lab.benchmarks.gradients import parameter_groups, variant_sampler
from gpflow_dwp.lab.benchmarks.variance import VARIANTS, benchmark_variance, variance_figure
from gpflow_dwp.layers import GlobalInducingGPLayer
from gpflow_dwp.models import DeepWishartProcess, build_deep_wishart_process
from gpflow_dwp.random import as_seed

NUM_SIGMAS = 5.0


def small_data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(7, 2))
    return X, np.sin(X.sum(axis=1, keepdims=True))


@pytest.fixture
def model() -> DeepWishartProcess:
    return build_deep_wishart_process(small_data(), 2, num_inducing=4, output="pseudo_targets")


@pytest.mark.slow
def test_estimators_have_one_mean(model: DeepWishartProcess) -> None:
    # The hidden layers' draws are the same, which makes the comparison sharp.
    default, *others = (
        variant_sampler(model, small_data(), 3, **VARIANTS[key])(150, 0).gradients
        for key in ("closed, landing", "sampled", "closed, landing, sampled output")
    )

    for other in others:
        assert set(default) == set(other) == set(parameter_groups(model).values())
        differs = False
        for group, gradients in default.items():
            difference = other[group] - gradients
            error = difference.std(axis=0) / np.sqrt(len(difference))
            allowed = NUM_SIGMAS * error + 1e-8 * np.abs(gradients).max()
            assert np.all(np.abs(difference.mean(axis=0)) < allowed), group
            differs = differs or bool(np.any(error > 1e-3 * gradients.std()))
        assert differs
    (layer,) = model.hidden_layers
    assert model.num_samples == 2  # as the builder made it
    assert layer.expected_log_ratio and layer.stick_the_landing  # type: ignore[attr-defined]


def test_a_sampled_output_has_the_moments_of_the_integrated_one() -> None:
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 6))
    whole = root @ root.T + np.eye(6)
    num_draws = 40_000
    layer = GlobalInducingGPLayer(
        gpflow.kernels.SquaredExponential(),
        2,
        pseudo_targets=rng.normal(size=(4, 2)),
        precision=0.7,
    )
    K = tf.constant(np.broadcast_to(whole[:4, :4], (num_draws, 4, 4)))
    targets = TargetBlocks(
        tf.constant(np.broadcast_to(whole[:4, 4:], (num_draws, 4, 2))),
        tf.constant(np.broadcast_to(np.diag(whole)[4:, None, None], (num_draws, 2, 1, 1))),
    )

    sampled = SampledOutputLayer(layer)
    sampled.seeds = as_seed(0), as_seed(1)
    drawn = sampled.infer_inducing(K)
    means, within = layer.condition(drawn, targets)
    integrated = layer.infer_inducing(K[:1])
    mean, total = layer.condition(integrated, TargetBlocks(*(part[:1] for part in targets[:2])))

    def standard_error(values: tf.Tensor) -> np.ndarray:
        return np.std(values, axis=0) / np.sqrt(num_draws)

    assert np.all(np.abs(np.mean(means, 0) - mean[0]) < NUM_SIGMAS * standard_error(means))
    squares = (means - mean) ** 2
    between = np.mean(squares, axis=0)
    wanted = (total - within[:1])[0, :, 0].numpy()
    assert np.all(np.abs(between - wanted) < NUM_SIGMAS * standard_error(squares))
    values, zero = sampled.condition(drawn, targets)
    spread = np.mean((values - means) ** 2, axis=(0, 2))
    np.testing.assert_allclose(spread, np.mean(within[..., 0, 0], axis=0), rtol=0.05)
    assert not np.any(zero)
    error = standard_error(drawn.log_ratio)
    assert abs(np.mean(drawn.log_ratio) - integrated.log_ratio[0]) < NUM_SIGMAS * error


def test_variance_is_the_trace_of_the_covariance() -> None:
    gradients = np.random.default_rng(0).normal(size=(50, 3)) * [1.0, 2.0, 5.0] + 7.0

    found = variance_figure("x", gradients)

    assert found.value == pytest.approx(np.trace(np.cov(gradients.T)))
    assert 0.0 < found.spread < found.value


@pytest.mark.slow
def test_figures_say_where_they_were_measured(tmp_path: Path) -> None:
    lines: list[str] = []

    found = benchmark_variance(
        num_steps=3,
        num_samples=(1,),
        num_gradients=2,
        num_inducing=4,
        uci_folder=write_archive(tmp_path),
        report=lines.append,
    )

    start, end = found.values()
    assert list(found) == [
        f"AB of depth 2 on yacht, split 0, step {step}, S = 1" for step in (0, 3)
    ]
    assert end.values == {"step": 3, "num_samples": 1}
    assert len(end.figures) == 8 * len(VARIANTS)
    assert [figure.name for figure in end.figures] == [figure.name for figure in start.figures]
    assert "likelihood: closed, landing" in {figure.name for figure in end.figures}
    assert all(a.value != b.value for a, b in zip(start.figures, end.figures, strict=True))
    assert lines[-1] == "step 3, closed, landing, sampled output, S = 1"


def test_one_gradient_has_no_variance() -> None:
    with pytest.raises(ValueError, match="--num-gradients must be an integer of at least 2, got 1"):
        benchmark_variance(num_gradients=1, report=pytest.fail)


def test_an_output_without_pseudo_targets_cannot_be_sampled() -> None:
    model = build_deep_wishart_process(small_data(), 2, num_inducing=4, output="regression")

    with pytest.raises(ValueError, match="model must have pseudo-targets .* got RegressionGPLayer"):
        variant_sampler(model, small_data(), 1, sampled_output=True)
