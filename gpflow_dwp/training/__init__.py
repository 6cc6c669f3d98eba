"""Training: the compiled loop, schedules, callbacks."""

from gpflow_dwp.training.callbacks import Callback, TrainingHistory, TrainingProgress
from gpflow_dwp.training.early_stopping import EarlyStopping
from gpflow_dwp.training.fit import fit
from gpflow_dwp.training.optimizers import PROTOCOLS, Adam, NaturalGradientAdam, TrainingProtocol

__all__ = [
    "PROTOCOLS",
    "Adam",
    "Callback",
    "EarlyStopping",
    "NaturalGradientAdam",
    "TrainingHistory",
    "TrainingProgress",
    "TrainingProtocol",
    "fit",
]
