"""What ``gpflow-dwp fit`` does once its table is read: train, judge, write a run."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Sequence
from contextvars import copy_context
from functools import partial
from typing import Any, NamedTuple

import gpflow
import numpy as np
import pandas as pd
from tabulate import tabulate

from gpflow_dwp import models
from gpflow_dwp.cli.errors import spared, user_mistakes
from gpflow_dwp.cli.figures import relevances, shares, write_figures
from gpflow_dwp.cli.fit import FitData
from gpflow_dwp.cli.options import FitOptions
from gpflow_dwp.cli.reports import named_scores, plain, predictions_by_name, scores_as_text
from gpflow_dwp.cli.runs import HISTORY, METRICS, MODEL, PREDICTIONS, TRAINED, Run, TrainedRun
from gpflow_dwp.evaluation import RawUnits
from gpflow_dwp.evaluation.baselines import simple_scores
from gpflow_dwp.evaluation.predictions import judge
from gpflow_dwp.evaluation.provenance import describe_provenance
from gpflow_dwp.files import read_sealed, seal, write_whole
from gpflow_dwp.likelihoods.named import likelihood_of_labels
from gpflow_dwp.models import VariationalModel, load_model, model_summary, save_model
from gpflow_dwp.optional import list_versions
from gpflow_dwp.selection import Selection, select_model
from gpflow_dwp.selection.candidates import Trial
from gpflow_dwp.training import TrainingHistory, fit
from gpflow_dwp.training.callbacks import SHOWN_OFFSET

__all__ = ["run_fit"]

_BUILDERS: dict[str, tuple[str, Callable[..., VariationalModel]]] = {
    "DWP": ("deep Wishart process", models.build_deep_wishart_process),
    "DGP": ("deep GP", models.build_deep_gaussian_process),
}
"""What tables of scores call each model, and what builds it."""
_STEPS_IN_FINAL_BOUND = 100
_SECONDS_BETWEEN_SAVES = 10.0
_SHOWN_INPUTS = 5


class _Trained(NamedTuple):
    """What training led to.

    :param elbo: The bound per row, in the model's units.
    :param bounds: The same at each step.
    :param annealing_steps: When the weight of the log ratios reached 1.
    :param seconds: That all models took.
    :param facts: What more there is to be kept of it.
    :param lines: What is said of it.
    """

    model: VariationalModel
    elbo: float
    bounds: list[float]
    annealing_steps: int
    seconds: float
    facts: dict[str, Any]
    lines: list[str]

    @classmethod
    def of(
        cls,
        model: VariationalModel,
        elbo: float,
        history: TrainingHistory,
        seconds: float,
        lines: Sequence[str] = (),
        **facts: Any,
    ) -> _Trained:
        facts |= {"steps": history.num_steps, "stop_reason": history.stop_reason}
        bounds = history.elbo_per_datum.tolist()
        return cls(model, elbo, bounds, history.kl_annealing_steps, seconds, facts, [*lines])

    @classmethod
    def kept(cls, run: Run, rows: str) -> _Trained | None:
        """What an unfinished run had been trained to on these rows, if it had come so far."""
        if not (run.work / TRAINED).is_file():
            return None
        fields = read_sealed(run.work / TRAINED)
        if fields.pop("rows") != rows:
            raise ValueError(f"{run.work} holds a run of another table")
        return cls(load_model(run.work / MODEL), **fields)

    def keep(self, run: Run, rows: str) -> None:
        """Write it down: from here on nothing can throw it away."""
        save_model(self.model, run.work / MODEL)
        fields = plain({**self._asdict(), "model": None, "rows": rows})
        del fields["model"]
        run.state.mkdir(exist_ok=True)
        write_whole(run.work / TRAINED, json.dumps(seal(fields)))


def run_fit(run: Run, data: FitData, options: FitOptions) -> None:
    """Train on a table, judge on held-out rows, print a table of scores, write a run directory."""
    rows, test, task = data.standardised(data.train), data.test, data.train.task
    digest = hashlib.sha256(
        b"".join(part.tobytes() for part in (*rows, test.X, test.Y))
    ).hexdigest()
    with user_mistakes():
        trained, model = _Trained.kept(run, digest), _build_model(options, data)
    show: Callable[[str], object] = str if options.json else partial(print, flush=True)
    show(data.summary)
    simple = simple_scores(rows, data.standardised(test), data.target, seed=options.seed)
    if trained is None:
        context = copy_context()
        context.run(SHOWN_OFFSET.set, data.offset)
        if options.depth == "auto":
            trained = context.run(_choose, data, options)
        else:
            trained = context.run(_train, run, data, model, options)
        trained.keep(run, digest)
    units, elbo = RawUnits(trained.model, data.inputs, data.target), trained.elbo + data.offset
    judged, relevance, share = None, dict[str, float](), dict[str, float]()
    with spared("scores of the model"):
        judged = judge(units, test.X, test.Y, elbo=elbo, seconds=trained.seconds)
    with spared("relevance of columns"):
        relevance = relevances(units, data.train.X, data.encoder, options.seed)
        share = shares(units, data.train.X, data.encoder)
    title = f"{_BUILDERS[options.model][0]}, depth {len(trained.model.layers)}"
    all_scores = {**simple, **({title: judged.scores} if judged else {})}
    scores = {name: named_scores(score, task) for name, score in all_scores.items()}
    metrics = plain(
        {
            "scores": scores,
            "training_rows": len(data.train.X),
            "test_rows": len(test.X),
            **trained.facts,
            "relevance": relevance,
            **({"shares": share} if share else {}),
            **(judged.calibration if judged else {}),
            "options": options.plain(),
            "provenance": describe_provenance(np.dtype(gpflow.default_float()).name),
        }
    )
    (run.work / METRICS).write_text(json.dumps(metrics, indent=1))
    bounds = np.asarray(trained.bounds) + data.offset
    lines = [f"{step},{bound!r}" for step, bound in enumerate(bounds.tolist(), start=1)]
    (run.work / HISTORY).write_text("\n".join(["step,elbo_per_datum", *lines, ""]))
    target, predictions = data.train.target_name, judged and judged.predictions
    if predictions is not None:
        observed: Any = test.Y[:, 0]
        if test.classes is not None:
            observed = [test.classes[int(label)] for label in observed]
        columns = predictions_by_name(predictions, target, test.classes)
        frame = pd.DataFrame({target: observed, **columns})
        frame.to_csv(run.work / PREDICTIONS, index=False)
    TrainedRun(
        data.encoder,
        target,
        data.train.classes,
        data.inputs,
        data.target,
        options.missing,
        list_versions(),
        str(model_summary(trained.model)),
    ).write(run.work)
    column = next(iter(relevance), data.encoder.columns[0])
    write_figures(run.work, bounds, trained.annealing_steps, predictions, data, units, column)
    run.finish()
    for line in (*trained.lines, scores_as_text(scores)):
        show(line)
    for name in [name for name, score in scores.items() if "failed" in score]:
        show(f"{name} failed: {scores[name]['failed']}")
    most = [f"{name} {value:.2f}" for name, value in [*relevance.items()][:_SHOWN_INPUTS]]
    show(f"Predictions change most with {', '.join(most)} (of their standard deviation)")
    if share:
        most = [f"{name} {value:.2f}" for name, value in [*share.items()][:_SHOWN_INPUTS]]
        show(f"Of the variance of their mean the shares are {', '.join(most)}")
    show(f"Model, metrics and figures are in {run.directory}")
    if options.json:
        print(json.dumps({"directory": str(run.directory), **metrics}))


def _likelihood(options: FitOptions, data: FitData) -> Any:
    """That of labels, or of numbers the one that is asked for, if any."""
    classes = data.train.classes
    return options.likelihood if classes is None else likelihood_of_labels(len(classes))


def _build_model(options: FitOptions, data: FitData) -> VariationalModel:
    """An untrained model, which has a single layer where the depth is still to be chosen."""
    return _BUILDERS[options.model][1](
        data.standardised(data.train),
        1 if options.depth == "auto" else options.depth,
        num_samples=2,
        likelihood=_likelihood(options, data) or "gaussian",
        **options.model_arguments,
    )


def _choose(data: FitData, options: FitOptions) -> _Trained:
    """Train models of several depths, and take the one that predicts best."""
    selection = select_model(
        data.standardised(data.train),
        likelihood=_likelihood(options, data) or "auto",
        effort=options.effort or "default",
        num_steps=options.num_steps,
        progress=not options.quiet,
        **options.model_arguments,
    )
    told = _told(selection, data)
    return _Trained.of(
        selection.model,
        selection.best.elbo / len(data.train.X),
        selection.history,
        sum(candidate.seconds for candidate in selection.candidates),
        told,
        candidates=selection.candidates,
        tried=told[0],
        reason=told[-1],
    )


def _told(selection: Selection, data: FitData) -> list[str]:
    """A table of candidates, in raw units, and which is chosen."""
    scale = 1.0 if data.target is None else float(data.target.scale[0])

    def row(each: Trial) -> dict[str, object]:
        density, crps = each.loo or (None, None)
        return {
            **{name: getattr(each, name) for name in ("depth", "kernel", "likelihood", "width")},
            "lengthscales": "by input" if each.ard else "one",
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
        selection.told(None if data.target is None else scale),
    ]


def _train(run: Run, data: FitData, model: VariationalModel, options: FitOptions) -> _Trained:
    """Train a model in place; the state is kept with the run, also where Ctrl-C ends it."""
    # What a run finds that goes on, such as another table, is the user's.
    with contextlib.nullcontext() if options.resume is None else user_mistakes():
        history = fit(
            model,
            data.standardised(data.train),
            options.num_steps or 0,
            protocol="fast",
            seed=options.seed,
            progress=not options.quiet,
            checkpoint_directory=run.state,
            seconds_between_checkpoints=_SECONDS_BETWEEN_SAVES,
        )
    if history.stop_reason.startswith("interrupted"):
        raise KeyboardInterrupt
    elbo = float(history.elbo_per_datum[-_STEPS_IN_FINAL_BOUND:].mean())
    return _Trained.of(model, elbo, history, history.seconds)
