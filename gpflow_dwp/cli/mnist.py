"""``gpflow-dwp mnist``: the matrix-Gaussian network on permutation-invariant MNIST."""

from __future__ import annotations

import argparse
import contextlib
import json
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from gpflow_dwp.cli.configuration import write_configuration
from gpflow_dwp.cli.errors import UsageError, user_mistakes
from gpflow_dwp.cli.reports import as_json
from gpflow_dwp.cli.unfinished import CONFIGURATION
from gpflow_dwp.data import load_mnist
from gpflow_dwp.files import write_whole
from gpflow_dwp.models import (
    MatrixGaussianNetwork,
    build_matrix_gaussian_network,
    save_model,
)
from gpflow_dwp.training import Adam, TrainingHistory, cosine_learning_rate, fit

__all__ = ["run_mnist"]

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

Digits = tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]


def run_mnist(options: argparse.Namespace) -> None:
    """Train on MNIST by the protocol of Louizos and Welling (2016, section 4.2); print errors.

    :param options: As ``gpflow-dwp mnist`` parses them.
    :raises UsageError: If the input cannot be used; nothing has been trained then.
    """
    with gpflow.config.as_context():
        gpflow.config.set_default_float(np.dtype(options.dtype).type)
        with user_mistakes():
            digits = load_mnist(options.folder)
            _check(options, len(digits.X_train))
            kept = len(digits.X_train) - options.validation_rows
            train = digits.X_train[:kept], digits.Y_train[:kept]
            model = _build(options, train)
            if options.out is not None:
                options.out.mkdir(parents=True)
                write_configuration(options.out / CONFIGURATION, vars(options))
        try:
            history = _train(options, model, train)
        except BaseException:
            if options.out is not None:
                (options.out / CONFIGURATION).unlink(missing_ok=True)
                with contextlib.suppress(OSError):
                    options.out.rmdir()
            raise
        if history.stop_reason.startswith("interrupted") and not options.json:
            print(f"Training was {history.stop_reason}.", flush=True)
        errors = {
            name: 100.0 * _error_rate(model, X, Y, options.prediction_samples)
            for name, X, Y in (
                ("validation", digits.X_train[kept:], digits.Y_train[kept:]),
                ("test", digits.X_test, digits.Y_test),
            )
        }
        if options.out is not None:
            save_model(model, options.out / "model")
            text = json.dumps(_result(options, errors, history), indent=1) + "\n"
            write_whole(options.out / "results.json", text)
    if options.json:
        print(as_json(_result(options, errors, history)))
        return
    for name, error in errors.items():
        print(f"{name} error: {error:.2f}%")
    if tuple(options.hidden) in _PRINTED:
        print(f"test error in print: {_PRINTED[tuple(options.hidden)]:.2f}%")
    if options.out is not None:
        print(f"Model and results are in {options.out}")


def _train(
    options: argparse.Namespace, model: MatrixGaussianNetwork, train: Digits
) -> TrainingHistory:
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


def _result(
    options: argparse.Namespace, errors: dict[str, float], history: TrainingHistory
) -> dict[str, Any]:
    return {
        **{f"{name}_error_percent": error for name, error in errors.items()},
        "elbo_per_datum": float(history.elbo_per_datum[-_STEPS_IN_FINAL_BOUND:].mean()),
        "steps": history.num_steps,
        "stop_reason": history.stop_reason,
        "seconds": history.seconds,
        "options": {
            name: str(value) if isinstance(value, Path) else value
            for name, value in vars(options).items()
        },
    }


def _check(options: argparse.Namespace, num_rows: int) -> None:
    if options.validation_rows >= num_rows:
        raise UsageError(
            f"--validation-rows {options.validation_rows} leaves none of {num_rows} training images"
        )
    if not options.learning_rate > 0.0:
        raise UsageError(f"--learning-rate must be positive, got {options.learning_rate}")
    if options.out is not None and options.out.exists():
        raise UsageError(f"{options.out} exists; choose another --out")


def _build(options: argparse.Namespace, train: Digits) -> MatrixGaussianNetwork:
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


def _error_rate(
    model: MatrixGaussianNetwork,
    X: npt.NDArray[np.float64],
    Y: npt.NDArray[np.int64],
    num_samples: int,
) -> float:
    posterior = model.posterior(num_samples, seed=0)
    tf.random.set_seed(0)  # the likelihood draws from the global generator
    wrong = 0
    for start in range(0, len(X), _IMAGES_AT_ONCE):
        rows = slice(start, start + _IMAGES_AT_ONCE)
        probabilities, _ = posterior.predict_y(X[rows])
        wrong += int(np.sum(np.argmax(probabilities, axis=1) != Y[rows, 0]))
    return wrong / len(X)
