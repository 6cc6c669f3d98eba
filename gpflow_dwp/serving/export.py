"""Models as TensorFlow SavedModels, which need neither this package nor GPflow to run."""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import tensorflow as tf
from gpflow import default_float

from gpflow_dwp.data import Standardiser
from gpflow_dwp.evaluation import RawUnits
from gpflow_dwp.files import check_can_be_made, sync, sync_tree
from gpflow_dwp.models import VariationalModel
from gpflow_dwp.models.data_checks import count_columns
from gpflow_dwp.models.mixture_posterior import MixturePosterior, snapshot
from gpflow_dwp.random import as_seed
from gpflow_dwp.validation import check_instance, check_integers

__all__ = ["export_model"]

Outputs = dict[str, tf.Tensor]


def export_model(
    model: VariationalModel | MixturePosterior,
    directory: str | os.PathLike[str],
    *,
    input_standardiser: Standardiser | None = None,
    output_standardiser: Standardiser | None = None,
    num_samples: int | None = None,
    seed: int = 0,
    assets: Mapping[str, str] | None = None,
) -> None:
    """Write a model as a TensorFlow SavedModel with raw units on the outside.

    ``tf.saved_model.load(directory)`` needs TensorFlow only; every parameter is a constant in it.
    Its functions, which are its signatures, too, are

    - ``predict_f(X, num_samples, seed)``: ``mean`` and ``variance`` of the latent functions,
      [N, Q];
    - ``predict_y(X, num_samples, seed)``: ``mean`` and ``variance`` of observations, [N, P];
    - ``sample(X, num_samples, seed)``: ``samples`` of the latent functions, [S, N, Q]. Each is one
      coherent function of all points, and with one seed another call with the same points gives
      the same;
    - ``log_density(X, Y, num_samples, seed)``: ``log_density`` of each observation, [N], per unit
      of Y.

    Of a model of warped observations the functions are g⁻¹(f), the median of an observation given
    f, so that they have the unit of Y, too.

    X is [N, D] for any N; ``num_samples`` is S, int32, ``seed`` int64, as for the model's own
    methods, whose results these are. As attributes of the loaded object the functions have
    defaults for both; signatures take all their arguments, by name. The memory that they need
    grows with S times N: ask for long inputs in batches (predictions at a point do not depend on
    its batch).

    :param model: The model, with GPflow's default float as it is now. Or its posterior, whose draws
        are fixed: functions take data alone, and ``sample`` gives a function of each draw.
    :param directory: Where to: one that does not exist. It is written beside and renamed once.
    :param input_standardiser: What the model's inputs went through; None for nothing.
    :param output_standardiser: What its observations went through; None for nothing, as for labels
        and counts. Means, variances, samples and log densities come back in raw units.
    :param num_samples: The default S; None for the model's ``num_prediction_samples``.
    :param seed: The default seed.
    :param assets: Texts by the name of a file that each is written to, in the folder
        ``assets.extra``, which TensorFlow keeps for its users and does not read.
    :raises FileExistsError: If the directory exists.
    :raises ValueError: If ``model`` is none of this package's, the standardisers do not have its
        columns, or another argument is none of its kind.
    """
    if not isinstance(model, MixturePosterior):
        check_instance(VariationalModel, model=model)
    directory = Path(directory).resolve()
    if directory.exists():
        raise FileExistsError(f"{directory} exists; name a directory that is new.")
    directory.parent.mkdir(parents=True, exist_ok=True)
    check_can_be_made(directory)
    check_integers(at_least=0, seed=seed)
    functions: dict[str, Callable[..., Outputs]]
    program, of_draws = tf.Module(), []
    if isinstance(model, MixturePosterior):
        predictions = _predictions(RawUnits(model, input_standardiser, output_standardiser))
        functions = {name: functools.partial(each, model) for name, each in predictions.items()}
    else:
        constant = snapshot(model)
        predictions = _predictions(RawUnits(constant, input_standardiser, output_standardiser))
        num_samples = model.num_prediction_samples if num_samples is None else num_samples
        check_integers(num_samples=num_samples)
        functions = _functions(constant, predictions, num_samples, seed)
        of_draws = [tf.TensorSpec([], tf.int32, "num_samples"), tf.TensorSpec([], tf.int64, "seed")]
        # Of Keras layers in kernels: all others are constants.
        program.weights = [*constant.variables]
    X = tf.TensorSpec([None, model.num_inputs], default_float(), "X")
    num_columns = count_columns(model.likelihood, model.num_outputs)
    Y = tf.TensorSpec([None, num_columns], default_float(), "Y")
    for name, function in functions.items():
        specs = [X, Y, *of_draws] if name == "log_density" else [X, *of_draws]
        functions[name] = tf.function(function, specs, autograph=False)
        setattr(program, name, functions[name])

    partial = directory.with_name(f".{directory.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)  # what a killed export left
    try:
        tf.saved_model.save(program, str(partial), functions)
        for name, text in (assets or {}).items():
            path = partial / "assets.extra" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        sync_tree(partial)
        partial.rename(directory)
        sync(directory.parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _predictions(units: RawUnits) -> dict[str, Callable[..., Outputs]]:
    """The functions by name, of draws and data."""

    def named(predict: Callable[..., Sequence[tf.Tensor]], *names: str) -> Callable[..., Outputs]:
        return lambda draws, X: dict(zip(names, predict(draws, X), strict=True))

    def log_density(draws: MixturePosterior, X: tf.Tensor, Y: tf.Tensor) -> Outputs:
        fits = tf.debugging.assert_equal(
            tf.shape(X)[0], tf.shape(Y)[0], "X and Y must have as many rows"
        )
        with tf.control_dependencies([fits]):  # what else meets them might fail first
            X, Y = tf.identity(X), tf.identity(Y)
        return {"log_density": units.log_density(draws, X, Y)}

    return {
        "predict_f": named(units.function_moments, "mean", "variance"),
        "predict_y": named(units.moments, "mean", "variance"),
        "sample": named(lambda draws, X: [units.sample_functions(draws, X)], "samples"),
        "log_density": log_density,
    }


def _functions(
    model: VariationalModel,
    predictions: Mapping[str, Callable[..., Outputs]],
    num_samples: int,
    seed: int,
) -> dict[str, Callable[..., Outputs]]:
    """The functions by name, of data, draws and a seed, of a model of constants.

    They must hold nothing that is tracked.
    """
    default_count, default_seed = tf.constant(num_samples), tf.constant(seed, tf.int64)

    def posterior(num_samples: tf.Tensor, seed: tf.Tensor) -> MixturePosterior:
        positive = tf.debugging.assert_positive(num_samples, "num_samples must be positive")
        with tf.control_dependencies([positive]):
            num_samples = tf.identity(num_samples)  # nothing fails on it before
        return model.posterior(num_samples, seed=as_seed(seed))

    def of_inputs(predict: Callable[..., Outputs]) -> Callable[..., Outputs]:
        def function(
            X: tf.Tensor, num_samples: tf.Tensor = default_count, seed: tf.Tensor = default_seed
        ) -> Outputs:
            return predict(posterior(num_samples, seed), X)

        return function

    def log_density(
        X: tf.Tensor,
        Y: tf.Tensor,
        num_samples: tf.Tensor = default_count,
        seed: tf.Tensor = default_seed,
    ) -> Outputs:
        return predictions["log_density"](posterior(num_samples, seed), X, Y)

    functions = {name: of_inputs(predict) for name, predict in predictions.items()}
    return functions | {"log_density": log_density}
