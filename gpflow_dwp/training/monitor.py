"""GPflow's monitoring tasks, run by training."""

from __future__ import annotations

from typing import ClassVar

from gpflow.monitor import Monitor

from gpflow_dwp.training.callbacks import TrainingProgress

__all__ = ["MonitorCallback"]


class MonitorCallback:
    """A callback that runs the tasks of a ``gpflow.monitor.Monitor``.

    The tasks are GPflow's own, such as ``ModelToTensorBoard``, ``ScalarToTensorBoard``,
    ``ImageToTensorBoard`` (all three need the extra ``tensorboard``) and ``ExecuteCallback``::

        log = "logs/run-1"
        parameters = ModelToTensorBoard(log, model)
        figure = ImageToTensorBoard(log, plot, "fit")
        saves = tf.train.CheckpointManager(tf.train.Checkpoint(model=model), log, max_to_keep=3)
        fit(model, data, callbacks=[
            MonitorCallback(Monitor(
                MonitorTaskGroup(parameters),
                MonitorTaskGroup([figure, ExecuteCallback(saves.save)], period=1_000),
            )),
            MonitorCallback(
                Monitor(MonitorTaskGroup(
                    ScalarToTensorBoard(log, lambda progress: progress.elbo, "elbo")
                )),
                pass_progress=True,
            ),
        ])

    A group of tasks runs at steps that are multiples of its period and at which ``fit`` calls its
    callbacks. A run that goes on from a checkpoint writes the steps since that checkpoint again.

    :param monitor: GPflow's monitor, with its tasks.
    :param pass_progress: Whether the functions that tasks hold take an argument ``progress``, the
        :class:`TrainingProgress`; GPflow hands all tasks of a monitor the same arguments.
    """

    only_in_first_worker: ClassVar[bool] = True

    def __init__(self, monitor: Monitor, *, pass_progress: bool = False) -> None:
        self._monitor = monitor
        self._pass_progress = pass_progress

    def __call__(self, progress: TrainingProgress) -> None:
        """Run the tasks whose turn it is."""
        if self._pass_progress:
            self._monitor(progress.step, progress=progress)
        else:
            self._monitor(progress.step)
