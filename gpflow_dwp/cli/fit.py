"""``gpflow-dwp fit``: from a table to a run directory."""

from __future__ import annotations

import contextlib
import csv
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from gpflow_dwp.base import Array
from gpflow_dwp.cli.callbacks import make_log, make_stopping
from gpflow_dwp.cli.configuration import options_as_plain, write_configuration
from gpflow_dwp.cli.errors import going_on, user_mistakes
from gpflow_dwp.cli.figures import write_figures
from gpflow_dwp.cli.fit_options import CompleteOptions, FitOptions
from gpflow_dwp.cli.model_choice import TITLES, choose_protocol, complete, make_likelihood, select
from gpflow_dwp.cli.predictions import Predictions, predict
from gpflow_dwp.cli.prepared_run import PreparedRun, prepare_run
from gpflow_dwp.cli.provenance import describe_run, list_versions
from gpflow_dwp.cli.reports import as_json, finite, print_now, silent
from gpflow_dwp.cli.run_description import RunDescription
from gpflow_dwp.cli.run_directory import FIGURES, HISTORY, METRICS, MODEL, write_run
from gpflow_dwp.cli.scores import convert_scores, mean_log_density, score_table, scores_by_name
from gpflow_dwp.cli.unfinished import CONFIGURATION
from gpflow_dwp.evaluation import (
    Scores,
    expected_calibration_error,
    explained_variance,
    linear_scores,
    logistic_scores,
    rmse,
    sparse_gp_scores,
)
from gpflow_dwp.exceptions import NonFiniteBoundError
from gpflow_dwp.files import seal
from gpflow_dwp.lab.comparison import LEVELS, MODELS, quantile_crps
from gpflow_dwp.models import (
    DeepKernelProcess,
    VariationalModel,
    save_model,
)
from gpflow_dwp.objectives import Estimator
from gpflow_dwp.selection import Candidate, Selection
from gpflow_dwp.training import TrainingHistory, fit

__all__ = ["run_fit"]

_STEPS_IN_FINAL_BOUND = 100
_LEAST_PROBABILITY = 1e-15
_SECONDS_BETWEEN_SAVES = 10.0


def run_fit(options: FitOptions) -> int:
    """Train on a table, judge on held-out rows, print a table of scores, write a run directory.

    Ctrl-C leaves no model but a run that can go on.

    :param options: Of ``gpflow-dwp fit``.
    :return: The exit code.
    :raises UsageError: If the input cannot be used; nothing has been trained then.
    """
    options = complete(options)
    with contextlib.ExitStack() as holding:
        with user_mistakes():
            prepared = prepare_run(options, holding)
        try:
            _train_and_write(prepared, options)
        except BaseException as error:
            begun_here = options.resume is None and not prepared.unfinished.has_steps
            if isinstance(error, NonFiniteBoundError) or begun_here:
                prepared.unfinished.discard(options.log)
                raise
            with going_on(f"{_how_to_resume(prepared)} goes on"):
                raise
    return 0


def _train_and_write(prepared: PreparedRun, options: CompleteOptions) -> None:
    train, validation, test = prepared.train, prepared.validation, prepared.test
    show = silent if options.json else print_now
    held_out = "" if validation is None else f"{len(validation.X)} validation rows, "
    show(
        f"{train.target_name}: {len(train.X)} training rows, {held_out}{len(test.X)} test rows, "
        f"{train.X.shape[1]} inputs",
    )
    scores = _baselines(prepared, options)
    candidates: tuple[Candidate, ...] = ()
    best_step = None
    if options.depth == "auto":
        selection = select(
            options, prepared.standardised(prepared.train), make_likelihood(prepared.train)
        )
        candidates, history = selection.candidates, selection.history
        prepared = prepared._replace(model=selection.model)
        elbo = selection.best.elbo / len(train.X)
        show(_describe_choice(selection))
    else:
        history, best_step = _train(prepared, options)
        elbo = float(history.elbo_per_datum[:best_step][-_STEPS_IN_FINAL_BOUND:].mean())
    interrupted = history.stop_reason.startswith("interrupted")
    if interrupted:
        show(f"Training was {history.stop_reason}.")
    if best_step is not None:
        show(f"The validation rows are predicted best after step {best_step}.")
    start = time.perf_counter()
    predictions = predict(
        prepared.model, prepared.inputs.transform(test.X), prepared.target, Y=test.Y
    )
    prediction_seconds = time.perf_counter() - start
    seconds = sum(candidate.seconds for candidate in candidates) or history.seconds
    depth = len(prepared.model.layers) if candidates else options.depth
    scores[f"{TITLES[options.model]}, depth {depth}"] = _score(prepared, elbo, seconds, predictions)
    show(score_table(scores, train.task))

    metrics = {
        "scores": scores_by_name(scores, train.task),
        "units": "those of the target" if train.task == "regression" else "nats, shares",
        "training_rows": len(train.X),
        "validation_rows": 0 if validation is None else len(validation.X),
        "test_rows": len(test.X),
        "steps": history.num_steps,
        "best_step": best_step,
        "stop_reason": history.stop_reason,
        "candidates": finite([candidate._asdict() for candidate in candidates]),
        "prediction_seconds": prediction_seconds,
        **predictions.calibration(test.Y),
        "provenance": describe_run(options),
    }
    can_go_on = interrupted and prepared.unfinished.has_steps

    def fill(path: Path) -> None:
        if can_go_on:
            prepared.unfinished.copy_to(path)
        _fill(path, prepared, history, predictions, metrics, options)

    write_run(prepared.directory, fill)
    show(f"Model, metrics and figures are in {prepared.directory}")
    if can_go_on:
        show(f"To go on: {_how_to_resume(prepared)}")
    if options.json:
        print(as_json({"directory": str(prepared.directory), **metrics}))


def _train(prepared: PreparedRun, options: CompleteOptions) -> tuple[TrainingHistory, int | None]:
    """Train the model in place; return the course, and the step that early stopping chose."""
    protocol = choose_protocol(options)
    stopping = None
    if prepared.validation is not None:
        held_out = prepared.standardised(prepared.validation)
        stopping = make_stopping(options, prepared.model, held_out, protocol)
    log = make_log(options, stopping)
    # What a run finds that goes on, such as its log, is the user's.
    finding = contextlib.nullcontext() if options.resume is None else user_mistakes()
    with finding:
        history = fit(
            prepared.model,
            prepared.standardised(prepared.train),
            options.num_steps,
            batch_size=options.batch_size,
            protocol=protocol,
            estimator=Estimator(options.num_importance_samples),
            seed=options.seed,
            callbacks=[callback for callback in (stopping, log) if callback is not None],
            callback_interval=options.callback_interval,
            progress=not options.quiet,
            checkpoint_directory=prepared.unfinished.state,
            seconds_between_checkpoints=_SECONDS_BETWEEN_SAVES,
        )
    return history, None if stopping is None else stopping.best_step


def _describe_choice(selection: Selection) -> str:
    """Which model has the highest bound, in a line."""
    best = selection.best
    warp = ", warped" if best.warp else ""
    noise = ", Student's noise" if best.noise == "student_t" else ""
    deepest = max(candidate.depth for candidate in selection.candidates)
    chosen = f"{best.kernel}{warp}{noise}"
    return f"Of depths 1 to {deepest} depth {best.depth} has the highest bound: {chosen}"


def _how_to_resume(prepared: PreparedRun) -> str:
    return f"gpflow-dwp fit --resume {prepared.directory}"


def _baselines(prepared: PreparedRun, options: CompleteOptions) -> dict[str, Scores]:
    train, test = prepared.standardised(prepared.train), prepared.standardised(prepared.test)
    seed = options.seed
    points = _inducing_points(prepared.model, train[0], options)
    if prepared.target is None:
        scores = {
            "logistic regression": logistic_scores(train, test),
            "gradient boosting": _boosting_scores(prepared, seed),
            "sparse GP (GPflow's SVGP)": sparse_gp_scores(
                train, test, points, make_likelihood(prepared.train), seed=seed
            ),
        }
    else:
        scores = {
            "linear regression": linear_scores(train, test),
            "gradient boosting": _boosting_scores(prepared, seed),
            "sparse GP (GPflow's SGPR)": sparse_gp_scores(train, test, points),
        }
    return {name: convert_scores(score, prepared.target) for name, score in scores.items()}


def _boosting_scores(prepared: PreparedRun, seed: int) -> Scores:
    """Scores of what ``gpflow-dwp compare`` calls ``hist-gb``, in the model's units."""
    train, test = prepared.standardised(prepared.train), prepared.standardised(prepared.test)
    start = time.perf_counter()
    predict = MODELS["hist-gb"].fits[prepared.train.task](train[0], train[1][:, 0], seed)
    seconds = time.perf_counter() - start
    predicted, targets = predict(test[0]), test[1][:, 0]
    if prepared.target is None:
        probabilities = predicted[np.arange(len(targets)), targets.astype(int)]
        log_likelihood = float(np.log(np.maximum(probabilities, _LEAST_PROBABILITY)).mean())
        error = float(np.mean(predicted.argmax(axis=1) != targets))
        ece = expected_calibration_error(predicted, targets.astype(int))
        return Scores(None, log_likelihood, error, seconds, ece=ece)
    return Scores(
        None,
        float(predicted.log_density(targets).mean()),
        rmse(targets, predicted.mean()),
        seconds,
        crps=quantile_crps(targets, predicted.quantiles(LEVELS)),
        r2=explained_variance(targets, predicted.mean()),
    )


def _inducing_points(model: VariationalModel, X: Array, options: CompleteOptions) -> Array:
    """Those of the model or, where it has none, distinct training rows, [M, D]."""
    if isinstance(model, DeepKernelProcess):
        points: Array = model.inducing_variable.Z.numpy()[:, : model.num_inputs]
        return points
    distinct = np.unique(X, axis=0)
    count = min(options.num_inducing or 100, len(distinct))
    return np.random.default_rng(options.seed).choice(distinct, count, replace=False)


def _score(prepared: PreparedRun, elbo: float, seconds: float, predictions: Predictions) -> Scores:
    data = prepared.standardised(prepared.test)
    offset = 0.0 if prepared.target is None else prepared.target.log_density_offset
    return Scores(
        elbo=elbo + offset,
        log_likelihood=mean_log_density(prepared.model, data, prepared.target),
        error=predictions.error(prepared.test.Y),
        seconds=seconds,
        **predictions.scores(prepared.test.Y),
    )


def _fill(
    directory: Path,
    prepared: PreparedRun,
    history: TrainingHistory,
    predictions: Predictions,
    metrics: dict[str, Any],
    options: CompleteOptions,
) -> None:
    save_model(prepared.model, directory / MODEL)
    write_configuration(directory / CONFIGURATION, "fit", options)
    train = prepared.train
    RunDescription(
        feature_names=prepared.encoder.columns,
        target_name=train.target_name,
        task=train.task,
        classes=train.classes,
        inputs=prepared.inputs.to_dict(),
        target=None if prepared.target is None else prepared.target.to_dict(),
        options=options_as_plain("fit", options),
        versions=list_versions(),
        categories=dict(prepared.encoder.categories),
        fill=dict(prepared.encoder.fill),
    ).write(directory)
    (directory / METRICS).write_text(json.dumps(seal(metrics), indent=1))
    offset = 0.0 if prepared.target is None else prepared.target.log_density_offset
    elbo = history.elbo_per_datum + offset
    with (directory / HISTORY).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["step", "elbo_per_datum"])
        writer.writerows(enumerate(elbo.tolist(), start=1))
    write_figures(
        *(directory / FIGURES, elbo, predictions, prepared.test),
        annealing_steps=history.kl_annealing_steps,
    )
