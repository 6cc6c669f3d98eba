"""What a model makes of draws of its kernel's values."""

from __future__ import annotations

import functools
from pathlib import Path

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from gpflow_dwp.evaluation.variance_shares import variance_shares
from gpflow_dwp.kernels.values import as_kernel, values_of
from gpflow_dwp.models import FunctionDraws, load_model, save_model
from gpflow_dwp.selection import Selection, leave_one_out, policy, select_model


@functools.cache
def select(num_outputs: int = 1) -> Selection:
    X = np.random.default_rng(3).uniform(-1.5, 1.5, (25, 2))
    Y = np.hstack([np.sin(2.0 * X[:, :1] * X[:, 1:]), np.sin(X @ [[3.0], [1.0]])])[:, :num_outputs]
    return select_model((X, Y), depth=1, kernel="Matern52", likelihood="noise_free", progress=False)


@pytest.mark.parametrize("num_outputs", [1, 2])
def test_predictions_are_the_mixture_of_processes(num_outputs: int, tmp_path: Path) -> None:
    """Catches one draw for all, functions that keep to a few, and a file that forgets them. Of two
    outputs also draws of the other one's kernel, and such that are made of the same numbers."""
    model, T = select(num_outputs).model, np.random.default_rng(1).uniform(-1.5, 1.5, (5, 2))
    layer = model.output_layer
    X, Y = (part.numpy() for part in layer.rows)
    assert len(layer.kernels) == num_outputs
    noises, moments, left_out = np.ravel(model.likelihood.variance), [], np.zeros(Y.shape)
    unit = gpflow.kernels.Matern52()
    for row in layer.kernel_draws.numpy():
        of_outputs = []
        for index, one in enumerate(layer.kernels):
            logs = np.split(row, num_outputs)[index]
            variance = np.exp(logs[-1]) * one.variance.numpy()
            scales = np.exp(logs[:-1]) * one.lengthscales.numpy()
            K, k = (variance * unit(X / scales, at / scales).numpy() for at in (X, T))
            K += noises[index] * np.eye(len(X))
            *a, b = np.linalg.solve(np.linalg.cholesky(K), np.column_stack([k, Y[:, index]])).T
            of_outputs.append([a @ b, variance - np.sum(np.square(a), axis=1)])
            inverse = np.linalg.inv(K)
            left_out[:, index] += (inverse @ Y[:, index]) / np.diagonal(inverse)
        moments.append(np.stack(of_outputs, axis=-1))
    found = leave_one_out(model).mean()
    np.testing.assert_allclose(found, Y - left_out / len(moments), rtol=1e-3, atol=1e-4)
    means, variances = np.array(moments).swapaxes(0, 1)
    scales = layer.kernel_draws.numpy()[:, ::3].T
    assert num_outputs == 1 or abs(np.corrcoef(scales)[0, 1]) < 0.9
    mean, variance = means.mean(0), (variances + means**2).mean(0) - means.mean(0) ** 2
    assert means.std(0).max() > 0.1 * np.sqrt(variance).max()
    save_model(model, tmp_path)
    for given in (model, load_model(tmp_path)):
        of_f = given.predict_f(T)
        np.testing.assert_allclose(of_f, [mean, variance], rtol=1e-3, atol=1e-8)
    samples = model.posterior(500, seed=0).sample_f(T).numpy()
    functions = FunctionDraws(model, 500, num_features=200, seed=0)(tf.constant(T)).numpy()
    for drawn in (samples, functions):
        np.testing.assert_allclose((drawn.mean(0) - mean) / np.sqrt(variance), 0.0, atol=0.15)
        np.testing.assert_allclose(drawn.std(0), np.sqrt(variance), rtol=0.15)
    assert model.posterior(3, seed=0).sample_f(T).shape == (3, 5, num_outputs)


def test_sums_average_over_all_their_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches values in the order of the fit, not of the parts, and shares at the mode alone.
    Predictions, shares and functions are those of GPflow's processes with each draw's kernel."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1.5, 1.5, (25, 2))
    Y = np.sin(2.0 * X[:, :1]) + X[:, 1:] ** 2 + 0.2 * rng.standard_normal((25, 1))
    settings = {"kernel": "AdditiveMatern52", "likelihood": "gaussian", "progress": False}
    monkeypatch.setattr(policy, "LEVEL", 0.0)
    model = select_model((X, Y), depth=1, **settings).model
    layer, T = model.output_layer, rng.uniform(-1.5, 1.5, (6, 2))
    moments, joints, values = [], [], values_of(layer.kernel)
    process = gpflow.models.GPR((X, Y), as_kernel(values), likelihood=model.likelihood)
    for row in layer.kernel_draws.numpy():
        rest = np.exp(row)
        for part, kernel in zip(values, process.kernel.kernels, strict=True):
            scales, rest = np.split(rest, [np.size(part.lengthscales)])
            if scales.size:
                shape = np.shape(part.lengthscales)
                kernel.lengthscales.assign(part.lengthscales * scales.reshape(shape))
            kernel.variance.assign(part.variance * rest[0])
            rest = rest[1:]
        moments.append([each.numpy()[:, 0] for each in process.predict_f(T)])
        noise = process.likelihood.variance * np.eye(len(X))
        alpha = np.linalg.solve(process.kernel(X) + noise, Y)
        joints.append((process.kernel.kernels[0](T, X) @ alpha).numpy()[:, 0])
    means, variances = np.array(moments).swapaxes(0, 1)
    assert means.std(0).max() > 0.1 * np.sqrt(variances.mean(0)).max()
    variance = (variances + means**2).mean(0) - means.mean(0) ** 2
    of_f = [part.numpy()[:, 0] for part in model.predict_f(T)]
    np.testing.assert_allclose(of_f, [means.mean(0), variance], rtol=1e-3)
    functions = FunctionDraws(model, 500, num_features=300, seed=0)(tf.constant(T)).numpy()
    np.testing.assert_allclose(functions[..., 0].std(0), np.sqrt(variance), rtol=0.15)
    shares = variance_shares(model, T)
    joint, total = np.mean(joints, axis=0), means.mean(0)
    assert shares is not None
    of_joint = np.cov(joint, total)[0, 1] / np.var(total, ddof=1)
    np.testing.assert_allclose(np.squeeze(shares.joint), of_joint, rtol=1e-3)


def test_what_is_chosen_says_whether_it_averages() -> None:
    """Catches draws where one value is as good, and a reason that is silent about either."""
    assert select().reason.endswith("Predictions average over 20 draws of the kernel's values.")
    X = np.linspace(-2.0, 2.0, 100)[:, None]
    Y = np.sin(3.0 * X) + 0.3 * np.random.default_rng(0).standard_normal(X.shape)
    found = select_model((X, Y), depth=1, kernel="Matern52", likelihood="gaussian", progress=False)
    assert found.model.output_layer.kernel_draws is None
    assert found.reason.endswith("Other values of the kernel would make no difference.")


def test_draws_are_taken_away() -> None:
    """Catches predictions that are kept, and draws of other columns."""
    model, point = select().model, np.zeros((1, 2))
    layer, before = model.output_layer, model.predict_f(point)[1].numpy()
    draws = layer.kernel_draws.numpy()
    layer.set_kernel_draws(None)
    assert model.predict_f(point)[1].numpy() != before
    with pytest.raises(ValueError, match="of 3 columns, got 2"):
        layer.set_kernel_draws(draws[:, :2])
    layer.set_kernel_draws(draws)
    layer.num_neighbours = 10  # which one kernel predicts from
    assert np.isfinite(model.predict_f(point)[1]).all()
    layer.num_neighbours = 0
