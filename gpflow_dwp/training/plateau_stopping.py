"""Ending a run when its bound no longer gains more than its noise."""

from __future__ import annotations

import json

import numpy as np
import tensorflow as tf

from gpflow_dwp.models import VariationalModel
from gpflow_dwp.training.callbacks import RunCallback, TrainingProgress
from gpflow_dwp.validation import check_integers, check_not_negative

__all__ = ["PlateauStopping"]


class PlateauStopping(RunCallback, tf.train.experimental.PythonState):
    """A callback that ends a run when the bound has stopped to grow.

    At every call it compares the mean of the last bounds with that of as many before, each bound
    an average over the steps between two calls. The run ends where the gain is below the standard
    error of that difference, which is estimated from the scatter of the bounds within each half.
    No rows need to be held out; the last parameters are kept.

    While a learning rate is high, a bound may stand still that would grow again as the rate falls:
    with a protocol whose rate falls to the end of the run, an early end forgoes that.

    The state is part of ``fit``'s checkpoints: a run that was cut off and goes on stops where it
    would have.

    >>> import numpy as np
    >>> from gpflow_dwp import build_deep_wishart_process, fit
    >>> X = np.linspace(-1.0, 1.0, 20)[:, None]
    >>> model = build_deep_wishart_process((X, np.sin(3.0 * X)), 2, num_inducing=5)
    >>> stopping = PlateauStopping(window=2, start_step=10)
    >>> history = fit(
    ...     model,
    ...     (X, np.sin(3.0 * X)),
    ...     20,
    ...     callbacks=[stopping],
    ...     callback_interval=5,
    ...     progress=False,
    ... )
    >>> stopping.steps
    [15, 20]

    :param window: Bounds of each half, at least 2.
    :param min_gain: What a gain must reach, in nats per datum, in place of the standard error; None
        for the latter.
    :param start_step: Bounds of steps before this one are not looked at: in the first steps, in
        which the weight of the log ratios grows, they may fall.
    :raises ValueError: If an argument cannot be used.
    """

    def __init__(
        self, window: int = 10, *, min_gain: float | None = None, start_step: int = 0
    ) -> None:
        check_integers(at_least=2, window=window)
        check_integers(at_least=0, start_step=start_step)
        if min_gain is not None:
            check_not_negative(min_gain=min_gain)
        self._window = window
        self._min_gain = min_gain
        self._start_step = start_step
        self.steps: list[int] = []
        self.values: list[float] = []

    def begin(self, step: int, model: VariationalModel) -> bool:
        """Forget earlier runs, unless this one goes on; end it if it had ended."""
        if step == 0:
            self.steps, self.values = [], []
        return self._stands_still(model)

    def __call__(self, progress: TrainingProgress) -> bool:
        """Note the bound, and end the run if it has stopped to grow."""
        if progress.step <= self._start_step:  # Its bound is that of the steps before.
            return False
        self.steps.append(progress.step)
        self.values.append(progress.elbo)
        return self._stands_still(progress.model)

    def finish(self, model: VariationalModel) -> None:
        """Leave the model as it is."""

    def serialize(self) -> bytes:
        """Return everything that the next call depends on."""
        return json.dumps([self.steps, self.values]).encode()

    def deserialize(self, string_value: bytes) -> None:
        """Take over what :meth:`serialize` returned."""
        self.steps, self.values = json.loads(string_value)

    def _stands_still(self, model: VariationalModel) -> bool:
        if len(self.values) < 2 * self._window:
            return False
        before, last = np.reshape(self.values[-2 * self._window :], [2, self._window])
        gain = last.mean() - before.mean()
        if self._min_gain is not None:
            return bool(gain < self._min_gain * model.num_data)
        variance = (before.var(ddof=1) + last.var(ddof=1)) / self._window
        return bool(gain < np.sqrt(variance))
