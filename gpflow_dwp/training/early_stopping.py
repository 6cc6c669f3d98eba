"""Ending a run when predictions of held-out data get no better."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow import default_float
from gpflow.base import RegressionData

from gpflow_dwp.base import Array, TrainingData
from gpflow_dwp.models import VariationalModel
from gpflow_dwp.training.callbacks import Callback, RunCallback, TrainingHistory, TrainingProgress
from gpflow_dwp.training.fit import fit
from gpflow_dwp.validation import as_weighted, check_integers, check_matrix

__all__ = ["EarlyStopping", "fit_with_held_out"]

_DRAWS = 20
LOOKS = 20


class EarlyStopping(RunCallback, tf.train.experimental.PythonState):
    """A callback that ends a run when a metric of held-out data gets no better.

    However the run ends, Ctrl-C included, the model is left with the parameters that had the best
    metric; after an error, with those that ``fit`` says. The state is part of ``fit``'s
    checkpoints: a run that was cut off and goes on stops where it would have, and leaves the same
    parameters; one that had stopped takes no further step, unless it is given more patience.

    >>> import numpy as np
    >>> from gpflow_dwp import build_deep_wishart_process, fit
    >>> X = np.linspace(-1.0, 1.0, 20)[:, None]
    >>> model = build_deep_wishart_process((X[::2], np.sin(3.0 * X[::2])), 2, num_inducing=5)
    >>> stopping = EarlyStopping((X[1::2], np.sin(3.0 * X[1::2])), patience=3)
    >>> history = fit(
    ...     model,
    ...     (X[::2], np.sin(3.0 * X[::2])),
    ...     20,
    ...     callbacks=[stopping],
    ...     callback_interval=5,
    ...     progress=False,
    ... )
    >>> stopping.steps
    [5, 10, 15, 20]

    :param data: Held-out inputs, [N, D], and targets, [N, P], in the model's units.
    :param metric: What is to grow, a function of the model and the held-out data; None for the mean
        log predictive density, in nats.
    :param patience: After how many calls without a better metric the run ends.
    :param start_step: Before this step nothing is judged. The first steps, in which the weight of
        the log ratios still grows, may predict well and be no good bound.
    :param num_samples: Number of draws of each prediction, S; None for the model's own number.
    :param seed: Of the predictions' draws, which are the same in every call.
    :raises ValueError: If an argument cannot be used.
    """

    def __init__(
        self,
        data: RegressionData,
        metric: Callable[[VariationalModel, RegressionData], float] | None = None,
        *,
        patience: int = 10,
        start_step: int = 0,
        num_samples: int | None = None,
        seed: int = 0,
    ) -> None:
        check_integers(patience=patience)
        check_integers(at_least=0, start_step=start_step)
        if num_samples is not None:
            check_integers(num_samples=num_samples)
        X, Y = map(check_matrix, ("data[0]", "data[1]"), as_weighted(data)[:2])
        if len(X) != len(Y):
            raise ValueError(f"data must hold as many X as Y, got {len(X)} and {len(Y)} rows.")
        self._data: tuple[Array, Array] = X.astype(default_float()), Y.astype(default_float())
        self._metric = metric
        self._patience = patience
        self._start_step = start_step
        self._num_samples = num_samples
        self._seed = seed
        self.steps: list[int] = []
        self.values: list[float] = []
        self._best: int | None = None
        self._kept: list[Array] = []

    @property
    def best_step(self) -> int | None:
        """The step whose parameters are kept, if any metric was finite."""
        return None if self._best is None else self.steps[self._best]

    @property
    def best_value(self) -> float | None:
        """The metric after that step."""
        return None if self._best is None else self.values[self._best]

    def begin(self, step: int, model: VariationalModel) -> bool:
        if step == 0:
            self.steps, self.values, self._best, self._kept = [], [], None, []
        self._evaluate = self._make_evaluation(model)
        return self._is_impatient()

    def __call__(self, progress: TrainingProgress) -> bool:
        if progress.step < self._start_step:
            return False
        value = float(self._evaluate())
        self.steps.append(progress.step)
        self.values.append(value)
        if np.isfinite(value) and (self.best_value is None or value > self.best_value):
            self._best = len(self.values) - 1
            self._kept = [variable.numpy() for variable in progress.model.trainable_variables]
        return self._is_impatient()

    def finish(self, model: VariationalModel) -> None:
        for variable, value in zip(model.trainable_variables, self._kept, strict=bool(self._kept)):
            variable.assign(value)

    def serialize(self) -> bytes:
        """Return everything that the next call depends on."""
        buffer = io.BytesIO()
        judged = np.array([self.steps, self.values])
        np.savez(buffer, np.array(-1 if self._best is None else self._best), judged, *self._kept)
        return buffer.getvalue()

    def deserialize(self, string_value: bytes) -> None:
        """Take over what :meth:`serialize` returned."""
        with np.load(io.BytesIO(string_value)) as saved:
            best, judged, *self._kept = (saved[f"arr_{i}"] for i in range(len(saved.files)))
        self.steps, self.values = [int(step) for step in judged[0]], judged[1].tolist()
        self._best = int(best) if best >= 0 else None

    def _is_impatient(self) -> bool:
        since = len(self.values) - (0 if self._best is None else self._best + 1)
        return since >= self._patience

    def _make_evaluation(self, model: VariationalModel) -> Callable[[], float | tf.Tensor]:
        metric = self._metric
        if metric is not None:
            return lambda: metric(model, self._data)
        X, Y = map(tf.constant, self._data)

        def evaluate() -> tf.Tensor:
            draws = model.posterior(self._num_samples, seed=self._seed)
            return tf.reduce_mean(draws.predict_log_density((X, Y)))

        return tf.function(evaluate, autograph=False)


def fit_with_held_out(
    model: VariationalModel,
    data: TrainingData,
    held_out: RegressionData | None,
    num_steps: int,
    *,
    patience: int,
    kl_annealing_steps: int,
    callbacks: Sequence[Callback] = (),
    **arguments: Any,
) -> TrainingHistory:
    """Train by :func:`fit`, until held-out data, if there are any, are predicted no better.

    Callbacks are called, and the log density is judged once the annealing is over, 20 times in a
    run.
    """
    if held_out is not None:
        stopping = EarlyStopping(
            held_out, patience=patience, start_step=kl_annealing_steps, num_samples=_DRAWS
        )
        callbacks = [*callbacks, stopping]
    return fit(
        model,
        data,
        num_steps,
        kl_annealing_steps=kl_annealing_steps,
        callbacks=callbacks,
        callback_interval=max(1, num_steps // LOOKS),
        **arguments,
    )
