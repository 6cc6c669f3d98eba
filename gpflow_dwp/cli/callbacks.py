"""What ``gpflow-dwp fit`` does in the course of training: stop early, write a log."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gpflow_dwp.cli.errors import UsageError
from gpflow_dwp.cli.fit_options import CompleteOptions
from gpflow_dwp.models import VariationalModel
from gpflow_dwp.training import (
    PROTOCOLS,
    CSVLog,
    EarlyStopping,
    JSONLinesLog,
    ProtocolName,
    RunLog,
    TrainingProgress,
    ValidationMetric,
)

__all__ = ["check_log", "check_stopping", "make_log", "make_stopping"]

_METRIC: ValidationMetric = "log_density"
_PATIENCE = 10
_LOGS: dict[str, type[RunLog]] = {".csv": CSVLog, ".jsonl": JSONLinesLog}


def check_log(options: CompleteOptions) -> None:
    """Refuse a log that cannot be written.

    :raises UsageError: If the file has no known suffix, or is there and is not to be replaced.
    """
    path = options.log
    if path is None:
        return
    if path.suffix not in _LOGS:
        raise UsageError(f"--log must end in {' or '.join(_LOGS)}, got {str(path)!r}")
    if path.is_dir():
        raise UsageError(f"{path} is a directory; --log takes a file")
    if options.resume is None and path.exists() and not options.overwrite:
        raise UsageError(f"{path} exists; give --overwrite to replace it")


def check_stopping(options: CompleteOptions) -> None:
    """Refuse options of early stopping that lead nowhere.

    :raises UsageError: If there are no validation rows for them, or the metric is for numbers.
    """
    for name in ("patience", "validation_metric"):
        if getattr(options, name) is not None and options.validation_fraction is None:
            raise UsageError(f"--{name.replace('_', '-')} goes with --validation-fraction only")
    if options.validation_metric == "rmse" and options.task == "classification":
        raise UsageError("--validation-metric rmse is not for --task classification")


def make_stopping(
    options: CompleteOptions,
    model: VariationalModel,
    data: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]],
    protocol: ProtocolName,
) -> EarlyStopping:
    """Return what judges validation rows, once the log ratios have their full weight.

    :param model: What is trained.
    :param data: The rows in the model's units, X [N, D] and Y [N, 1].
    :param protocol: Of training.
    """
    return EarlyStopping(
        data,
        options.validation_metric or _METRIC,
        patience=options.patience or _PATIENCE,
        start_step=PROTOCOLS[protocol].kl_annealing_steps(model, options.num_steps),
        seed=options.seed,
    )


def make_log(options: CompleteOptions, stopping: EarlyStopping | None) -> RunLog | None:
    """Return what writes the log, if there is to be one.

    :param stopping: What judges validation rows before, if anything does.
    """
    if options.log is None:
        return None

    def last_value(progress: TrainingProgress) -> float:
        judged = stopping is not None and stopping.steps[-1:] == [progress.step]
        return stopping.values[-1] if stopping is not None and judged else float("nan")

    name = f"validation_{options.validation_metric or _METRIC}"
    metrics = {} if stopping is None else {name: last_value}
    return _LOGS[options.log.suffix](options.log, metrics)
