"""A process with two devices: what training on two replicas leads to, and on one.

TensorFlow's devices are made when it starts, so that this is a program of its own:
``python replicas.py FOLDER CASE...`` prints what cases found, as JSON.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.keras import tf_keras

from gpflow_dwp import (
    build_deep_wishart_process,
    build_latent_variable_deep_gp,
    build_matrix_gaussian_network,
    fit,
    load_model,
    save_model,
)
from gpflow_dwp.layers import LatentVariableLayer
from gpflow_dwp.layers.encoder import FreeEncoder
from gpflow_dwp.random import as_seed, fold_in
from gpflow_dwp.serving import export_model
from gpflow_dwp.training import Adam, EarlyStopping, NaturalGradientAdam

Build = Callable[[], Any]

RNG = np.random.default_rng(0)
X = RNG.normal(size=(13, 2))
DATA = X, np.sin(2.0 * X[:, :1]) + 0.1 * RNG.normal(size=(13, 1))
SMALL: dict[str, Any] = {"num_inducing": 4, "num_samples": 2}
TO_PSEUDO_TARGETS: dict[str, Any] = {**SMALL, "output": "pseudo_targets"}

CASES: dict[str, Callable[[Any], object]] = {}


def case(function: Callable[[Any], object]) -> Callable[[Any], object]:
    CASES[function.__name__] = function
    return function


def wishart(depth: int = 1, **arguments: Any) -> Any:
    return build_deep_wishart_process(DATA, depth, **{**TO_PSEUDO_TARGETS, **arguments})


def network() -> Any:
    return build_matrix_gaussian_network(DATA, width=3, num_pseudo_data=2, num_samples=2)


def latent_gp(architecture: str) -> Any:
    return build_latent_variable_deep_gp(DATA, architecture, num_inducing=4, num_functions=2)


def values(model: Any) -> list[np.ndarray]:
    return [variable.numpy() for variable in model.trainable_variables]


def largest_difference(first: list[np.ndarray], second: list[np.ndarray]) -> float:
    return max(float(np.abs(a - b).max()) for a, b in zip(first, second, strict=True))


def trained(
    strategy: Any,
    build: Build,
    num_steps: int = 20,
    optimizer: Build = lambda: None,
    data: Any = DATA,
    **arguments: Any,
) -> list[np.ndarray]:
    """All parameters after some steps, the bound at each, and how far copies are apart."""
    with strategy.scope() if strategy else contextlib.nullcontext():
        model, made = build(), optimizer()
    history = fit(
        model,
        data,
        num_steps,
        optimizer=made,
        strategy=strategy,
        progress=False,
        kl_annealing_steps=5,
        **arguments,
    )
    return [*values(model), history.elbo, np.array(copies_apart(model))]


def copies_apart(model: Any) -> float:
    """How far replicas' copies of the variables are from those of the first."""
    copies = [getattr(variable, "values", [variable]) for variable in model.trainable_variables]
    return max(
        float(np.abs(first.numpy() - other.numpy()).max())
        for first, *others in copies
        for other in (first, *others)
    )


def distance(strategy: Any, build: Build, **arguments: Any) -> float:
    """How far two replicas end from one device."""
    return largest_difference(
        trained(None, build, **arguments), trained(strategy, build, **arguments)
    )


@case
def regression_on_minibatches(strategy: Any) -> object:
    return distance(strategy, lambda: wishart(2, output="regression"), batch_size=5)


@case
def weights_and_keras(strategy: Any) -> object:
    return distance(
        strategy,
        wishart,
        optimizer=lambda: tf_keras.optimizers.Adam(0.01),
        data=(*DATA, np.linspace(0.5, 2.0, 13)),
    )


@case
def natural_gradients(strategy: Any) -> object:
    return distance(strategy, lambda: latent_gp("GP"), protocol="natural")


@case
def dataset_of_uneven_batches(strategy: Any) -> object:
    # The last batch of an epoch has one row, and one of two replicas none.
    return distance(strategy, wishart, data=tf.data.Dataset.from_tensor_slices(DATA).batch(4))


@case
def compiled_by_xla(strategy: Any) -> object:
    return distance(strategy, wishart, jit_compile=True)


def step_apart(strategy: Any, build: Build, split: Any, num_importance_samples: int = 1) -> float:
    """How far a step of two replicas is from the mean of two that are taken by hand."""
    model, expected = build(), []
    seed, num_rows = fold_in(as_seed(0), 0), len(X)
    for replica, rows in enumerate((slice(0, 6), slice(6, 13))):
        shard, share = DATA, 1.0
        if split == "rows":
            shard = tuple(part[rows] for part in DATA)
            share = 2.0 * len(shard[0]) / num_rows
        with tf.GradientTape() as tape:
            terms = model.elbo_terms(
                shard,
                num_importance_samples=num_importance_samples,
                seed=fold_in(seed, replica),
            )
            loss = -(share * terms.data + tf.reduce_sum(terms.log_ratios))
        expected.append(
            tape.gradient(loss, model.trainable_variables, unconnected_gradients="zero")
        )
    steps = [-0.5 * (first + second).numpy() for first, second in zip(*expected, strict=True)]
    with strategy.scope():
        other, optimizer = build(), tf_keras.optimizers.SGD(1.0)
    fit(
        other,
        DATA,
        1,
        optimizer=optimizer,
        num_importance_samples=num_importance_samples,
        strategy=strategy,
        split=split,
        kl_annealing_steps=0,
        progress=False,
    )
    taken = [new - old for new, old in zip(values(other), values(model), strict=True)]
    scales = [1.0 + np.abs(step).max() for step in steps]
    return max(
        float(np.abs(a - b).max() / scale) for a, b, scale in zip(taken, steps, scales, strict=True)
    )


@case
def samples(strategy: Any) -> object:
    return step_apart(strategy, lambda: wishart(2, output="regression"), "samples")


@case
def network_by_rows(strategy: Any) -> object:
    return step_apart(strategy, network, "rows")


@case
def latent_gp_by_rows(strategy: Any) -> object:
    return step_apart(strategy, lambda: latent_gp("GP-LV-GP"), "rows", 3)


@case
def one_replica(_: Any) -> object:
    strategies = tf.distribute.MirroredStrategy(["CPU:1"]), tf.distribute.OneDeviceStrategy("CPU:1")

    def last(strategy: Any) -> list[np.ndarray]:
        return trained(strategy, lambda: latent_gp("LV-GP"), num_steps=5)

    with tf.device("CPU:1"):
        alone = last(None)
    return [largest_difference(alone, last(strategy)) for strategy in strategies]


def own_steps(strategy: Any, make: Callable[[Any], Any]) -> list[list[np.ndarray]]:
    """Copies of variables after steps that the user takes, and what they are on one device."""

    def taken(strategy: Any) -> list[tf.Variable]:
        with strategy.scope() if strategy else contextlib.nullcontext():
            mean, root = gpflow.Parameter(np.ones((3, 1))), np.eye(3)[None]
            pair = mean, gpflow.Parameter(root, transform=gpflow.utilities.triangular())
            variables = [each.unconstrained_variable for each in pair]
            variables.append(tf.Variable([0.5, 2.0], dtype=tf.float64))
            optimizer = make(pair)
            optimizer.build(variables)

        def step() -> None:
            context = tf.distribute.get_replica_context()
            weight = 3.0  # of both
            if strategy is not None:
                weight = 1.0 + tf.cast(context.replica_id_in_sync_group, tf.float64)
            pairs = [(0.1 * weight * tf.cos(variable), variable) for variable in variables]
            optimizer.apply_gradients(pairs)

        for _ in range(5):
            tf.function((lambda: strategy.run(step)) if strategy else step, autograph=False)()
        return variables

    copies = zip(*(variable.values for variable in taken(strategy)), strict=True)
    return [[each.numpy() for each in copy] for copy in (*copies, taken(None))]


@case
def optimisers_in_own_steps(strategy: Any) -> object:
    makers: list[Callable[[Any], Any]] = [
        lambda _: Adam(0.01),
        lambda pair: NaturalGradientAdam([pair]),
    ]
    found = []
    for make in makers:
        first, second, alone = own_steps(strategy, make)
        found += [largest_difference(first, alone), largest_difference(second, alone)]
    return found


@case
def resumed(strategy: Any) -> object:
    """From one device to two and back, with minibatches and early stopping."""

    def part(strategy: Any, until: int, folder: Path | None) -> list[np.ndarray]:
        stopping = EarlyStopping(DATA, lambda model, _: -float(model.likelihood.variance.numpy()))
        return trained(
            strategy,
            wishart,
            batch_size=5,
            callbacks=[stopping, lambda progress: progress.step == until],
            callback_interval=4,
            checkpoint_directory=folder,
        )

    folder = FOLDER / "resumed"
    part(None, 8, folder)
    part(strategy, 12, folder)
    return largest_difference(part(None, 99, None), part(None, 99, folder))


@case
def not_finite(strategy: Any) -> object:
    with strategy.scope():
        model, optimizer = wishart(), tf_keras.optimizers.SGD(1e300)
    before = values(model)
    with message() as seen:
        fit(model, DATA, 5, optimizer=optimizer, strategy=strategy, progress=False)
    return [*seen, largest_difference(before, values(model)), copies_apart(model)]


@case
def saved_and_exported(strategy: Any) -> object:
    with strategy.scope():
        model = wishart()
        fit(model, DATA, 3, progress=False)  # of the scope's strategy
    save_model(model, FOLDER / "model")
    export_model(model, FOLDER / "exported", num_samples=3)
    expected, _ = model.predict_y(X)
    loaded = load_model(FOLDER / "model")
    with strategy.scope():
        again = load_model(FOLDER / "model")
    fit(again, DATA, 1, strategy=strategy, progress=False)
    exported = tf.saved_model.load(str(FOLDER / "exported"))
    of_export = exported.predict_y(tf.constant(X))["mean"]
    draws = model.posterior(3, seed=0).predict_y(X)[0]
    return [
        float(np.abs(loaded.predict_y(X)[0] - expected).max()),
        float(np.abs(of_export - draws).max()),
    ]


@contextlib.contextmanager
def message() -> Iterator[list[str]]:
    seen: list[str] = []
    try:
        yield seen
    except Exception as error:
        seen.append(f"{type(error).__name__}: {error}")


@case
def refused(strategy: Any) -> object:
    outside, likelihood = wishart(), gpflow.likelihoods.Gaussian()
    with strategy.scope():
        model, mixed = wishart(), wishart(likelihood=likelihood)
        encoder = LatentVariableLayer(1, FreeEncoder(13))
        of_rows = wishart()
        of_rows.latent_layer = encoder
        central = tf_keras.optimizers.legacy.Adam()
    variable = model.trainable_variables[0]
    adam = Adam()

    def step(optimizer: Any) -> None:
        pairs = [(tf.ones_like(variable), variable)]
        strategy.run(lambda: optimizer.apply_gradients(pairs))

    with strategy.scope():
        inside = Adam()
        inside.build([variable])
    adam.build([variable])
    attempts: dict[str, Callable[[], object]] = {
        "model": lambda: fit(outside, DATA, 1, strategy=strategy),
        "likelihood": lambda: fit(mixed, DATA, 1, strategy=strategy),
        "no strategy": lambda: fit(model, DATA, 1),
        "strategy": lambda: fit(model, DATA, 1, strategy="mirrored"),  # type: ignore[arg-type]
        "split": lambda: fit(model, DATA, 1, strategy=strategy, split="layers"),  # type: ignore[arg-type]
        "split alone": lambda: fit(outside, DATA, 1, split="samples"),
        "rows": lambda: fit(of_rows, DATA, 1, strategy=strategy),
        "optimizer": lambda: fit(model, DATA, 1, strategy=strategy, optimizer=Adam()),
        "Keras": lambda: fit(
            model, DATA, 1, strategy=strategy, optimizer=tf_keras.optimizers.Adam()
        ),
        "natural": lambda: fit(
            model, DATA, 1, strategy=strategy, optimizer=NaturalGradientAdam([])
        ),
        "legacy": lambda: fit(model, DATA, 1, strategy=strategy, optimizer=central),
        "own steps": lambda: step(adam),
        "no replica": lambda: within(strategy, inside, variable),
    }
    seen = {}
    for name, attempt in attempts.items():
        with message() as told:
            attempt()
        seen[name] = told[0] if told else "nothing"
    return seen


@case
def second_strategy(strategy: Any) -> object:
    """Trained after the first, as where a cell of a notebook is run again."""
    trained(strategy, wishart, 2)
    again = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with message() as seen:
        trained(again, lambda: wishart(num_inducing=5), 2)
    return seen


def within(strategy: Any, optimizer: Adam, variable: tf.Variable) -> None:
    with strategy.scope():
        optimizer.apply_gradients([(tf.ones(variable.shape, variable.dtype), variable)])


if __name__ == "__main__":
    FOLDER = Path(sys.argv[1])
    cpu = tf.config.list_physical_devices("CPU")[0]
    # It takes longer to make graphs fast than to take twenty steps.
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    replicas = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    print(json.dumps({name: CASES[name](replicas) for name in sys.argv[2:]}))
