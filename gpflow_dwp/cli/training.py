"""What ``gpflow-dwp fit`` does once its table is read: train, judge, write a run."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import gpflow
import numpy as np
import tensorflow as tf
from tabulate import tabulate

from gpflow_dwp import matrix_gaussian, models
from gpflow_dwp.cli.errors import UsageError, user_mistakes
from gpflow_dwp.cli.figures import relevances, write_figures
from gpflow_dwp.cli.fit import FitData
from gpflow_dwp.cli.options import FitOptions
from gpflow_dwp.cli.reports import named_scores, plain, scores_as_text
from gpflow_dwp.cli.runs import HISTORY, METRICS, MODEL, Run, TrainedRun, describe_model
from gpflow_dwp.evaluation import RawUnits
from gpflow_dwp.evaluation.baselines import simple_scores
from gpflow_dwp.evaluation.predictions import judge
from gpflow_dwp.evaluation.provenance import describe_provenance, list_versions
from gpflow_dwp.files import seal
from gpflow_dwp.models import VariationalModel, save_model
from gpflow_dwp.selection import Candidate, Selection, select_model
from gpflow_dwp.training import PROTOCOLS, EarlyStopping, TrainingHistory, fit
from gpflow_dwp.training.progress import bounds_in_raw_units
from gpflow_dwp.training.protocol import ProtocolName

__all__ = ["run_fit"]

_BUILDERS: dict[str, tuple[str, Callable[..., VariationalModel]]] = {
    "DWP": ("deep Wishart process", models.build_deep_wishart_process),
    "DGP": ("deep GP", models.build_deep_gaussian_process),
    "DIWP": ("deep inverse Wishart process", models.build_deep_inverse_wishart_process),
    "VMG": ("matrix-Gaussian network", matrix_gaussian.build_matrix_gaussian_network),
}
"""What tables of scores call each model, and what builds it."""
_PATIENCE = 10
_STEPS_IN_FINAL_BOUND = 100
_SECONDS_BETWEEN_SAVES = 10.0
_SHOWN_INPUTS = 5


class _Trained(NamedTuple):
    """What training led to.

    :param elbo: The bound per row, in the model's units.
    :param seconds: That all models took.
    :param facts: What more there is to be kept of it.
    :param lines: What is said of it.
    """

    model: VariationalModel
    elbo: float
    history: TrainingHistory
    seconds: float
    facts: dict[str, Any]
    lines: list[str]


def run_fit(run: Run, data: FitData, options: FitOptions) -> None:
    """Train on a table, judge on held-out rows, print a table of scores, write a run directory."""
    with user_mistakes():
        strategy = _choose_strategy(options.devices)
        with contextlib.nullcontext() if strategy is None else strategy.scope():
            model = _build_model(options, data)
    test, task = data.test, data.train.task
    show: Callable[[str], object] = str if options.json else partial(print, flush=True)
    show(data.summary)
    rows = data.standardised(data.train)
    distinct = np.unique(rows[0], axis=0)
    points = np.random.default_rng(options.seed).choice(
        distinct, min(options.num_inducing or 100, len(distinct)), replace=False
    )
    simple = simple_scores(
        rows, data.standardised(test), points, data.likelihood, seed=options.seed
    )
    with bounds_in_raw_units(data.offset):
        if options.depth == "auto":
            trained = _choose(data, options)
        else:
            trained = _train(run, data, model, options, strategy)
    for line in trained.lines:
        show(line)
    units = RawUnits(trained.model, data.inputs, data.target)
    start = time.perf_counter()
    elbo = trained.elbo + data.offset
    judged = judge(units, test.X, test.Y, elbo=elbo, seconds=trained.seconds)
    prediction_seconds = time.perf_counter() - start
    relevance = relevances(units, data.train.X, data.encoder, options.seed)
    title = f"{_BUILDERS[options.model][0]}, depth {len(trained.model.layers)}"
    scores = {
        name: named_scores(score, task)
        for name, score in [
            *((name, score.in_raw_units(data.target)) for name, score in simple.items()),
            (title, judged.scores),
        ]
    }
    show(scores_as_text(scores))
    most = [f"{name} {value:.2f}" for name, value in [*relevance.items()][:_SHOWN_INPUTS]]
    show(f"Predictions change most with {', '.join(most)} (of their standard deviation)")
    metrics = plain(
        {
            "scores": scores,
            "training_rows": len(data.train.X),
            "validation_rows": 0 if data.validation is None else len(data.validation.X),
            "test_rows": len(test.X),
            "steps": trained.history.num_steps,
            "stop_reason": trained.history.stop_reason,
            **trained.facts,
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
    save_model(trained.model, run.work / MODEL)
    TrainedRun(
        data.encoder,
        data.train.target_name,
        data.train.classes,
        data.inputs,
        data.target,
        {
            name: str(value) if isinstance(value, Path) else value
            for name, value in asdict(options).items()
        },
        list_versions(),
        describe_model(trained.model),
    ).write(run.work)
    (run.work / METRICS).write_text(json.dumps(seal(metrics), indent=1))
    bounds = trained.history.elbo_per_datum + data.offset
    lines = [f"{step},{bound!r}" for step, bound in enumerate(bounds.tolist(), start=1)]
    (run.work / HISTORY).write_text("\n".join(["step,elbo_per_datum", *lines, ""]))
    write_figures(run.work, trained.history, bounds, judged.predictions, data, units, relevance)
    run.finish()
    show(f"Model, metrics and figures are in {run.directory}")
    if options.json:
        print(json.dumps({"directory": str(run.directory), **metrics}))


def _build_model(options: FitOptions, data: FitData) -> VariationalModel:
    """An untrained model, which has a single layer where the depth is still to be chosen."""
    arguments = options.model_arguments
    if options.model == "VMG":
        arguments.pop("num_inducing", None)  # those of the sparse GP that is compared with
        arguments["target_scale"] = 1.0 if data.target is None else float(data.target.scale[0])
        arguments["likelihood"] = data.likelihood
    else:
        arguments["likelihood"] = data.likelihood or options.likelihood or "gaussian"
        if options.batch_size is not None:
            arguments.setdefault("output", "pseudo_targets")
    depth = 1 if options.depth == "auto" else options.depth
    return _BUILDERS[options.model][1](data.standardised(data.train), depth, **arguments)


def _choose_strategy(devices: int | None) -> tf.distribute.Strategy | None:
    """What trains on several GPUs of this machine; None for wherever TensorFlow puts a model."""
    if devices is None:
        return None
    found = [device.name.removeprefix("/device:") for device in tf.config.list_logical_devices()]
    gpus = [name for name in found if name.startswith("GPU")]
    if len(gpus) < devices:
        raise UsageError(
            f"--devices {devices} needs as many GPUs; TensorFlow finds {', '.join(found)}"
        )
    return tf.distribute.MirroredStrategy(gpus[:devices])


def _choose(data: FitData, options: FitOptions) -> _Trained:
    """Train models of several depths, and take the one that predicts best."""
    held_out = None if data.validation is None else data.standardised(data.validation)
    selection = select_model(
        data.standardised(data.train),
        likelihood=data.likelihood or options.likelihood or "auto",
        effort=options.effort or "default",
        num_steps=options.num_steps,
        batch_size=options.batch_size,
        validation_data=held_out,
        patience=options.patience or _PATIENCE,
        progress=not options.quiet,
        **options.model_arguments,
    )
    return _Trained(
        selection.model,
        selection.best.elbo / len(data.train.X),
        selection.history,
        sum(candidate.seconds for candidate in selection.candidates),
        {"candidates": selection.candidates, "reason": selection.reason},
        _told(selection, data),
    )


def _told(selection: Selection, data: FitData) -> list[str]:
    """A table of candidates, in raw units, and which is chosen."""
    scale = 1.0 if data.target is None else float(data.target.scale[0])

    def row(each: Candidate) -> dict[str, object]:
        density, crps = each.loo or (None, None)
        return {
            **{name: getattr(each, name) for name in ("depth", "kernel", "likelihood", "width")},
            "rows": each.num_data,
            "ELBO per datum": each.elbo / each.num_data + data.offset,
            "leave-one-out log density": None if density is None else density + data.offset,
            "leave-one-out CRPS": None if crps is None else crps * scale,
            "seconds": each.seconds,
        }

    best = selection.best
    return [
        tabulate([row(each) for each in selection.candidates], headers="keys", floatfmt=".4g"),
        f"Chosen: depth {best.depth}, {best.kernel}, {best.likelihood}.",
        str(selection.reason),
    ]


def _train(
    run: Run,
    data: FitData,
    model: VariationalModel,
    options: FitOptions,
    strategy: tf.distribute.Strategy | None,
) -> _Trained:
    """Train a model in place; the state is kept with the run, also where Ctrl-C ends it."""
    protocol: ProtocolName = "networks" if options.model == "VMG" else "fast"
    num_steps = options.num_steps or 0
    stopping = None
    if data.validation is not None:
        stopping = EarlyStopping(
            data.standardised(data.validation),
            patience=options.patience or _PATIENCE,
            start_step=PROTOCOLS[protocol].kl_annealing_steps(model, num_steps),
            seed=options.seed,
        )
    # What a run finds that goes on, such as another table, is the user's.
    with contextlib.nullcontext() if options.resume is None else user_mistakes():
        history = fit(
            model,
            data.standardised(data.train),
            num_steps,
            batch_size=options.batch_size,
            protocol=protocol,
            seed=options.seed,
            callbacks=[] if stopping is None else [stopping],
            callback_interval=options.callback_interval,
            progress=not options.quiet,
            strategy=strategy,
            checkpoint_directory=run.state,
            seconds_between_checkpoints=_SECONDS_BETWEEN_SAVES,
        )
    if history.stop_reason.startswith("interrupted"):
        raise KeyboardInterrupt
    best_step = None if stopping is None else stopping.best_step
    elbo = float(history.elbo_per_datum[:best_step][-_STEPS_IN_FINAL_BOUND:].mean())
    told = f"The validation rows are predicted best after step {best_step}."
    facts, lines = ({}, []) if best_step is None else ({"best_step": best_step}, [told])
    return _Trained(model, elbo, history, history.seconds, facts, lines)


def _threads() -> int:
    """How many TensorFlow may use: as it was told, in the program or before it, or all cores."""
    told = tf.config.threading.get_intra_op_parallelism_threads()
    before = os.environ.get("TF_NUM_INTRAOP_THREADS", "")
    return told or (int(before) if before.isdecimal() else os.cpu_count() or 1)
