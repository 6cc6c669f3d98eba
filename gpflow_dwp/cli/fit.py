"""``gpflow-dwp fit``: from a table to a run directory."""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import gpflow
import numpy as np
import numpy.typing as npt
import tensorflow as tf
from gpflow.likelihoods import Likelihood
from tabulate import tabulate

from gpflow_dwp.cli.callbacks import check_log, make_log, make_stopping
from gpflow_dwp.cli.configuration import write_configuration
from gpflow_dwp.cli.errors import UsageError, user_mistakes
from gpflow_dwp.cli.figures import write_figures
from gpflow_dwp.cli.predictions import Predictions, predict
from gpflow_dwp.cli.provenance import describe_run, list_versions
from gpflow_dwp.cli.run_directory import (
    MODEL,
    RunDescription,
    choose_directory,
    release_directory,
    write_run,
)
from gpflow_dwp.cli.unfinished import CONFIGURATION, UnfinishedRun
from gpflow_dwp.data import Standardiser, Table, load_diabetes, read_table, split_table
from gpflow_dwp.evaluation import (
    Scores,
    linear_scores,
    logistic_scores,
    sparse_gp_scores,
)
from gpflow_dwp.exceptions import NonFiniteBoundError
from gpflow_dwp.models import (
    DeepKernelProcess,
    build_deep_gaussian_process,
    build_deep_inverse_wishart_process,
    build_deep_wishart_process,
    save_model,
)
from gpflow_dwp.optional import import_optional
from gpflow_dwp.training import TrainingHistory, fit

__all__ = ["run_fit"]

Array = npt.NDArray[np.float64]

_LARGEST_FULL_BATCH = 2_000
_BATCH_SIZE = 1_000
_STEPS_IN_FINAL_BOUND = 100

_BUILDERS: dict[str, Callable[..., DeepKernelProcess]] = {
    "DWP": build_deep_wishart_process,
    "DGP": build_deep_gaussian_process,
    "DIWP": build_deep_inverse_wishart_process,
}
_TITLES = {
    "DWP": "deep Wishart process",
    "DGP": "deep GP",
    "DIWP": "deep inverse Wishart process",
}


class _Prepared(NamedTuple):
    """Everything that a run needs, checked before anything is trained."""

    directory: Path
    train: Table
    validation: Table | None
    test: Table
    inputs: Standardiser
    target: Standardiser | None
    model: DeepKernelProcess

    def standardised(self, table: Table) -> tuple[Array, Array]:
        """X and Y in the model's units."""
        Y = table.Y if self.target is None else self.target.transform(table.Y)
        return self.inputs.transform(table.X), Y

    @property
    def unfinished(self) -> UnfinishedRun:
        """What goes on if this run is cut off."""
        return UnfinishedRun(self.directory)


def run_fit(options: argparse.Namespace) -> int:
    """Train on a table, judge on held-out rows, print a table of scores, write a run directory.

    :param options: As ``gpflow-dwp fit`` parses them.
    :return: The exit code: 0, or 130 for Ctrl-C that leaves no model but a run that can go on.
    :raises UsageError: If the input cannot be used; nothing has been trained then.
    """
    with user_mistakes():
        prepared = _prepare(options)
    try:
        _train_and_write(prepared, options)
    except BaseException as error:
        if isinstance(error, NonFiniteBoundError) or not prepared.unfinished.can_go_on:
            prepared.unfinished.discard()
            release_directory(prepared.directory)
        elif isinstance(error, KeyboardInterrupt):
            print(
                f"gpflow-dwp fit: interrupted; {_how_to_resume(prepared)} goes on", file=sys.stderr
            )
            return 130
        raise
    return 0


def _train_and_write(prepared: _Prepared, options: argparse.Namespace) -> None:
    train, test = prepared.train, prepared.test
    validation = prepared.validation
    held_out = "" if validation is None else f"{len(validation.X)} validation rows, "
    print(
        f"{train.target_name}: {len(train.X)} training rows, {held_out}{len(test.X)} test rows, "
        f"{train.X.shape[1]} inputs",
        flush=True,
    )
    scores = _baselines(prepared, options.seed)
    stopping = None
    if validation is not None:
        stopping = make_stopping(options, prepared.standardised(validation))
    log = make_log(options, stopping)
    history = fit(
        prepared.model,
        prepared.standardised(train),
        options.num_steps,
        batch_size=_batch_size(options, len(train.X)),
        seed=options.seed,
        callbacks=[callback for callback in (stopping, log) if callback is not None],
        callback_interval=options.callback_interval,
        progress=not options.quiet,
        checkpoint_directory=prepared.unfinished.state,
    )
    interrupted = history.stop_reason.startswith("interrupted")
    if interrupted:
        print(f"Training was {history.stop_reason}.", flush=True)
    best_step = None if stopping is None else stopping.best_step
    if best_step is not None:
        print(f"The validation rows are predicted best after step {best_step}.", flush=True)
    start = time.perf_counter()
    predictions = predict(
        prepared.model, prepared.inputs.transform(test.X), prepared.target, Y=test.Y
    )
    prediction_seconds = time.perf_counter() - start
    name = f"{_TITLES[options.model]}, depth {options.depth}"
    scores[name] = _score(
        prepared, history.elbo_per_datum[:best_step], history.seconds, predictions
    )
    print(_score_table(scores, train.task))

    metrics = {
        "scores": {model: score._asdict() for model, score in scores.items()},
        "units": "those of the target" if train.task == "regression" else "nats, shares",
        "training_rows": len(train.X),
        "validation_rows": 0 if validation is None else len(validation.X),
        "test_rows": len(test.X),
        "steps": history.num_steps,
        "best_step": best_step,
        "stop_reason": history.stop_reason,
        "prediction_seconds": prediction_seconds,
        **predictions.calibration(test.Y),
        "provenance": describe_run(options),
    }
    write_run(
        prepared.directory,
        lambda path: _fill(path, prepared, history, predictions, metrics, options),
    )
    print(f"Model, metrics and figures are in {prepared.directory}")
    if interrupted and prepared.unfinished.can_go_on:
        print(f"To go on: {_how_to_resume(prepared)}")


def _how_to_resume(prepared: _Prepared) -> str:
    return f"gpflow-dwp fit --resume {prepared.directory}"


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
    import_optional("yaml", "cli")
    check_log(options)
    train, test = split_table(table, options.test_fraction, options.seed)
    validation = None
    if options.validation_fraction is not None:
        train, validation = split_table(train, options.validation_fraction, options.seed)
    _check_training_rows(train)
    inputs = Standardiser.fit(train.X)
    target = Standardiser.fit(train.Y) if train.task == "regression" else None
    Y = train.Y if target is None else target.transform(train.Y)
    model = _build(options, (inputs.transform(train.X), Y), _likelihood(train))
    if options.resume is not None:
        directory = options.resume
    else:
        directory = choose_directory(options.out, options.table, overwrite=options.overwrite)
        UnfinishedRun(directory).begin(lambda path: write_configuration(path, vars(options)))
    return _Prepared(directory, train, validation, test, inputs, target, model)


def _build(
    options: argparse.Namespace, data: tuple[Array, Array], likelihood: Likelihood | None
) -> DeepKernelProcess:
    own: dict[str, dict[str, Any]] = {
        "DWP": {
            "posterior": options.posterior or "AB",
            "whiten": options.whiten,
            "width": options.width,
        },
        "DGP": {"width": options.width},
        "DIWP": {},
    }
    for name in own["DWP"]:
        if name not in own[options.model] and getattr(options, name):
            raise UsageError(f"--{name} is not for --model {options.model}")
    return _BUILDERS[options.model](
        data,
        options.depth,
        num_inducing=options.num_inducing,
        inducing=options.inducing,
        kernel=options.kernel,
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


def _batch_size(options: argparse.Namespace, num_rows: int) -> int | None:
    if options.batch_size is not None or num_rows <= _LARGEST_FULL_BATCH:
        return options.batch_size
    return _BATCH_SIZE


def _baselines(prepared: _Prepared, seed: int) -> dict[str, Scores]:
    train, test = prepared.standardised(prepared.train), prepared.standardised(prepared.test)
    points = prepared.model.inducing_variable.Z.numpy()
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


def _in_raw_units(scores: Scores, target: Standardiser | None) -> Scores:
    if target is None:
        return scores
    offset = target.log_density_offset
    return scores._replace(
        elbo=None if scores.elbo is None else scores.elbo + offset,
        log_likelihood=scores.log_likelihood + offset,
        error=scores.error * float(target.scale[0]),
    )


def _score(prepared: _Prepared, elbo: Array, seconds: float, predictions: Predictions) -> Scores:
    X, Y = prepared.standardised(prepared.test)
    tf.random.set_seed(0)  # some likelihoods draw from the global generator
    log_density = prepared.model.predict_log_density((X, Y))
    offset = 0.0 if prepared.target is None else prepared.target.log_density_offset
    return Scores(
        elbo=float(elbo[-_STEPS_IN_FINAL_BOUND:].mean()) + offset,
        log_likelihood=float(tf.reduce_mean(log_density)) + offset,
        error=predictions.error(prepared.test.Y),
        seconds=seconds,
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


def _fill(
    directory: Path,
    prepared: _Prepared,
    history: TrainingHistory,
    predictions: Predictions,
    metrics: dict[str, Any],
    options: argparse.Namespace,
) -> None:
    save_model(prepared.model, directory / MODEL)
    write_configuration(directory / CONFIGURATION, vars(options))
    if history.stop_reason.startswith("interrupted") and prepared.unfinished.can_go_on:
        shutil.copytree(prepared.unfinished.folder, UnfinishedRun(directory).folder)
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
        versions=list_versions(),
    ).write(directory)
    (directory / "metrics.json").write_text(json.dumps(metrics, indent=1))
    offset = 0.0 if prepared.target is None else prepared.target.log_density_offset
    elbo = history.elbo_per_datum + offset
    with (directory / "history.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["step", "elbo_per_datum"])
        writer.writerows(enumerate(elbo.tolist(), start=1))
    write_figures(directory / "figures", elbo, predictions, prepared.test)
