"""``gpflow-dwp fit``: from a table to a run directory."""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import gpflow
import numpy as np
import numpy.typing as npt
import tensorflow as tf
from gpflow.likelihoods import Likelihood
from tabulate import tabulate

from gpflow_dwp.cli.errors import UsageError, user_mistakes
from gpflow_dwp.cli.figures import write_figures
from gpflow_dwp.cli.predictions import Predictions, predict
from gpflow_dwp.cli.run_directory import (
    MODEL,
    RunDescription,
    choose_directory,
    release_directory,
    write_run,
)
from gpflow_dwp.data import Standardiser, Table, load_diabetes, read_table, split_table
from gpflow_dwp.evaluation import (
    Scores,
    linear_scores,
    logistic_scores,
    sparse_gp_scores,
)
from gpflow_dwp.models import (
    DeepKernelProcess,
    VariationalModel,
    build_deep_gaussian_process,
    build_deep_inverse_wishart_process,
    build_deep_wishart_process,
    build_matrix_gaussian_network,
    save_model,
)
from gpflow_dwp.optional import import_optional
from gpflow_dwp.training import PROTOCOLS, ProtocolName, TrainingHistory, fit

__all__ = ["run_fit"]

Array = npt.NDArray[np.float64]

_STEPS_IN_FINAL_BOUND = 100

_BUILDERS: dict[str, Callable[..., VariationalModel]] = {
    "DWP": build_deep_wishart_process,
    "DGP": build_deep_gaussian_process,
    "DIWP": build_deep_inverse_wishart_process,
    "VMG": build_matrix_gaussian_network,
}
_TITLES = {
    "DWP": "deep Wishart process",
    "DGP": "deep GP",
    "DIWP": "deep inverse Wishart process",
    "VMG": "matrix-Gaussian network",
}
_STEPS = {"fast": 3_000, "vmg": 20_000}


class _Prepared(NamedTuple):
    """Everything that a run needs, checked before anything is trained."""

    directory: Path
    train: Table
    test: Table
    inputs: Standardiser
    target: Standardiser | None
    model: VariationalModel

    def standardised(self, table: Table) -> tuple[Array, Array]:
        """X and Y in the model's units."""
        Y = table.Y if self.target is None else self.target.transform(table.Y)
        return self.inputs.transform(table.X), Y


def run_fit(options: argparse.Namespace) -> None:
    """Train on a table, judge on held-out rows, print a table of scores, write a run directory.

    :param options: As ``gpflow-dwp fit`` parses them.
    :raises UsageError: If the input cannot be used; nothing has been trained then.
    """
    options = _complete(options)
    with user_mistakes():
        prepared = _prepare(options)
    try:
        _train_and_write(prepared, options)
    except BaseException:
        release_directory(prepared.directory)
        raise


def _train_and_write(prepared: _Prepared, options: argparse.Namespace) -> None:
    train, test = prepared.train, prepared.test
    print(
        f"{train.target_name}: {len(train.X)} training rows, {len(test.X)} test rows, "
        f"{train.X.shape[1]} inputs",
        flush=True,
    )
    scores = _baselines(prepared, options)
    history = fit(
        prepared.model,
        prepared.standardised(train),
        options.num_steps,
        batch_size=options.batch_size or PROTOCOLS[_protocol(options)].batch_size(len(train.X)),
        protocol=_protocol(options),
        seed=options.seed,
        progress=not options.quiet,
    )
    if history.num_steps < options.num_steps:
        print(f"Training was {history.stop_reason}.", flush=True)
    start = time.perf_counter()
    predictions = predict(
        prepared.model, prepared.inputs.transform(test.X), prepared.target, Y=test.Y
    )
    prediction_seconds = time.perf_counter() - start
    name = f"{_TITLES[options.model]}, depth {options.depth}"
    scores[name] = _score(prepared, history, predictions)
    print(_score_table(scores, train.task))

    metrics = {
        "scores": {model: score._asdict() for model, score in scores.items()},
        "units": "those of the target" if train.task == "regression" else "nats, shares",
        "training_rows": len(train.X),
        "test_rows": len(test.X),
        "steps": history.num_steps,
        "stop_reason": history.stop_reason,
        "prediction_seconds": prediction_seconds,
        **predictions.calibration(test.Y),
        "provenance": _provenance(options),
    }
    write_run(
        prepared.directory,
        lambda path: _fill(path, prepared, history, predictions, metrics, options),
    )
    print(f"Model, metrics and figures are in {prepared.directory}")


def _prepare(options: argparse.Namespace) -> _Prepared:
    if options.table is None:
        if options.target is not None or options.task != "regression":
            raise UsageError("--target and --task belong to a table of yours; name its CSV file")
        table = load_diabetes()
    else:
        if options.target is None:
            raise UsageError("--target is missing: name the column to predict")
        table = read_table(options.table, options.target, options.task)
    # Figures are drawn at the end; that matplotlib is missing should be said now.
    import_optional("matplotlib", "cli")
    train, test = split_table(table, options.test_fraction, options.seed)
    _check_training_rows(train)
    inputs = Standardiser.fit(train.X)
    target = Standardiser.fit(train.Y) if train.task == "regression" else None
    Y = train.Y if target is None else target.transform(train.Y)
    data = inputs.transform(train.X), Y
    target_scale = 1.0 if target is None else float(target.scale[0])
    model = _build(options, data, _likelihood(train), target_scale)
    directory = choose_directory(options.out, options.table, overwrite=options.overwrite)
    return _Prepared(directory, train, test, inputs, target, model)


def _protocol(options: argparse.Namespace) -> ProtocolName:
    return "vmg" if options.model == "VMG" else "fast"


def _complete(options: argparse.Namespace) -> argparse.Namespace:
    """Fill in what depends on the model where the user left it open."""
    protocol = _protocol(options)
    defaults = {"num_steps": _STEPS[protocol], "num_samples": PROTOCOLS[protocol].num_samples}
    chosen = {name: value for name, value in vars(options).items() if value is not None}
    return argparse.Namespace(**{**vars(options), **defaults, **chosen})


def _build(
    options: argparse.Namespace,
    data: tuple[Array, Array],
    likelihood: Likelihood | None,
    target_scale: float,
) -> VariationalModel:
    process = {
        "num_inducing": options.num_inducing,
        "inducing": options.inducing or "subset",
        "kernel": options.kernel or "SquaredExponential",
    }
    wishart = {"posterior": options.posterior or "AB", "whiten": options.whiten}
    own: dict[str, dict[str, Any]] = {
        "DWP": {**process, **wishart, "width": options.width},
        "DGP": {**process, "width": options.width},
        "DIWP": process,
        "VMG": {
            "width": options.width or 50,
            "num_pseudo_data": options.num_pseudo_data or 10,
            "target_scale": target_scale,
        },
    }
    for name in ("posterior", "whiten", "kernel", "width", "num_pseudo_data", "inducing"):
        if name not in own[options.model] and getattr(options, name):
            raise UsageError(f"--{name.replace('_', '-')} is not for --model {options.model}")
    return _BUILDERS[options.model](
        data,
        options.depth,
        likelihood=likelihood,
        num_samples=options.num_samples,
        seed=options.seed,
        **own[options.model],
    )


def _check_training_rows(train: Table) -> None:
    """Refuse rows that have lost a class, or all variation of the target, to the test rows."""
    values = np.unique(train.Y)
    if len(values) < (2 if train.classes is None else len(train.classes)):
        what = "one value" if train.classes is None else f"{len(values)} of the classes"
        raise UsageError(
            f"the {len(train.X)} training rows hold {what} only of {train.target_name!r}: "
            "choose another --test-fraction or --seed"
        )


def _likelihood(table: Table) -> Likelihood | None:
    if table.classes is None:
        return None
    if len(table.classes) == 2:
        return gpflow.likelihoods.Bernoulli()
    return gpflow.likelihoods.Softmax(len(table.classes))


def _baselines(prepared: _Prepared, options: argparse.Namespace) -> dict[str, Scores]:
    train, test = prepared.standardised(prepared.train), prepared.standardised(prepared.test)
    seed = options.seed
    points = _inducing_points(prepared.model, train[0], options)
    if prepared.target is None:
        scores = {
            "logistic regression": logistic_scores(train, test),
            "sparse GP (GPflow's SVGP)": sparse_gp_scores(
                train, test, points, _likelihood(prepared.train), seed=seed
            ),
        }
    else:
        scores = {
            "linear regression": linear_scores(train, test),
            "sparse GP (GPflow's SGPR)": sparse_gp_scores(train, test, points),
        }
    return {name: _in_raw_units(score, prepared.target) for name, score in scores.items()}


def _inducing_points(model: VariationalModel, X: Array, options: argparse.Namespace) -> Array:
    """Those of the model or, where it has none, distinct training rows, [M, D]."""
    if isinstance(model, DeepKernelProcess):
        points: Array = model.inducing_variable.Z.numpy()
        return points
    distinct = np.unique(X, axis=0)
    count = min(options.num_inducing, len(distinct))
    return np.random.default_rng(options.seed).choice(distinct, count, replace=False)


def _in_raw_units(scores: Scores, target: Standardiser | None) -> Scores:
    if target is None:
        return scores
    offset = target.log_density_offset
    return scores._replace(
        elbo=None if scores.elbo is None else scores.elbo + offset,
        log_likelihood=scores.log_likelihood + offset,
        error=scores.error * float(target.scale[0]),
    )


def _score(prepared: _Prepared, history: TrainingHistory, predictions: Predictions) -> Scores:
    X, Y = prepared.standardised(prepared.test)
    tf.random.set_seed(0)  # some likelihoods draw from the global generator
    log_density = prepared.model.predict_log_density((X, Y))
    offset = 0.0 if prepared.target is None else prepared.target.log_density_offset
    return Scores(
        elbo=float(history.elbo_per_datum[-_STEPS_IN_FINAL_BOUND:].mean()) + offset,
        log_likelihood=float(tf.reduce_mean(log_density)) + offset,
        error=predictions.error(prepared.test.Y),
        seconds=history.seconds,
    )


def _score_table(scores: dict[str, Scores], task: str) -> str:
    error = "test RMSE" if task == "regression" else "test error rate"
    rows = [
        [
            name,
            "-" if score.elbo is None else f"{score.elbo:.3f}",
            *(
                f"{value:.{digits}f}"
                for value, digits in (
                    (score.log_likelihood, 3),
                    (score.error, 3),
                    (score.seconds, 1),
                )
            ),
        ]
        for name, score in scores.items()
    ]
    headers = ["model", "ELBO per datum", "test log-likelihood", error, "seconds"]
    return tabulate(rows, headers, disable_numparse=True, colalign=["left"] + ["right"] * 4)


def _provenance(options: argparse.Namespace) -> dict[str, Any]:
    return {
        "command": ["gpflow-dwp", *sys.argv[1:]],
        "seed": options.seed,
        "dtype": np.dtype(gpflow.default_float()).name,
        "threads": tf.config.threading.get_intra_op_parallelism_threads() or os.cpu_count(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "versions": _versions(),
    }


def _versions() -> dict[str, str]:
    packages = ("gpflow-dwp", "gpflow", "tensorflow", "tensorflow-probability", "numpy")
    return {package: version(package) for package in packages}


def _fill(
    directory: Path,
    prepared: _Prepared,
    history: TrainingHistory,
    predictions: Predictions,
    metrics: dict[str, Any],
    options: argparse.Namespace,
) -> None:
    save_model(prepared.model, directory / MODEL)
    train = prepared.train
    RunDescription(
        feature_names=train.feature_names,
        target_name=train.target_name,
        task=train.task,
        classes=train.classes,
        inputs=prepared.inputs.to_dict(),
        target=None if prepared.target is None else prepared.target.to_dict(),
        options={
            name: str(value) if isinstance(value, Path) else value
            for name, value in vars(options).items()
        },
        versions=_versions(),
    ).write(directory)
    (directory / "metrics.json").write_text(json.dumps(metrics, indent=1))
    offset = 0.0 if prepared.target is None else prepared.target.log_density_offset
    elbo = history.elbo_per_datum + offset
    with (directory / "history.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["step", "elbo_per_datum"])
        writer.writerows(enumerate(elbo.tolist(), start=1))
    write_figures(directory / "figures", elbo, predictions, prepared.test)
