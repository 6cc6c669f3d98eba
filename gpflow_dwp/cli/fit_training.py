"""How ``gpflow-dwp fit`` trains its model, or those that it chooses from."""

from __future__ import annotations

import contextlib
from typing import NamedTuple

import tensorflow as tf
from tabulate import tabulate

from gpflow_dwp.cli.errors import UsageError, user_mistakes
from gpflow_dwp.cli.fit_data import FitData
from gpflow_dwp.cli.fit_options import CompleteOptions
from gpflow_dwp.cli.model_choice import choose_protocol, model_arguments, number_of_draws
from gpflow_dwp.cli.run_directory import Run
from gpflow_dwp.cli.run_log import CSVLog
from gpflow_dwp.models import VariationalModel
from gpflow_dwp.objectives import Estimator
from gpflow_dwp.selection import Candidate, select_model
from gpflow_dwp.training import (
    PROTOCOLS,
    EarlyStopping,
    TrainingHistory,
    TrainingProgress,
    fit,
)
from gpflow_dwp.training.early_stopping import ValidationMetric

__all__ = ["Course", "choose_strategy", "train"]

_METRIC: ValidationMetric = "log_density"
_PATIENCE = 10
_STEPS_IN_FINAL_BOUND = 100
_SECONDS_BETWEEN_SAVES = 10.0


_COLUMNS = (
    *("depth", "kernel", "likelihood", "width", "rows", "bound per row"),
    *("leave-one-out log density", "leave-one-out CRPS", "seconds"),
)


class Course(NamedTuple):
    """What training led to.

    :param model: The trained model.
    :param elbo: Its bound per row, in its own units.
    :param seconds: That all models took.
    :param history: Of the model.
    :param best_step: That early stopping chose.
    :param candidates: What the model was chosen from.
    :param best: The candidate that it is; None where there was no choice.
    :param reason: Why it was chosen, in a sentence.
    """

    model: VariationalModel
    elbo: float
    seconds: float
    history: TrainingHistory
    best_step: int | None = None
    candidates: tuple[Candidate, ...] = ()
    best: Candidate | None = None
    reason: str | None = None

    @property
    def is_interrupted(self) -> bool:
        """Whether Ctrl-C ended it."""
        return self.history.stop_reason.startswith("interrupted")

    def tell(self) -> list[str]:
        """Lines that say what there is to say."""
        lines = [f"Training was {self.history.stop_reason}."] if self.is_interrupted else []
        if self.best_step is not None:
            lines.append(f"The validation rows are predicted best after step {self.best_step}.")
        if self.best is not None:
            best = self.best
            rows = [
                (
                    *(each.depth, each.kernel, each.likelihood, each.width, each.num_data),
                    each.elbo / each.num_data,
                    *(each.loo or (None, None)),
                    each.seconds,
                )
                for each in self.candidates
            ]
            lines.append(tabulate(rows, _COLUMNS, floatfmt=".3f"))
            lines.append(f"Chosen: depth {best.depth}, {best.kernel}, {best.likelihood}.")
            lines.append(str(self.reason))
        return lines


def choose_strategy(devices: int | None) -> tf.distribute.Strategy | None:
    """Return what trains on several GPUs of this machine.

    :param devices: How many; None for wherever TensorFlow puts a model.
    :raises UsageError: If there are not so many.
    """
    if devices is None:
        return None
    found = [device.name.removeprefix("/device:") for device in tf.config.list_logical_devices()]
    gpus = [name for name in found if name.startswith("GPU")]
    if len(gpus) < devices:
        raise UsageError(
            f"--devices {devices} needs as many GPUs; TensorFlow finds {', '.join(found)}"
        )
    return tf.distribute.MirroredStrategy(gpus[:devices])


def train(
    run: Run,
    data: FitData,
    model: VariationalModel,
    options: CompleteOptions,
    strategy: tf.distribute.Strategy | None,
) -> Course:
    """Train the model in place, or with ``--depth auto`` others, of which the best is taken.

    :param run: Where the state of training is kept.
    :param strategy: In whose scope the model was built, if it was in one.
    """
    rows, held_out = data.rows, data.validation_rows
    patience = options.patience or _PATIENCE
    if options.depth == "auto":
        selection = select_model(
            rows,
            likelihood=data.likelihood or options.likelihood or "auto",
            effort=options.effort or "default",
            estimator=Estimator(options.num_importance_samples),
            num_steps=options.num_steps or None,
            batch_size=options.batch_size,
            num_samples=number_of_draws(options),
            validation_data=held_out,
            patience=patience,
            seed=options.seed,
            progress=not options.quiet,
            **model_arguments(options),
        )
        return Course(
            selection.model,
            selection.best.elbo / len(rows[0]),
            sum(candidate.seconds for candidate in selection.candidates),
            selection.history,
            candidates=selection.candidates,
            best=selection.best,
            reason=selection.reason,
        )
    protocol = choose_protocol(options)
    stopping = None
    if held_out is not None:
        stopping = EarlyStopping(
            held_out,
            options.validation_metric or _METRIC,
            patience=patience,
            start_step=PROTOCOLS[protocol].kl_annealing_steps(model, options.num_steps),
            seed=options.seed,
        )
    log = _make_log(options, stopping)
    # What a run finds that goes on, such as its log, is the user's.
    with contextlib.nullcontext() if options.resume is None else user_mistakes():
        history = fit(
            model,
            rows,
            options.num_steps,
            batch_size=options.batch_size,
            protocol=protocol,
            estimator=Estimator(options.num_importance_samples),
            seed=options.seed,
            callbacks=[callback for callback in (stopping, log) if callback is not None],
            callback_interval=options.callback_interval,
            progress=not options.quiet,
            strategy=strategy,
            checkpoint_directory=run.state,
            seconds_between_checkpoints=_SECONDS_BETWEEN_SAVES,
        )
    best_step = None if stopping is None else stopping.best_step
    elbo = float(history.elbo_per_datum[:best_step][-_STEPS_IN_FINAL_BOUND:].mean())
    return Course(model, elbo, history.seconds, history, best_step)


def _make_log(options: CompleteOptions, stopping: EarlyStopping | None) -> CSVLog | None:
    """What writes the log, also of what early stopping finds, if there is to be one."""
    if options.log is None:
        return None

    def last_value(progress: TrainingProgress) -> float:
        judged = stopping is not None and stopping.steps[-1:] == [progress.step]
        return stopping.values[-1] if stopping is not None and judged else float("nan")

    name = f"validation_{options.validation_metric or _METRIC}"
    return CSVLog(options.log, {} if stopping is None else {name: last_value})
