"""Training: the compiled loop, schedules, callbacks."""

from gpflow_dwp.training.adam import Adam
from gpflow_dwp.training.callbacks import Callback, TrainingProgress
from gpflow_dwp.training.early_stopping import EarlyStopping
from gpflow_dwp.training.fit import fit
from gpflow_dwp.training.history import TrainingHistory
from gpflow_dwp.training.natural_gradient import NaturalGradientAdam
from gpflow_dwp.training.protocol import PROTOCOLS, TrainingProtocol

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
