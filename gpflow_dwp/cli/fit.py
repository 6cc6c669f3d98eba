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
from gpflow.likelihoods import Likelihood

from gpflow_dwp.cli.callbacks import check_log, check_stopping, make_log, make_stopping
from gpflow_dwp.cli.configuration import write_configuration
from gpflow_dwp.cli.errors import UsageError, user_mistakes
from gpflow_dwp.cli.figures import write_figures
from gpflow_dwp.cli.predictions import Predictions, predict
from gpflow_dwp.cli.provenance import describe_run, list_versions
from gpflow_dwp.cli.reports import print_now, report_cells, silent
from gpflow_dwp.cli.run_directory import (
    MODEL,
    RunDescription,
    choose_directory,
    release_directory,
    write_run,
)
from gpflow_dwp.cli.scores import convert_scores, mean_log_density, score_table
from gpflow_dwp.cli.unfinished import CONFIGURATION, UnfinishedRun
from gpflow_dwp.data import (
    ColumnEncoder,
    SplitTable,
    Standardiser,
    Table,
    load_diabetes,
    read_split_table,
    split_table,
)
from gpflow_dwp.evaluation import (
    Scores,
    linear_scores,
    logistic_scores,
    sparse_gp_scores,
)
from gpflow_dwp.exceptions import NonFiniteBoundError
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
_SECONDS_BETWEEN_SAVES = 10.0

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
    validation: Table | None
    test: Table
    encoder: ColumnEncoder
    inputs: Standardiser
    target: Standardiser | None
    model: VariationalModel

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
    options = _complete(options)
    with user_mistakes():
        prepared = _prepare(options)
    try:
        _train_and_write(prepared, options)
    except BaseException as error:
        if isinstance(error, NonFiniteBoundError) or not prepared.unfinished.has_steps:
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
    train, validation, test = prepared.train, prepared.validation, prepared.test
    show = silent if options.json else print_now
    held_out = "" if validation is None else f"{len(validation.X)} validation rows, "
    show(
        f"{train.target_name}: {len(train.X)} training rows, {held_out}{len(test.X)} test rows, "
        f"{train.X.shape[1]} inputs",
    )
    scores = _baselines(prepared, options)
    protocol = _protocol(options)
    stopping = None
    if validation is not None:
        stopping = make_stopping(options, prepared.standardised(validation), protocol)
    log = make_log(options, stopping)
    history = fit(
        prepared.model,
        prepared.standardised(train),
        options.num_steps,
        batch_size=options.batch_size or PROTOCOLS[protocol].batch_size(len(train.X)),
        protocol=protocol,
        num_importance_samples=options.num_importance_samples,
        seed=options.seed,
        callbacks=[callback for callback in (stopping, log) if callback is not None],
        callback_interval=options.callback_interval,
        progress=not options.quiet,
        checkpoint_directory=prepared.unfinished.state,
        seconds_between_checkpoints=_SECONDS_BETWEEN_SAVES,
    )
    interrupted = history.stop_reason.startswith("interrupted")
    if interrupted:
        show(f"Training was {history.stop_reason}.")
    best_step = None if stopping is None else stopping.best_step
    if best_step is not None:
        show(f"The validation rows are predicted best after step {best_step}.")
    start = time.perf_counter()
    predictions = predict(
        prepared.model, prepared.inputs.transform(test.X), prepared.target, Y=test.Y
    )
    prediction_seconds = time.perf_counter() - start
    name = f"{_TITLES[options.model]}, depth {options.depth}"
    scores[name] = _score(
        prepared, history.elbo_per_datum[:best_step], history.seconds, predictions
    )
    show(score_table(scores, train.task))

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
    show(f"Model, metrics and figures are in {prepared.directory}")
    if interrupted and prepared.unfinished.has_steps:
        show(f"To go on: {_how_to_resume(prepared)}")
    if options.json:
        print(json.dumps({"directory": str(prepared.directory), **metrics}))


def _how_to_resume(prepared: _Prepared) -> str:
    return f"gpflow-dwp fit --resume {prepared.directory}"


def _read(options: argparse.Namespace) -> SplitTable:
    if options.table is None:
        if options.target is not None or options.task != "regression" or options.categorical:
            raise UsageError("--target and --task belong to a table of yours; name its CSV file")
        table = load_diabetes()
        parts = split_table(table, options.test_fraction, options.seed)
        return SplitTable(*parts, ColumnEncoder(table.feature_names))
    if options.target is None:
        raise UsageError("--target is missing: name the column to predict")
    return read_split_table(
        options.table,
        options.target,
        options.task,
        test_fraction=options.test_fraction,
        seed=options.seed,
        categorical=options.categorical,
        impute=options.impute,
    )


def _prepare(options: argparse.Namespace) -> _Prepared:
    # Figures are drawn at the end; that matplotlib is missing should be said now.
    import_optional("matplotlib", "cli")
    import_optional("yaml", "cli")
    check_log(options)
    check_stopping(options)
    split = _read(options)
    train, test, validation = split.train, split.test, None
    if options.validation_fraction is not None:
        train, validation = split_table(train, options.validation_fraction, options.seed)
    _check_training_rows(train)
    if split.cells is not None:
        report_cells("fit", split.encoder, split.cells)
    inputs = Standardiser.fit(train.X)
    target = Standardiser.fit(train.Y) if train.task == "regression" else None
    Y = train.Y if target is None else target.transform(train.Y)
    target_scale = 1.0 if target is None else float(target.scale[0])
    model = _build(options, (inputs.transform(train.X), Y), _likelihood(train), target_scale)
    if options.resume is not None:
        directory = options.resume
    else:
        directory = choose_directory(options.out, options.table, overwrite=options.overwrite)
        UnfinishedRun(directory).begin(lambda path: write_configuration(path, vars(options)))
    return _Prepared(directory, train, validation, test, split.encoder, inputs, target, model)


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
        "latent_dim": options.latent_dim or 0,
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
    choices = {name for arguments in own.values() for name in arguments}
    for name in sorted(choices - {"num_inducing", "target_scale"}):
        if name not in own[options.model] and getattr(options, name):
            raise UsageError(f"--{name.replace('_', '-')} is not for --model {options.model}")
    if options.num_importance_samples > 1 and options.model in ("DIWP", "VMG"):
        raise UsageError(f"--importance-samples must be 1 for --model {options.model}")
    if options.num_importance_samples > 1 and options.latent_dim is None:
        raise UsageError("--importance-samples are draws of latent variables: give --latent-dim")
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
    return {name: convert_scores(score, prepared.target) for name, score in scores.items()}


def _inducing_points(model: VariationalModel, X: Array, options: argparse.Namespace) -> Array:
    """Those of the model or, where it has none, distinct training rows, [M, D]."""
    if isinstance(model, DeepKernelProcess):
        points: Array = model.inducing_variable.Z.numpy()[:, : model.num_inputs]
        return points
    distinct = np.unique(X, axis=0)
    count = min(options.num_inducing, len(distinct))
    return np.random.default_rng(options.seed).choice(distinct, count, replace=False)


def _score(prepared: _Prepared, elbo: Array, seconds: float, predictions: Predictions) -> Scores:
    data = prepared.standardised(prepared.test)
    offset = 0.0 if prepared.target is None else prepared.target.log_density_offset
    return Scores(
        elbo=float(elbo[-_STEPS_IN_FINAL_BOUND:].mean()) + offset,
        log_likelihood=mean_log_density(prepared.model, data, prepared.target),
        error=predictions.error(prepared.test.Y),
        seconds=seconds,
    )


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
    if history.stop_reason.startswith("interrupted") and prepared.unfinished.has_steps:
        shutil.copytree(prepared.unfinished.folder, UnfinishedRun(directory).folder)
    train = prepared.train
    RunDescription(
        feature_names=prepared.encoder.columns,
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
        categories=dict(prepared.encoder.categories),
        fill=dict(prepared.encoder.fill),
    ).write(directory)
    (directory / "metrics.json").write_text(json.dumps(metrics, indent=1))
    offset = 0.0 if prepared.target is None else prepared.target.log_density_offset
    elbo = history.elbo_per_datum + offset
    with (directory / "history.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["step", "elbo_per_datum"])
        writer.writerows(enumerate(elbo.tolist(), start=1))
    write_figures(directory / "figures", elbo, predictions, prepared.test)
