"""A process with two devices, or one of two processes: what training there leads to, and on one.

TensorFlow's devices are made when it starts, so that this is a program of its own. ``python
replicas.py FOLDER CASE...`` prints what cases found, as JSON; ``python replicas.py FOLDER INDEX
PORT PORT`` is one of two processes that train together.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.keras import tf_keras

from gpflow_dwp import (
    build_deep_wishart_process,
    build_latent_variable_deep_gp,
    fit,
)
from gpflow_dwp.random import as_seed, fold_in
from gpflow_dwp.training import Adam, EarlyStopping

RNG = np.random.default_rng(0)
X = RNG.normal(size=(13, 2))
DATA = X, np.sin(2.0 * X[:, :1]) + 0.1 * RNG.normal(size=(13, 1))


def wishart(depth: int = 1, output: str = "pseudo_targets", **arguments: Any) -> Any:
    small = {"num_inducing": 4, "num_samples": 2, "output": output}
    return build_deep_wishart_process(DATA, depth, **small, **arguments)


def latent_gp(architecture: str) -> Any:
    return build_latent_variable_deep_gp(DATA, architecture, num_inducing=4, num_functions=2)


def values(model: Any) -> list[np.ndarray]:
    return [variable.numpy() for variable in model.trainable_variables]


def largest_difference(first: list[np.ndarray], second: list[np.ndarray]) -> float:
    return max(float(np.abs(a - b).max()) for a, b in zip(first, second, strict=True))


def copies_apart(model: Any) -> float:
    """How far replicas' copies of the variables are from those of the first."""
    copies = [getattr(variable, "values", [variable]) for variable in model.trainable_variables]
    return max(largest_difference([first] * len(all_), all_) for all_ in copies for first in all_)


def trained(
    strategy: Any,
    build: Callable[[], Any] = wishart,
    num_steps: int = 20,
    optimizer: Callable[[], Any] = lambda: None,
    data: Any = DATA,
    **arguments: Any,
) -> list[np.ndarray]:
    """All parameters after some steps, the bound at each, and how far copies are apart."""
    with strategy.scope() if strategy else contextlib.nullcontext():
        arguments["optimizer"], model = optimizer(), build()
    settings = {"strategy": strategy, "progress": False, "kl_annealing_steps": 5, **arguments}
    history = fit(model, data, num_steps, **settings)
    return [*values(model), history.elbo, np.array(copies_apart(model))]


def distance(strategy: Any, build: Callable[[], Any] = wishart, **arguments: Any) -> float:
    """How far two replicas end from one device."""
    ends = [trained(each, build, **arguments) for each in (None, strategy)]
    return largest_difference(*ends)


def single_rows_weighted_by_keras(strategy: Any) -> float:
    """Where there are fewer rows than replicas."""
    keras = {"optimizer": lambda: tf_keras.optimizers.Adam(0.01), "batch_size": 1}
    return distance(strategy, data=(*DATA, np.linspace(0.5, 2.0, 13)), **keras)


def natural_gradients(strategy: Any) -> float:
    return distance(strategy, lambda: latent_gp("GP"), protocol="natural")


def compiled_by_xla(strategy: Any) -> float:
    return distance(strategy, jit_compile=True)


def own_draws(strategy: Any) -> float:
    """How far a step of two replicas is from the mean of two that are taken by hand."""
    model, expected = latent_gp("GP-LV-GP"), []
    seed, copies = fold_in(as_seed(0), 0), {"num_importance_samples": 3}
    for replica, rows in enumerate((slice(0, 6), slice(6, 13))):
        shard = tuple(part[rows] for part in DATA)
        with tf.GradientTape() as tape:
            terms = model.elbo_terms(shard, seed=fold_in(seed, replica), **copies)
            loss = -(2.0 * len(shard[0]) / 13 * terms.data + tf.reduce_sum(terms.log_ratios))
        of_replica = tape.gradient(loss, model.trainable_variables, unconnected_gradients="zero")
        expected.append([part.numpy() for part in of_replica])
    with strategy.scope():
        other, optimizer = latent_gp("GP-LV-GP"), tf_keras.optimizers.SGD(1.0)
    settings = {"optimizer": optimizer, "kl_annealing_steps": 0, "progress": False, **copies}
    fit(other, DATA, 1, strategy=strategy, **settings)
    return max(
        float(np.abs(new - old + 0.5 * (one + two)).max() / (1.0 + np.abs(one + two).max()))
        for new, old, one, two in zip(values(other), values(model), *expected, strict=True)
    )


def one_replica(_: Any) -> float:
    strategies = tf.distribute.MirroredStrategy(["CPU:1"]), tf.distribute.OneDeviceStrategy("CPU:1")
    with tf.device("CPU:1"):
        alone = trained(None, lambda: latent_gp("LV-GP"), 5)
    ends = [trained(strategy, lambda: latent_gp("LV-GP"), 5) for strategy in strategies]
    return max(largest_difference(alone, end) for end in ends)


def resumed(strategy: Any) -> float:
    """From one device to two and back, with minibatches and early stopping."""

    def part(strategy: Any, until: int, folder: Path | None) -> list[np.ndarray]:
        stopping = EarlyStopping(DATA, lambda model, _: -float(model.likelihood.variance.numpy()))
        end = {"callbacks": [stopping, lambda progress: progress.step == until]}
        place = {"callback_interval": 4, "checkpoint_directory": folder}
        return trained(strategy, lambda: wishart(1, "regression"), batch_size=5, **end, **place)

    folder = FOLDER / "resumed"
    part(None, 4, folder)
    part(strategy, 16, folder)
    return largest_difference(part(None, 99, None), part(None, 99, folder))


def not_finite(strategy: Any) -> object:
    with strategy.scope():
        model, optimizer = wishart(), tf_keras.optimizers.SGD(1e300)
    before = values(model)
    told = message(lambda: fit(model, DATA, 5, optimizer=optimizer, strategy=strategy))
    return [told, largest_difference(before, values(model)), copies_apart(model)]


def message(attempt: Callable[[], object]) -> str:
    try:
        return f"no error, {attempt()}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def refused(strategy: Any) -> object:
    outside, likelihood = wishart(), gpflow.likelihoods.Gaussian()
    with strategy.scope():
        model, mixed = wishart(), wishart(likelihood=likelihood)

    def with_(model: Any, strategy: Any = strategy, **arguments: Any) -> str:
        return message(lambda: fit(model, DATA, 1, strategy=strategy, **arguments))

    return {
        "model": with_(outside),
        "likelihood": with_(mixed),
        "no strategy": with_(model, None),
        "strategy": with_(model, "mirrored"),
        "optimizer": with_(model, optimizer=Adam()),
        "Keras": with_(model, optimizer=tf_keras.optimizers.Adam()),
    }


def as_worker(index: int, *ports: str) -> dict[str, object]:
    """Train with another process: a run that is ended and goes on, others that go wrong."""
    cluster = {"worker": [f"localhost:{port}" for port in ports]}
    task = {"type": "worker", "index": index}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": task})
    strategy = tf.distribute.MultiWorkerMirroredStrategy()

    def part(strategy: Any, until: int, folder: Path | None = None) -> list[np.ndarray]:
        end = {"callbacks": [lambda progress: progress.step == until], "callback_interval": 4}
        return trained(strategy, batch_size=5, checkpoint_directory=folder, **end)

    part(strategy, 8, FOLDER / "state")
    together = part(strategy, 99, FOLDER / "state")
    own = FOLDER / f"state-of-{index}"
    if index == 0:
        trained(None, num_steps=4, checkpoint_directory=own)
    apart = message(lambda: trained(strategy, num_steps=4, checkpoint_directory=own))
    with strategy.scope():
        model = wishart()
    interrupt = [lambda _: signal.raise_signal(signal.SIGINT) if index == 1 else None]
    watched = {"callbacks": interrupt, "callback_interval": 3, "progress": False}
    return {
        "apart": apart,
        "stop_reason": fit(model, DATA, 9, strategy=strategy, **watched).stop_reason,
        "distance": largest_difference(part(None, 99), together) if index == 0 else 0.0,
    }


if __name__ == "__main__":
    FOLDER, names = Path(sys.argv[1]), sys.argv[2:]
    # It takes longer to make graphs fast than to take twenty steps.
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    if names[0].isdigit():
        print(json.dumps(as_worker(int(names[0]), *names[1:])))
    else:
        cpu = tf.config.list_physical_devices("CPU")[0]
        two = [tf.config.LogicalDeviceConfiguration()] * 2
        tf.config.set_logical_device_configuration(cpu, two)
        replicas = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        print(json.dumps({name: globals()[name](replicas) for name in names}))
