"""``gpflow-dwp mnist``: the matrix-Gaussian network on permutation-invariant MNIST."""

from __future__ import annotations

from dataclasses import dataclass
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group, Parameter

from gpflow_dwp.cli.configuration import options_as_plain, write_configuration
from gpflow_dwp.cli.errors import UsageError, user_mistakes
from gpflow_dwp.cli.parameters import (
    Config,
    Dtype,
    Json,
    PositiveInteger,
    PositiveIntegers,
    PositiveNumber,
    Quiet,
    Seed,
)
from gpflow_dwp.cli.run_directory import CONFIGURATION
from gpflow_dwp.files import write_whole

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from gpflow_dwp.matrix_gaussian import MatrixGaussianNetwork
    from gpflow_dwp.training import TrainingHistory

    Digits = tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]

__all__ = ["MnistOptions", "mnist"]

_MODEL = Parameter(group=Group.create_ordered("Model"))
_TRAINING = Parameter(group=Group.create_ordered("Training and prediction"))
_FILES = Parameter(group=Group.create_ordered("Data and output"))

# Louizos and Welling (2016), table 2: test errors in per cent.
_PRINTED = {
    (400, 400): 1.15,
    (150, 150, 150): 1.18,
    (250, 250, 250): 1.11,
    (500, 500, 500): 1.08,
    (750, 750, 750): 1.05,
}
_STEPS_IN_FINAL_BOUND = 100
_IMAGES_AT_ONCE = 1_000


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class MnistOptions:
    """How the network is made, trained and judged.

    :param hidden: Units of each hidden layer.
    :param num_pseudo_data: Pseudo-data pairs of each layer; the paper tunes them, up to 150.
    :param largest_dropout: Upper bound of the pseudo-data's dropout rate.
    :param validation_rows: Last training images, which are not trained on.
    :param epochs: Passes over the other images.
    :param batch_size: Images of a minibatch.
    :param learning_rate: Of Adam at the start; it falls to a hundredth.
    :param prediction_samples: Draws that make up a prediction.
    :param seed: For start, minibatches and draws.
    :param folder: Folder of MNIST's four idx files (default: that of GPFLOW_DWP_MNIST, else they
        are downloaded).
    :param out: Where model and results go (default: nowhere).
    """

    hidden: Annotated[PositiveIntegers, _MODEL] = (150, 150, 150)
    num_pseudo_data: Annotated[PositiveInteger, _MODEL] = 50
    largest_dropout: Annotated[float, _MODEL] = 0.25
    dtype: Annotated[Dtype, _MODEL] = "float32"
    validation_rows: Annotated[PositiveInteger, _TRAINING] = 10_000
    epochs: Annotated[PositiveInteger, _TRAINING] = 100
    batch_size: Annotated[PositiveInteger, _TRAINING] = 200
    learning_rate: Annotated[PositiveNumber, _TRAINING] = 1e-3
    prediction_samples: Annotated[PositiveInteger, _TRAINING] = 100
    seed: Annotated[Seed, _TRAINING] = 0
    folder: Annotated[Path | None, _FILES] = None
    out: Annotated[Path | None, _FILES] = None
    config: Annotated[Config, _FILES] = None
    quiet: Annotated[Quiet, _FILES] = False
    json: Annotated[Json, _FILES] = False


_DEFAULTS = MnistOptions()


def mnist(options: MnistOptions = _DEFAULTS) -> None:
    """Classify handwritten digits with a matrix-Gaussian network.

    It is trained on MNIST by the protocol of Louizos and Welling (2016): the last 10,000 training
    images are held out, to choose settings by; inputs are the 784 pixels, in no order. The errors
    of validation and test images are printed. An epoch of 150 150 150 takes about a minute on a CPU
    core.

    examples:

        gpflow-dwp mnist --hidden 150 150 150
        gpflow-dwp mnist --hidden 400 400 --num-pseudo-data 100 --folder data/mnist --out runs/400
    """
    import gpflow
    import numpy as np

    from gpflow_dwp.cli.reports import as_json
    from gpflow_dwp.data import load_mnist
    from gpflow_dwp.lab.experiments.experiment import provenance_here
    from gpflow_dwp.models import save_model

    with gpflow.config.as_context():
        gpflow.config.set_default_float(np.dtype(options.dtype).type)
        with user_mistakes():
            digits = load_mnist(options.folder)
            _check(options, len(digits.X_train))
            kept = len(digits.X_train) - options.validation_rows
            train = digits.X_train[:kept], digits.Y_train[:kept]
            model = _build(options, train)
        provenance = provenance_here(options.dtype)
        history = _train(options, model, train)
        if history.stop_reason.startswith("interrupted") and not options.json:
            print(f"Training was {history.stop_reason}.", flush=True)
        sets = {
            "validation": (digits.X_train[kept:], digits.Y_train[kept:]),
            "test": (digits.X_test, digits.Y_test),
        }
        errors = {name: _error_rate(options, model, of) for name, of in sets.items()}
        result = {
            **{f"{name}_error_percent": error for name, error in errors.items()},
            "elbo_per_datum": float(history.elbo_per_datum[-_STEPS_IN_FINAL_BOUND:].mean()),
            "steps": history.num_steps,
            "stop_reason": history.stop_reason,
            "seconds": history.seconds,
            "options": options_as_plain("mnist", options),
            "provenance": provenance,
        }
        if options.out is not None:
            options.out.mkdir(parents=True, exist_ok=True)
            write_configuration(options.out / CONFIGURATION, "mnist", options)
            save_model(model, options.out / "model")
            write_whole(options.out / "results.json", dumps(result, indent=1) + "\n")
    if options.json:
        print(as_json(result))
        return
    for name, error in errors.items():
        print(f"{name} error: {error:.2f}%")
    if options.hidden in _PRINTED:
        print(f"test error in print: {_PRINTED[options.hidden]:.2f}%")
    if options.out is not None:
        print(f"Model and results are in {options.out}")


def _check(options: MnistOptions, num_rows: int) -> None:
    if options.validation_rows >= num_rows:
        raise UsageError(
            f"--validation-rows {options.validation_rows} leaves none of {num_rows} training images"
        )
    out = options.out
    if out is not None and out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise UsageError(f"{out} exists; choose another --out")


def _build(options: MnistOptions, train: Digits) -> MatrixGaussianNetwork:
    import gpflow

    from gpflow_dwp.matrix_gaussian import build_matrix_gaussian_network

    return build_matrix_gaussian_network(
        train,
        len(options.hidden) + 1,
        width=options.hidden,
        num_pseudo_data=options.num_pseudo_data,
        largest_dropout=options.largest_dropout,
        learn_precision=False,
        likelihood=gpflow.likelihoods.Softmax(10),
        num_samples=1,
        seed=options.seed,
    )


def _train(options: MnistOptions, model: MatrixGaussianNetwork, train: Digits) -> TrainingHistory:
    from gpflow_dwp.training import Adam, fit
    from gpflow_dwp.training.schedule import cosine_learning_rate

    num_steps = options.epochs * -(-len(train[0]) // options.batch_size)
    return fit(
        model,
        train,
        num_steps,
        batch_size=options.batch_size,
        protocol="vmg",
        optimizer=Adam(cosine_learning_rate(num_steps, options.learning_rate)),
        seed=options.seed,
        progress=not options.quiet,
    )


def _error_rate(options: MnistOptions, model: MatrixGaussianNetwork, digits: Digits) -> float:
    """In per cent."""
    import numpy as np
    import tensorflow as tf

    X, Y = digits
    posterior = model.posterior(options.prediction_samples, seed=0)
    tf.random.set_seed(0)  # the likelihood draws from the global generator
    wrong = 0
    for start in range(0, len(X), _IMAGES_AT_ONCE):
        rows = slice(start, start + _IMAGES_AT_ONCE)
        probabilities, _ = posterior.predict_y(X[rows])
        wrong += int(np.sum(np.argmax(probabilities, axis=1) != Y[rows, 0]))
    return 100.0 * (wrong / len(X))
