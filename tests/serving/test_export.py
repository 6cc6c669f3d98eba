"""Exported models: a process with TensorFlow alone gets what the model says."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.keras import tf_keras
from model_reference import randomise, tiny_model, toy_data

from gpflow_dwp.data import Standardiser
from gpflow_dwp.latent_variable_deep_gp import build_latent_variable_deep_gp
from gpflow_dwp.matrix_gaussian import build_matrix_gaussian_network
from gpflow_dwp.models import (
    build_deep_gaussian_process,
    build_deep_inverse_wishart_process,
    build_deep_wishart_process,
)
from gpflow_dwp.serving import export, export_model

X, Y = toy_data(num_outputs=2)
XNEW, YNEW = toy_data(7, num_outputs=2, seed=5)
LABELS, NEW_LABELS = (np.digitize(part[:, :1], [-0.3, 0.3]) * 1.0 for part in (Y, YNEW))
INPUTS = Standardiser(np.array([3.0, -40.0]), np.array([0.2, 7.0]))
OUTPUTS = Standardiser(np.array([100.0, -5.0]), np.array([20.0, 0.3]))
NUM_SAMPLES, SEED = 3, 2**40 + 7

# Everything that is neither TensorFlow nor needed by it is hidden, as if it were not installed.
CLIENT = """
import sys
from pathlib import Path
for name in ("gpflow", "gpflow_dwp", "tensorflow_probability", "tf_keras", "check_shapes"):
    sys.modules[name] = None
for name in ("scipy", "sklearn", "pandas", "matplotlib"):
    sys.modules[name] = None
import numpy as np
import tensorflow as tf
tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
for path in Path(sys.argv[1]).iterdir():
    given = np.load(path / "given.npz")
    loaded = tf.saved_model.load(path / "model")
    draws = {
        "num_samples": tf.constant(given["num_samples"]),
        "seed": tf.constant(given["seed"]),
    }
    X, Y = tf.constant(given["X"]), tf.constant(given["Y"])
    results = {}
    for name in ("predict_f", "predict_y", "sample", "log_density"):
        data = {"X": X, "Y": Y} if name == "log_density" else {"X": X}
        signature = loaded.signatures[name](**data, **draws)
        for key, value in signature.items():
            results[f"{name}_{key}"] = value.numpy()
    np.savez(path / "got.npz", **results)
"""


def warped() -> Any:
    settings = {"likelihood": "warped", "output": "regression"}
    model = tiny_model(1, build_deep_gaussian_process, data=(X, Y), **settings)
    model.likelihood.warp.skewness.assign([0.7, -0.4])
    model.likelihood.warp.tailweight.assign([0.6, 1.4])
    return model


def moved(model: Any) -> Any:
    randomise(model, seed=3, scale=0.1)
    return model


MODELS: dict[str, Callable[[], Any]] = {
    "warped regression": warped,
    "network": lambda: moved(build_matrix_gaussian_network((X, Y), 2, width=6)),
    "latent variables": lambda: moved(
        build_latent_variable_deep_gp((X, Y), "LV-GP", num_inducing=5)
    ),
    "inverse Wishart": lambda: tiny_model(2, build_deep_inverse_wishart_process, data=(X, Y)),
}
RARE = [*MODELS][1:]
RAW_X, RAW_Y = INPUTS.inverse_transform(XNEW), OUTPUTS.inverse_transform(YNEW)


@pytest.fixture(scope="module")
def client_results(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Callable[[str], Any]:
    """What a client without this package got from every model, by the model's name."""
    folder, rare = tmp_path_factory.mktemp("exported"), request.config.getoption("--runslow")
    for name, make in MODELS.items():
        if name in RARE and not rare:
            continue
        units = {"input_standardiser": INPUTS, "output_standardiser": OUTPUTS}
        export_model(make(), folder / name / "model", **units)
        draws = {"num_samples": np.int32(NUM_SAMPLES + 1), "seed": np.int64(-SEED)}
        np.savez(folder / name / "given.npz", X=RAW_X, Y=RAW_Y, **draws)
    subprocess.run([sys.executable, "-c", CLIENT, str(folder)], check=True)
    return lambda name: np.load(folder / name / "got.npz")


def expected(model: Any, name: str) -> dict[str, np.ndarray]:
    """What the model itself says, brought to raw units by NumPy."""
    inputs, draws = INPUTS.transform(RAW_X), {"num_samples": NUM_SAMPLES + 1, "seed": -SEED}
    results = {}
    for method in ("predict_f", "predict_y"):
        mean, variance = getattr(model, method)(inputs, **draws)
        results[f"{method}_mean"] = OUTPUTS.inverse_transform(mean)
        results[f"{method}_variance"] = np.square(OUTPUTS.scale) * variance
    samples = model.predict_f_samples(inputs, full_cov=True, **draws)
    if name == "warped regression":
        moments = functions_by_quadrature(model, inputs, *draws.values())
        for moment, value in zip(("mean", "variance"), moments, strict=True):
            results[f"predict_f_{moment}"] = value
        samples = model.likelihood.warp.inverse(samples)
    results["sample_samples"] = OUTPUTS.inverse_transform(samples)
    log_density = model.predict_log_density((inputs, OUTPUTS.transform(RAW_Y)), **draws)
    results["log_density_log_density"] = log_density + OUTPUTS.log_density_offset
    return results


def functions_by_quadrature(
    model: Any, inputs: np.ndarray, num_samples: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Moments of the median of an observation given f, in raw units, by a sum over many nodes."""
    components = model.posterior(num_samples, seed=seed).predict_f_components(inputs)
    mean, variance = (part.numpy()[..., None, :] for part in components)
    nodes = np.linspace(-9.0, 9.0, 2_001)[:, None]
    weights = np.exp(-0.5 * nodes**2) / np.exp(-0.5 * nodes**2).sum()
    warped = mean + np.sqrt(variance) * nodes
    values = OUTPUTS.inverse_transform(model.likelihood.warp.inverse(tf.constant(warped)))
    first = (weights * values).sum(axis=-2).mean(axis=0)
    return first, (weights * (values - first[:, None]) ** 2).sum(axis=-2).mean(axis=0)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in RARE)) for name in MODELS]
)
def test_a_client_without_this_package_gets_the_same(
    client_results: Callable[[str], Any], name: str
) -> None:
    results = client_results(name)

    # Two quadratures, of a function that is straight from some point on.
    tolerance = 1e-3 if name == "warped regression" else 1e-10

    assert len(results.files) == 6
    for key, value in expected(MODELS[name](), name).items():
        assert results[key].shape == value.shape, key
        np.testing.assert_allclose(results[key], value, rtol=tolerance, atol=1e-10, err_msg=key)


def small() -> Any:
    model = tiny_model(1, data=(X, LABELS), likelihood=gpflow.likelihoods.Softmax(3))
    model.num_prediction_samples = 4
    return model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a single layer that was exported without standardisers, and changed since."""
    folder = tmp_path_factory.mktemp("exported") / "a" / "b"
    (folder.parent / ".b.partial" / "variables").mkdir(parents=True)  # of one that was killed
    model = small()
    export_model(model, folder, seed=SEED, assets={"columns.json": "[]"})
    randomise(model, seed=9)
    return folder


@pytest.fixture(scope="module")
def loaded(folder: Path) -> Any:
    return tf.saved_model.load(folder)


def test_any_number_of_points_and_draws_and_one_result_for_a_seed(loaded: Any) -> None:
    whole = loaded.predict_f(XNEW)["mean"].numpy()
    for rows in (0, 1, 7):
        np.testing.assert_allclose(loaded.predict_f(XNEW[:rows])["mean"], whole[:rows], rtol=1e-10)
    for num_samples in (1, 5):
        assert loaded.sample(XNEW, num_samples)["samples"].shape == (num_samples, 7, 3)
    first, again, other = (loaded.sample(XNEW, 2, seed)["samples"] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0.01


def test_clients_mistakes_are_named(loaded: Any) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="num_samples must be positive"):
        loaded.predict_y(XNEW, 0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="X must be finite"):
        loaded.predict_y(np.full((2, 2), np.nan), 2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="X and Y must have as many rows"):
        loaded.log_density(XNEW, NEW_LABELS[:3])


def test_later_training_does_not_change_what_was_exported(folder: Path, loaded: Any) -> None:
    """Catches a program of live variables, what is left beside it, and assets that are left out."""
    assert [path.name for path in folder.parent.iterdir()] == ["b"]
    assert (folder / "assets.extra" / "columns.json").read_text() == "[]"
    model = small()
    # The model's number of draws is the default, and the seed is that of the export.
    samples = model.predict_f_samples(XNEW, 4, full_cov=True, seed=SEED)
    np.testing.assert_allclose(loaded.sample(XNEW)["samples"], samples, rtol=1e-10)
    log_density = model.predict_log_density((XNEW, NEW_LABELS), seed=SEED)
    found = loaded.log_density(XNEW, NEW_LABELS)["log_density"]
    np.testing.assert_allclose(found, log_density, rtol=1e-10)


class OfNet(gpflow.kernels.Kernel):
    """Of the outputs of a Keras net, by a compiled function."""

    def __init__(self, net: Any) -> None:
        super().__init__()
        self.base, self.net = gpflow.kernels.SquaredExponential(), net
        self.outputs = tf.function(lambda X: net(X))

    def K(self, X: tf.Tensor, X2: tf.Tensor | None = None) -> tf.Tensor:
        return self.base(self.outputs(X), None if X2 is None else self.outputs(X2))

    def K_diag(self, X: tf.Tensor) -> tf.Tensor:
        return self.base(self.outputs(X), full_cov=False)


def test_a_net_in_a_kernel_has_gradients_and_is_exported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches copies of nets, whose gradients are None, and functions that cannot be copied."""
    functions = export._functions
    monkeypatch.setattr(
        export, "_functions", lambda *given: {"predict_f": functions(*given)["predict_f"]}
    )
    net = tf_keras.Sequential([tf_keras.layers.Dense(2, dtype="float64")])
    net(XNEW)
    kernels = [OfNet(net), gpflow.kernels.SquaredExponential()]
    model = build_deep_wishart_process(toy_data(), 2, kernel=kernels, num_inducing=5, seed=0)
    with tf.GradientTape() as tape:
        mean, _ = model.predict_f(XNEW, num_samples=3)
    kernel, _ = tape.gradient(mean, net.trainable_variables)
    assert np.abs(kernel).max() > 1e-6

    export_model(model, tmp_path / "model", num_samples=3)

    program = tf.saved_model.load(tmp_path / "model")
    np.testing.assert_allclose(program.predict_f(XNEW)["mean"], mean, rtol=1e-8)


def test_a_failure_while_writing_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Any, directory: str, *rest: Any) -> None:
        Path(directory).mkdir()
        Path(directory, "saved_model.pb").write_text("new")
        raise OSError("disk full")

    monkeypatch.setattr(tf.saved_model, "save", fail)
    with pytest.raises(OSError, match="disk full"):
        export_model(tiny_model(1), tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_refuses_before_anything_is_written(tmp_path: Path) -> None:
    """Catches a folder of the user's that is written over, too."""
    (tmp_path / "notes.txt").write_text("precious")
    with pytest.raises(FileExistsError, match="exists"):
        export_model(tiny_model(1), tmp_path)
    message = "input_standardiser must have 2 columns, as the model has, got 3"
    standardiser = Standardiser(np.zeros(3), np.ones(3))
    with pytest.raises(ValueError, match=message):
        export_model(tiny_model(1), tmp_path / "model", input_standardiser=standardiser)
    with pytest.raises(ValueError, match="must be an instance of VariationalModel, got str"):
        export_model("model", tmp_path / "model")  # type: ignore[arg-type]
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
