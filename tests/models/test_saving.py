"""Models on disk: identical when they come back, and never half written."""

from __future__ import annotations

import importlib
import io
import json
import tracemalloc
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import gpflow
import gpflow.kernels as gk
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.utilities import parameter_dict, set_trainable
from model_reference import tiny_model, toy_data

import gpflow_dwp
from gpflow_dwp import DeepWishartProcess, load_model, models, save_model
from gpflow_dwp.exceptions import SavedModelError
from gpflow_dwp.files import read_archive, read_arrays
from gpflow_dwp.likelihoods import SinhArcsinh, WarpedStudentT
from gpflow_dwp.models.plain_data import to_config
from gpflow_dwp.training import fit

XNEW = toy_data(5, seed=5)[0]


def assert_same(model: DeepWishartProcess, other: DeepWishartProcess) -> None:
    """Equal configurations, parameters and, bit for bit, predictions."""
    assert type(other) is type(model)
    assert to_config(other) == to_config(model)
    parameters, others = parameter_dict(model), parameter_dict(other)
    assert list(parameters) == list(others)
    for path, parameter in parameters.items():
        np.testing.assert_array_equal(parameter, others[path])
        assert parameter.trainable == others[path].trainable
    predictions = (each.predict_f(XNEW, num_samples=3) for each in (other, model))
    np.testing.assert_array_equal(*predictions)


LINEAR = gpflow.functions.Linear(np.ones((2, 1)), [9.0])
ROUND_TRIPS: dict[str, dict[str, Any]] = {
    "periodic": {"depth": 1, "kernel": [gk.Periodic(gk.Matern32(), period=2.0) + gk.White(0.1)]},
    "whitened": {"posterior": "A", "whiten": True, "kernel": "Matern52", "mean_function": LINEAR},
    "wide": {"posterior": "GW", "width": 7, "expected_log_ratio": False, "jitter": 1e-4},
    "DGP": {"build": "gaussian", "jitter": 1e-5, "hidden_ard": True},
    "IW": {"build": "inverse_wishart", "expected_log_ratio": False},
    "regression": {"depth": 1, "output": "regression"},
    "nearest_neighbours": {"depth": 1, "output": "nearest_neighbours"},
}


@pytest.mark.parametrize("name", ROUND_TRIPS)
def test_round_trip(name: str, tmp_path: Path) -> None:
    model = tiny_model(**ROUND_TRIPS[name])
    save_model(model, tmp_path)
    again = load_model(tmp_path)

    assert_same(model, again)
    assert [path.name for path in tmp_path.iterdir()] == ["model.zip"]
    content = (tmp_path / "model.zip").read_bytes()
    assert models.model_to_bytes(model) == models.model_to_bytes(again) == content
    arrays = read_arrays(read_archive(content)["arrays.npz"])
    # Rows of a regression are not there as arguments and as parameters.
    copies = sum(np.array_equal(array, toy_data()[0]) for array in arrays.values())
    assert copies == (name in ("regression", "nearest_neighbours"))


def test_trainable_flags_and_priors_are_kept() -> None:
    model = tiny_model(2)
    set_trainable(model.layers[0].kernel, False)
    set_trainable(model.inducing_variable, False)
    one, two = np.float64(1.0), np.float64(2.0)
    model.likelihood.variance.prior = tfp.distributions.Gamma(two, one)
    model.layers[1].kernel.lengthscales.prior = tfp.distributions.LogNormal(one, two)
    model.layers[1].kernel.variance.prior = tfp.distributions.Normal(one, two)
    model.layers[1].kernel.variance.prior_on = "unconstrained"
    again = models.model_from_bytes(models.model_to_bytes(model))

    assert_same(model, again)
    assert again.layers[1].kernel.variance.prior_on == gpflow.base.PriorOn.UNCONSTRAINED
    np.testing.assert_allclose(again.log_prior_density(), model.log_prior_density(), rtol=1e-12)
    assert model.log_prior_density() != 0.0


@pytest.fixture(scope="module")
def content() -> bytes:
    """Of a model of two layers."""
    return models.model_to_bytes(tiny_model(2))


def forged(content: bytes, change: Any) -> bytes:
    """A model whose description and arrays someone has changed who knows how they are packed."""
    files = read_archive(content)
    description, arrays = json.loads(files["model.json"]), read_arrays(files["arrays.npz"])
    change(description, arrays)
    packed, buffer = io.BytesIO(), io.BytesIO()
    np.savez(packed, **arrays)
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("model.json", json.dumps(description))
        archive.writestr("arrays.npz", packed.getvalue())
    return buffer.getvalue()


@pytest.mark.parametrize(
    "changes",
    [
        {"model": {"class": "gpflow.kernels.Linear", "arguments": {}}},
        {"model": {"class": ["a"], "arguments": {}}},
        {"parameters": {".nothing": {"trainable": True}}},
        {"parameters": {".likelihood.variance": {"same_as": ".nothing"}}},
        {"parameters": {".likelihood.variance": {"prior": {"class": "os.path", "arguments": {}}}}},
        {},
        {"format": "of another program"},
        {"format_version": 1},
    ],
    ids=str,
)
def test_a_damaged_part_of_the_description_is_an_error(
    content: bytes, changes: dict[str, Any], tmp_path: Path
) -> None:
    def damage(description: Any, _: Any) -> None:
        description.update(changes)
        if not changes:
            del description["parameters"]

    (tmp_path / "model.zip").write_bytes(forged(content, damage))

    with pytest.raises(SavedModelError, match=f"{tmp_path.name}.model.zip"):
        load_model(tmp_path)


def test_another_default_dtype_is_refused(content: bytes) -> None:
    gpflow.config.set_default_float(np.float32)

    with pytest.raises(ValueError, match=r"is in float64, .*set_default_float\(np.float64\)"):
        models.model_from_bytes(content)


class OwnPositive(gk.SquaredExponential):
    """A user's kernel with a parameter whose transform is not the configured one."""

    def __init__(self, extra: Any = 1.0) -> None:
        super().__init__()
        self.extra = gpflow.Parameter(extra, transform=gpflow.utilities.positive(base="exp"))


def test_a_class_may_have_transforms_of_both_kinds() -> None:
    """Also where another one is configured when the model is loaded and saved again."""
    model = tiny_model(1)
    model.layers[0].kernel = OwnPositive()
    model.likelihood = WarpedStudentT(SinhArcsinh(2), variance=0.01, df=4.0)
    content = models.model_to_bytes(model)

    gpflow.config.set_default_positive_bijector("exp")

    again = models.model_from_bytes(content, custom_classes=[OwnPositive])
    assert_same(model, again)
    assert_same(
        model, models.model_from_bytes(models.model_to_bytes(again), custom_classes=[OwnPositive])
    )


def with_tied_kernels_and_transforms_of_tfp(model: DeepWishartProcess) -> None:
    model.layers[0].kernel = model.layers[1].kernel
    kernel, one = model.layers[0].kernel, np.float64(1.0)
    kernel.variance = gpflow.Parameter(one, transform=gpflow.utilities.positive(base="exp"))
    bounded = tfp.bijectors.Sigmoid(np.float64(0.1), np.float64(2.0))
    kernel.lengthscales = gpflow.Parameter(one, transform=bounded)
    shifted = tfp.bijectors.Chain([tfp.bijectors.Shift(0.1 * one), tfp.bijectors.Softplus()])
    model.likelihood.variance = gpflow.Parameter(one, transform=shifted)


class OwnVariable(gk.SquaredExponential):
    """A user's kernel with a variable of TensorFlow's, and a function as its argument."""

    def __init__(self, bend: Any = tf.tanh) -> None:
        super().__init__()
        self.bend = bend
        self.slope = tf.Variable(np.float64(0.5))

    def K_r2(self, r2: tf.Tensor) -> tf.Tensor:
        return super().K_r2(r2 + self.bend(self.slope * r2))


def with_a_variable_and_a_shared_parameter(model: DeepWishartProcess) -> None:
    model.layers[0].kernel = OwnVariable(tf.nn.relu)
    model.layers[0].kernel.slope.assign(0.2)
    model.likelihood.variance = model.layers[0].kernel.variance


@pytest.mark.parametrize(
    "change", [with_tied_kernels_and_transforms_of_tfp, with_a_variable_and_a_shared_parameter]
)
def test_what_users_compose_comes_back(change: Any) -> None:
    """Catches ties that fall apart, bounds that go, and parts that are known too late not to be."""
    model = tiny_model(2)
    change(model)

    again = models.model_from_bytes(models.model_to_bytes(model), custom_classes=[OwnVariable])

    for move in (0.0, 0.1):
        for old, new in zip(model.trainable_variables, again.trainable_variables, strict=True):
            old.assign(old + move)
            new.assign(new + move)
        np.testing.assert_array_equal(again.predict_f(XNEW), model.predict_f(XNEW))


class OfNetwork(gk.SquaredExponential):
    """A user's kernel with a part as in the deep kernel of GPflow's documentation."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network


@pytest.mark.usefixtures("eager")
def test_what_cannot_be_saved_is_said_before_training() -> None:
    """Catches hours of training of a model that cannot be kept."""
    network = importlib.import_module("tf_keras.layers").Dense(1, dtype="float64")
    network.build((None, 2))
    model = tiny_model(1, output="pseudo_targets")
    model.layers[0].kernel = OfNetwork(network)

    with pytest.warns(UserWarning, match="OfNetwork.network: .* cannot be described.*Checkpoint"):
        fit(model, toy_data(), 1, progress=False)
    with pytest.raises(SavedModelError, match="OfNetwork.network: "):
        models.model_to_bytes(model)


def test_what_would_not_come_back_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    own, prior = tiny_model(1), tiny_model(1)
    own.layers[0].kernel.something = gpflow.Parameter(1.0)
    normal = tfp.distributions.Normal(*np.array([1.0, 1.0]))
    transformed = tfp.distributions.TransformedDistribution(normal, tfp.bijectors.Exp())
    prior.likelihood.variance.prior = transformed

    for model, message in (
        (own, r"kernel.something is not part of the model's config"),
        (prior, "cannot be described as plain data"),
    ):
        with pytest.raises(SavedModelError, match=f"{message}.* tf.train.Checkpoint"):
            save_model(model, tmp_path / "model")
    assert not (tmp_path / "model").exists()


def first_layer(description: dict[str, Any]) -> dict[str, Any]:
    return description["model"]["arguments"]["layers"][0]["arguments"]  # type: ignore[no-any-return]


ARRAY = {"array": "argument 99"}


def many_inducing_points(description: Any, arrays: Any) -> None:
    first_layer(description)["num_inducing"] = 12_000
    arrays["argument 99"] = np.zeros([12_000, 0])  # of which there is nothing


def with_layer(description: Any, name: str, **arguments: Any) -> None:
    arguments["kernel"] = first_layer(description)["kernel"]
    layer = {"class": f"gpflow_dwp.{name}", "arguments": arguments}
    description["model"]["arguments"]["layers"][0] = layer


def many_pseudo_targets(description: Any, arrays: Any) -> None:
    with_layer(description, "layers.GlobalInducingGPLayer", num_outputs=1, pseudo_targets=ARRAY)
    arrays["argument 99"] = np.zeros([20_000, 1])


def many_matrices(description: Any, arrays: Any) -> None:
    name = "latent_variable_deep_gp.LocalInducingGPLayer"
    with_layer(description, name, num_outputs=1_000, inducing_variable=ARRAY)
    arrays["argument 99"] = np.zeros([1_000, 1])


def with_sum(description: Any, part: str, number: int, **arguments: Any) -> None:
    kernels = [{"class": f"gpflow.kernels.{part}", "arguments": arguments}] * number
    many = {"class": "gpflow.kernels.Sum", "arguments": {"kernels": kernels}}
    first_layer(description)["kernel"] = many


def many_mentions(description: Any, arrays: Any) -> None:
    with_sum(description, "SquaredExponential", 300, lengthscales=ARRAY)
    arrays["argument 99"] = np.ones(1_000_000)


def many_parts(description: Any, arrays: Any) -> None:
    with_sum(description, "White", 40_000)


@pytest.mark.parametrize(
    "change", [many_inducing_points, many_pseudo_targets, many_mentions, many_parts, many_matrices]
)
def test_a_hostile_model_is_refused_before_it_takes_room(change: Any, content: bytes) -> None:
    """Catches sizes of which there are no arrays, and arrays of which there are many copies."""
    hostile = forged(content, change)
    tracemalloc.start()
    with pytest.raises(SavedModelError, match="more room than the model's arrays account for"):
        models.model_from_bytes(hostile)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**26 + 16 * len(hostile)


def kernel_as_prior(description: Any, arrays: Any) -> None:
    sizes = {"output_dim": 2_000, "rank": 800}  # as many numbers as are there for each parameter
    prior = {"class": "gpflow.kernels.Coregion", "arguments": sizes}
    description["parameters"][".likelihood.variance"] |= {"prior": prior, "prior_on": "constrained"}


def transform_that_broadcasts(description: Any, arrays: Any) -> None:
    column = {"array": [[1.0]] * 1_000}
    transform = {"class": "tfp.bijectors.Scale", "arguments": {"scale": column}}
    description["parameters"][".likelihood.variance"]["transform"] = transform
    arrays[".likelihood.variance"] = np.zeros([1, 1_000])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (kernel_as_prior, "prior must be an instance of Distribution, got Coregion"),
        (transform_that_broadcasts, r"variance must have shape \(\), got \(1000, 1000\)"),
    ],
)
def test_a_hostile_part_of_a_parameter_is_refused(
    change: Any, message: str, content: bytes
) -> None:
    """Catches parts that take room for each parameter, which no array accounts for."""
    with pytest.raises(SavedModelError, match=message):
        models.model_from_bytes(forged(content, change))


def namespace(home: Any, name: str, depth: int = 2) -> Iterator[str]:
    """The names of what is public in a package and in its modules."""
    for last, value in list(vars(home).items()):
        if last[0] != "_":
            yield f"{name}.{last}"
            if isinstance(value, ModuleType) and depth:
                yield from namespace(value, f"{name}.{last}", depth - 1)


def what_all_others_share() -> list[Any]:
    shared = (np, tf, tfp.distributions, gpflow.kernels, DeepWishartProcess, tf.Module)
    return [{name: id(value) for name, value in vars(each).items()} for each in shared]


def test_nothing_that_is_not_listed_is_named_called_or_set(content: bytes) -> None:
    """Catches descriptions that run functions of the process, or change its classes and modules."""
    homes = {"tf": tf, "tfp": tfp, "gpflow": gpflow, "np": np, "gpflow_dwp": gpflow_dwp}
    names = [name for each, home in homes.items() for name in namespace(home, each)]
    rng, before = np.random.default_rng(0), what_all_others_share()
    for number, name in enumerate(rng.choice(names, 100, replace=False)):

        def change(description: Any, _: Any, name: str = name, kind: int = number) -> None:
            part = {"class": name, "arguments": {"distribution_fn": {"name": name}}}
            parameter = description["parameters"][".likelihood.variance"]
            if kind == 0:
                parameter["transform"] = part
            elif kind == 1:
                parameter |= {"prior": part, "prior_on": "constrained"}
            elif kind < 5:
                path = f".likelihood.__class__.{name.rpartition('.')[2]}"
                description["parameters"][path] = {"same_as": ".likelihood.variance"}
            else:  # of the others nothing is built
                given = {"invlink": {"name": name}}
                invlink = {"class": "gpflow.likelihoods.Bernoulli", "arguments": given}
                description["model"]["arguments"]["layers"] = part if kind % 2 else [invlink]

        with pytest.raises(SavedModelError):
            models.model_from_bytes(forged(content, change))
    assert what_all_others_share() == before
