"""Models as TensorFlow SavedModels, which need neither this package nor GPflow to run."""

from __future__ import annotations

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
from gpflow_dwp.models.accepted_observations import count_columns
from gpflow_dwp.models.mixture_posterior import MixturePosterior, snapshot
from gpflow_dwp.random import as_seed
from gpflow_dwp.validation import check_instance, check_integers

__all__ = ["export_model"]

Outputs = dict[str, tf.Tensor]


def export_model(
    model: VariationalModel,
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

    :param model: The model, with GPflow's default float as it is now.
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
    check_instance(VariationalModel, model=model)
    directory = Path(directory).resolve()
    if directory.exists():
        raise FileExistsError(f"{directory} exists; name a directory that is new.")
    directory.parent.mkdir(parents=True, exist_ok=True)
    check_can_be_made(directory)
    constant = snapshot(model)
    units = RawUnits(constant, input_standardiser, output_standardiser)
    num_samples = model.num_prediction_samples if num_samples is None else num_samples
    check_integers(num_samples=num_samples)
    check_integers(at_least=0, seed=seed)
    program = tf.Module()
    functions = _functions(constant, units, num_samples, seed)
    for name, function in functions.items():
        setattr(program, name, function)
    program.weights = [*constant.variables]  # of Keras layers in kernels: all others are constants

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


def _functions(
    model: VariationalModel, units: RawUnits, num_samples: int, seed: int
) -> dict[str, Callable[..., Outputs]]:
    """The functions by name, of a model of constants: they must hold nothing that is tracked."""
    default_count, default_seed = tf.constant(num_samples), tf.constant(seed, tf.int64)
    num_columns = count_columns(model.likelihood, model.num_outputs)
    X_spec = tf.TensorSpec([None, model.num_inputs], default_float(), "X")
    Y_spec = tf.TensorSpec([None, num_columns], default_float(), "Y")
    count_spec = tf.TensorSpec([], tf.int32, "num_samples")
    seed_spec = tf.TensorSpec([], tf.int64, "seed")

    def posterior(num_samples: tf.Tensor, seed: tf.Tensor) -> MixturePosterior:
        positive = tf.debugging.assert_positive(num_samples, "num_samples must be positive")
        with tf.control_dependencies([positive]):
            num_samples = tf.identity(num_samples)  # nothing fails on it before
        return model.posterior(num_samples, seed=as_seed(seed))

    def function(
        predict: Callable[..., Sequence[tf.Tensor]], *names: str
    ) -> Callable[..., Outputs]:
        @tf.function(input_signature=[X_spec, count_spec, seed_spec], autograph=False)
        def of_inputs(
            X: tf.Tensor, num_samples: tf.Tensor = default_count, seed: tf.Tensor = default_seed
        ) -> Outputs:
            return dict(zip(names, predict(posterior(num_samples, seed), X), strict=True))

        return of_inputs

    @tf.function(input_signature=[X_spec, Y_spec, count_spec, seed_spec], autograph=False)
    def log_density(
        X: tf.Tensor,
        Y: tf.Tensor,
        num_samples: tf.Tensor = default_count,
        seed: tf.Tensor = default_seed,
    ) -> Outputs:
        rows = tf.shape(X)[0]
        tf.debugging.assert_equal(rows, tf.shape(Y)[0], "X and Y must have as many rows")
        return {"log_density": units.log_density(posterior(num_samples, seed), X, Y)}

    return {
        "predict_f": function(units.function_moments, "mean", "variance"),
        "predict_y": function(units.moments, "mean", "variance"),
        "sample": function(lambda draws, X: [units.sample_functions(draws, X)], "samples"),
        "log_density": log_density,
    }
