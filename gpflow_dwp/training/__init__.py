"""Training: the compiled loop, schedules, callbacks."""

from gpflow_dwp.training.adam import Adam
from gpflow_dwp.training.callbacks import Callback, RunCallback, TrainingProgress
from gpflow_dwp.training.early_stopping import EarlyStopping, ValidationMetric
from gpflow_dwp.training.fit import fit
from gpflow_dwp.training.history import TrainingHistory
from gpflow_dwp.training.loop import CompiledLoop, StepRecords
from gpflow_dwp.training.monitor import MonitorCallback
from gpflow_dwp.training.natural_gradient import NaturalGradientAdam, decayed_rate
from gpflow_dwp.training.plateau_stopping import PlateauStopping
from gpflow_dwp.training.protocol import PROTOCOLS, Protocol, ProtocolName
from gpflow_dwp.training.run_log import CSVLog, JSONLinesLog, RunLog
from gpflow_dwp.training.schedule import cosine_learning_rate, kl_weight, paper_learning_rate

__all__ = [
    "PROTOCOLS",
    "Adam",
    "CSVLog",
    "Callback",
    "CompiledLoop",
    "EarlyStopping",
    "JSONLinesLog",
    "MonitorCallback",
    "NaturalGradientAdam",
    "PlateauStopping",
    "Protocol",
    "ProtocolName",
    "RunCallback",
    "RunLog",
    "StepRecords",
    "TrainingHistory",
    "TrainingProgress",
    "ValidationMetric",
    "cosine_learning_rate",
    "decayed_rate",
    "fit",
    "kl_weight",
    "paper_learning_rate",
]
