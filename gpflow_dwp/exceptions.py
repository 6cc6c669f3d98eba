"""Errors and warnings that a user may want to catch by name.

Plain bad input raises :class:`ValueError`; every class here says something that a caller can act
on.
"""

__all__ = [
    "CholeskyError",
    "CollapseWarning",
    "NonFiniteBoundError",
    "SavedModelError",
    "TableError",
    "TargetWarning",
    "UnsupportedKernelError",
]


class CholeskyError(ArithmeticError):
    """A covariance matrix stayed numerically indefinite after the largest jitter that is tried."""


class CollapseWarning(UserWarning):
    """A model has learned nothing: it explains everything as noise."""


class TargetWarning(UserWarning):
    """A target is odd for a number: few values, or one that many rows have."""


class NonFiniteBoundError(ArithmeticError):
    """A bound or, in training, a gradient is not finite.

    :param message: What happened, and in which layer.
    :param step: The step (from 0) that failed in training, which leaves the model in the last state
        with a finite bound; None where a bound was evaluated outside training.
    """

    def __init__(self, message: str, *, step: int | None = None) -> None:
        super().__init__(message)
        self.step = step


class SavedModelError(ValueError):
    """A directory is not a saved model, is damaged, or was written in another format."""


class TableError(ValueError):
    """A table of data cannot be used as it is; the message names the file, column and row."""


class UnsupportedKernelError(ValueError):
    """A kernel is not a function of inner products, so it cannot act on a Gram matrix."""
