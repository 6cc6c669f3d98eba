"""What ``gpflow-dwp fit`` does once its table is read: train, judge, write a run."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf

from gpflow_dwp.base import Array
from gpflow_dwp.cli.configuration import options_as_plain
from gpflow_dwp.cli.effects import effect_of, relevances
from gpflow_dwp.cli.errors import user_mistakes
from gpflow_dwp.cli.figures import write_figures
from gpflow_dwp.cli.fit_data import FitData
from gpflow_dwp.cli.fit_options import CompleteOptions
from gpflow_dwp.cli.fit_training import Course, choose_strategy, train
from gpflow_dwp.cli.model_choice import TITLES, build_model
from gpflow_dwp.cli.reports import (
    named_scores,
    plain,
    scores_as_text,
)
from gpflow_dwp.cli.run_directory import FIGURES, HISTORY, METRICS, MODEL, Run
from gpflow_dwp.cli.trained_run import TrainedRun, describe_model
from gpflow_dwp.evaluation import RawUnits
from gpflow_dwp.evaluation.baselines import simple_scores
from gpflow_dwp.evaluation.predictions import Judgement, judge
from gpflow_dwp.evaluation.provenance import describe_provenance, list_versions
from gpflow_dwp.files import seal
from gpflow_dwp.models import DeepKernelProcess, VariationalModel, save_model

__all__ = ["run_fit"]

_SHOWN_INPUTS = 5


def run_fit(run: Run, data: FitData, options: CompleteOptions) -> None:
    """Train on a table, judge on held-out rows, print a table of scores, write a run directory.

    :param run: Begun, or going on.
    :raises UsageError: If an option cannot be used; nothing has been trained then.
    """
    with user_mistakes():
        strategy = choose_strategy(options.devices)
        with contextlib.nullcontext() if strategy is None else strategy.scope():
            model = build_model(options, data)
    test, task = data.test, data.train.task
    show: Callable[[str], object] = str if options.json else partial(print, flush=True)
    show(data.summary)
    points = _inducing_points(data, model, options)
    rows, test_rows = data.rows, data.standardised(test)
    simple = simple_scores(rows, test_rows, points, data.likelihood, seed=options.seed)
    scores = {name: score.in_raw_units(data.target) for name, score in simple.items()}
    course = train(run, data, model, options, strategy)
    for line in course.tell():
        show(line)
    units = RawUnits(course.model, data.inputs, data.target)
    start = time.perf_counter()
    judged = judge(
        units,
        test.X,
        test.Y,
        elbo=course.elbo + data.offset,
        seconds=course.seconds,
    )
    prediction_seconds = time.perf_counter() - start
    relevance = relevances(units, data.train.X, data.encoder, options.seed)
    depth = len(course.model.layers) if options.depth == "auto" else options.depth
    scores[f"{TITLES[options.model]}, depth {depth}"] = judged.scores
    named = {name: named_scores(score, task) for name, score in scores.items()}
    show(scores_as_text(named))
    most = [f"{name} {value:.2f}" for name, value in [*relevance.items()][:_SHOWN_INPUTS]]
    show(f"Predictions change most with {', '.join(most)} (of their standard deviation)")
    metrics = plain(
        {
            "scores": named,
            "units": "those of the target" if task == "regression" else "nats, shares",
            "training_rows": len(data.train.X),
            "validation_rows": 0 if data.validation is None else len(data.validation.X),
            "test_rows": len(test.X),
            "steps": course.history.num_steps,
            "best_step": course.best_step,
            "stop_reason": course.history.stop_reason,
            "candidates": course.candidates,
            "reason": course.reason,
            "relevance": relevance,
            "prediction_seconds": prediction_seconds,
            **judged.calibration,
            "provenance": {
                "command": ["gpflow-dwp", *sys.argv[1:]],
                "seed": options.seed,
                **describe_provenance(np.dtype(gpflow.default_float()).name, _threads()),
            },
        }
    )
    goes_on = course.is_interrupted and run.has_steps
    _fill(run.work, data, course, judged, metrics, options)
    run.finish(keep_state=goes_on)
    show(f"Model, metrics and figures are in {run.directory}")
    if goes_on:
        show(f"To go on: gpflow-dwp fit --resume {run.directory}")
    if options.json:
        print(json.dumps({"directory": str(run.directory), **metrics}))


def _inducing_points(data: FitData, model: VariationalModel, options: CompleteOptions) -> Array:
    """Where a sparse GP starts: at the model's inducing points, or, without any, on distinct rows.

    :param model: An untrained one.
    """
    if isinstance(model, DeepKernelProcess):
        return model.inducing_variable.Z.numpy()[:, : model.num_inputs]
    distinct = np.unique(data.rows[0], axis=0)
    count = min(options.num_inducing or 100, len(distinct))
    return np.random.default_rng(options.seed).choice(distinct, count, replace=False)


def _threads() -> int:
    """How many TensorFlow may use: as it was told, in the program or before it, or all cores."""
    told = tf.config.threading.get_intra_op_parallelism_threads()
    before = os.environ.get("TF_NUM_INTRAOP_THREADS", "")
    if told or before.isdecimal():
        return told or int(before)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _fill(
    directory: Path,
    data: FitData,
    course: Course,
    judged: Judgement,
    metrics: dict[str, Any],
    options: CompleteOptions,
) -> None:
    """Write the files of a run."""
    save_model(course.model, directory / MODEL)
    TrainedRun(
        data.encoder,
        data.train.target_name,
        data.train.task,
        data.train.classes,
        data.inputs,
        data.target,
        options=options_as_plain("fit", options),
        versions=list_versions(),
        model=describe_model(course.model),
    ).write(directory)
    (directory / METRICS).write_text(json.dumps(seal(metrics), indent=1))
    elbo = course.history.elbo_per_datum + data.offset
    with (directory / HISTORY).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["step", "elbo_per_datum"])
        writer.writerows(enumerate(elbo.tolist(), start=1))
    column = next(iter(metrics["relevance"]))
    units = RawUnits(course.model, data.inputs, data.target)
    effect = effect_of(column, units, data.train.X, data.encoder, options.seed)
    write_figures(
        *(directory / FIGURES, elbo, judged.predictions, data.test),
        annealing_steps=course.history.kl_annealing_steps,
        effects=(column, data.encoder.categories.get(column), *effect, metrics["relevance"]),
    )
