"""Training in one call."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import tensorflow as tf
from gpflow.keras import tf_keras

from gpflow_dwp.base import TrainingData
from gpflow_dwp.exceptions import CollapseWarning
from gpflow_dwp.models import VariationalModel
from gpflow_dwp.models.saving import warn_if_unsaved
from gpflow_dwp.random import as_seed
from gpflow_dwp.training._batches import make_batches
from gpflow_dwp.training._checkpoint import TrainingCheckpoint, opened_checkpoint, run_identity
from gpflow_dwp.training._run import TrainingRun
from gpflow_dwp.training._structure import may_draw_globally
from gpflow_dwp.training.callbacks import Callback, TrainingHistory
from gpflow_dwp.training.distribution import Devices
from gpflow_dwp.training.loop import CompiledLoop
from gpflow_dwp.training.optimizers import PROTOCOLS, Adam, NaturalGradientAdam, ProtocolName
from gpflow_dwp.validation import (
    check_choice,
    check_flags,
    check_instance,
    check_integers,
    check_not_negative,
    check_process,
)

__all__ = ["fit"]

# In fewer a model cannot be expected to have learned much.
_STEPS_TO_JUDGE = 100


def fit(
    model: VariationalModel,
    data: TrainingData,
    num_steps: int = 20_000,
    *,
    batch_size: int | None = None,
    protocol: ProtocolName | None = None,
    optimizer: tf_keras.optimizers.Optimizer | Adam | NaturalGradientAdam | None = None,
    kl_annealing_steps: int | None = None,
    num_importance_samples: int = 1,
    seed: int = 0,
    callbacks: Sequence[Callback] = (),
    callback_interval: int = 100,
    progress: bool = True,
    jit_compile: bool = False,
    strategy: tf.distribute.Strategy | None = None,
    checkpoint_directory: str | Path | None = None,
    seconds_between_checkpoints: float = 60.0,
) -> TrainingHistory:
    """Maximise a model's bound by stochastic gradients, in a compiled loop.

    The protocol says how the learning rate falls and how the weight of the log ratios grows from 0
    to 1 in the first steps: see :data:`PROTOCOLS`.

    Ctrl-C ends the run after the present few steps and keeps what was learned. Two runs with one
    seed, from the same parameters, are identical; where the likelihood may draw from TensorFlow's
    global generator (classes of your own), the seed is also made the global one.

    :param model: The model, changed in place.
    :param data: X [N, D] and Y [N, P], of which NaN are missing, and weights [N] if rows are to
        count more or less than once. A stream of batches goes through a loop of your own, with
        ``model.training_loss_closure``.
    :param num_steps: Number of gradient steps.
    :param batch_size: Rows of a minibatch, drawn without replacement within each epoch; None for
        the protocol's, which by default is all rows up to 2,000 and 1,000 above.
    :param protocol: "fast"; "papers" for theirs, which takes more steps to the same bound;
        "natural" for a model with ``natural_parameters``; "networks", or their paper's "vmg". None
        for the one that the model was built with, which is "fast" where none was named.
    :param optimizer: None for the protocol's. A :class:`NaturalGradientAdam` also takes natural
        gradients. One of Keras that averages iterates (``use_ema``) leaves the model at the
        average.
    :param kl_annealing_steps: When the weight of the log ratios reaches 1; None for the protocol's.
        Where hidden layers fall back to the prior (log ratios near 0, a low bound), a longer
        annealing helps.
    :param num_importance_samples: Number of draws, K, of each row's latent variables: 1 for the
        evidence lower bound, more for the importance-weighted one.
    :param seed: For draws and minibatches.
    :param callbacks: Called every ``callback_interval`` steps and after the last one. A
        :class:`RunCallback` is also told of beginning and end, and may leave the model with other
        parameters than the last ones.
    :param callback_interval: Steps between calls of the callbacks.
    :param progress: Whether to show a progress bar, with the bound per datum.
    :param jit_compile: Whether steps are compiled with XLA. On a GPU that takes 20 to 50 seconds
        before the first one; later ones take a fifth less time, or several times as much where
        there are 1,000 inducing points. On a CPU all are slower.
    :param strategy: Whose replicas take every step together: a ``MirroredStrategy``, a
        ``MultiWorkerMirroredStrategy`` (where every worker makes the same call) or a
        ``OneDeviceStrategy`` of ``tf.distribute``. Model and optimiser must have been made in its
        scope. Each of its replicas takes some rows of every batch, with the draws that one device
        would have; where each row has random numbers of its own (latent variables, networks), other
        ones. What a likelihood draws from TensorFlow's global generator is the same on all. None
        for that of the scope in which ``fit`` is called, or for one device.
    :param checkpoint_directory: Where the state of training is saved: now and then, when Ctrl-C or
        a callback ends it, and after the last step. SIGTERM and SIGHUP wait until it is saved, and
        then do what they would have done. A call that finds a state there goes on from
        it, and ends like one that was never cut off, unless the likelihood draws from
        TensorFlow's global generator. The settings, the data, the kinds of model and optimiser and
        what is trained must be the same; an optimiser's rates are taken on trust. If the last state
        is damaged, a warning says so, and the run goes on from the one before it. None for no
        saving.
    :param seconds_between_checkpoints: Least time between two saves in the course of training.
    :raises UserWarning: As a warning, if :func:`save_model` will refuse the model.
    :raises CollapseWarning: As a warning, after 100 steps and more, if the model explains
        everything as noise: see
        :meth:`VariationalModel.collapsed_layers`.
    :raises ValueError: If an argument or the data cannot be used, ``checkpoint_directory`` cannot
        be written or holds another run, or no state in it is intact; nothing has been computed
        then.
    :raises BlockingIOError: If another run uses ``checkpoint_directory``.
    :raises OSError: If the state cannot be saved, such as on a full disk; the model has what was
        learned, and the state that was saved before is kept.
    :raises NonFiniteBoundError: If a step's bound or gradient is not finite. The message names
        step and layer; the model is left at the last state whose bound was finite.
    """
    check_process()
    check_instance(VariationalModel, model=model)
    _check_objective(model)
    warn_if_unsaved(model)
    if not isinstance(callbacks, Sequence) or not all(map(callable, callbacks)):
        raise ValueError(f"callbacks must be a sequence of functions, got {callbacks!r}.")
    check_integers(at_least=0, seed=seed)
    check_integers(
        num_steps=num_steps,
        callback_interval=callback_interval,
        num_importance_samples=num_importance_samples,
    )
    if batch_size is not None:
        check_integers(batch_size=batch_size)
    if kl_annealing_steps is not None:
        check_integers(at_least=0, kl_annealing_steps=kl_annealing_steps)
    check_not_negative(seconds_between_checkpoints=seconds_between_checkpoints)
    check_flags(progress=progress, jit_compile=jit_compile)
    protocol = cast(ProtocolName, model.protocol) if protocol is None else protocol
    check_choice(PROTOCOLS, protocol=protocol)
    devices = Devices(model, strategy)
    batches = make_batches(model, data, batch_size, PROTOCOLS[protocol].batch_size, seed)
    if may_draw_globally(model.likelihood):
        tf.random.set_seed(seed)  # not in any case: TensorFlow forgets what it made of functions
    if kl_annealing_steps is None:
        kl_annealing_steps = PROTOCOLS[protocol].kl_annealing_steps(model, num_steps)
    if optimizer is None:
        with devices.scope():
            optimizer = PROTOCOLS[protocol].optimizer(model, num_steps)
    loop = CompiledLoop(
        model,
        batches,
        optimizer,
        kl_annealing_steps,
        as_seed(seed),
        num_importance_samples,
        jit_compile=jit_compile,
        devices=devices,
    )

    checkpoint: contextlib.AbstractContextManager[TrainingCheckpoint | None]
    checkpoint = contextlib.nullcontext()
    if checkpoint_directory is not None:
        settings = {
            "num_steps": num_steps,
            "batch_size": batch_size,
            "protocol": protocol,
            "kl_annealing_steps": kl_annealing_steps,
            "num_importance_samples": num_importance_samples,
            "seed": seed,
        }
        checkpoint = opened_checkpoint(
            checkpoint_directory,
            loop.state,
            settings | run_identity(model, data, optimizer),
            callbacks,
            seconds_between_saves=seconds_between_checkpoints,
            is_writer=devices.is_first,
        )
    with checkpoint as saved:
        run = TrainingRun(model, loop, num_steps, callbacks, callback_interval, saved, devices)
        history = run.take_steps(progress)
    if loop.precisions and getattr(optimizer, "use_ema", False):
        # The best rates are those of the averages, not averages of rates.
        with devices.scope():
            nothing_else = Adam(0.0)
        rows = make_batches(model, data, int(model.num_data), PROTOCOLS[protocol].batch_size, seed)
        last = CompiledLoop(model, rows, nothing_else, 0, as_seed(seed), devices=devices)
        last.run(1)
    _warn_of_collapse(model, history)
    return history


def _check_objective(model: VariationalModel) -> None:
    for name in ("elbo", "maximum_log_likelihood_objective"):
        if getattr(type(model), name) is not getattr(VariationalModel, name):
            raise ValueError(
                f"model must not override {name}, which fit does not call, got "
                f"{type(model).__name__}: override elbo_terms, whose weighted sum is maximised, or "
                "minimise training_loss_closure(data) in a loop of your own."
            )


def _warn_of_collapse(model: VariationalModel, history: TrainingHistory) -> None:
    if history.num_steps < _STEPS_TO_JUDGE:
        return
    output = len(model.layers) - 1
    if output in model.collapsed_layers(history.nats):
        warnings.warn(
            "The model explains everything as noise: its functions have learned "
            f"{history.nats[output]:.2g} nats from the data. If there is a signal in these, "
            "select_model (depth='auto' of the estimators) starts at a Gaussian process that has "
            "found it; lengthscales of the order of sqrt(2 D), or a longer annealing, may help.",
            CollapseWarning,
            stacklevel=3,
        )
