"""Training in one call."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf
from gpflow.base import RegressionData
from gpflow.keras import tf_keras
from tqdm.auto import tqdm

from gpflow_dwp.models import VariationalModel
from gpflow_dwp.objectives import BoundTerms
from gpflow_dwp.random import as_seed
from gpflow_dwp.training._batches import make_batches
from gpflow_dwp.training._checkpoint import TrainingCheckpoint
from gpflow_dwp.training._failure import describe_failure
from gpflow_dwp.training._interrupt import deferred_interrupt
from gpflow_dwp.training.adam import Adam
from gpflow_dwp.training.callbacks import Callback, RunCallback, TrainingProgress
from gpflow_dwp.training.history import TrainingHistory
from gpflow_dwp.training.loop import CompiledLoop, StepRecords
from gpflow_dwp.training.natural_gradient import NaturalGradientAdam
from gpflow_dwp.training.protocol import PROTOCOLS, ProtocolName
from gpflow_dwp.validation import check_integers

__all__ = ["fit"]

_SECONDS_PER_CALL = 0.5


def fit(
    model: VariationalModel,
    data: RegressionData | tf.data.Dataset,
    num_steps: int = 20_000,
    *,
    batch_size: int | None = None,
    protocol: ProtocolName = "fast",
    optimizer: tf_keras.optimizers.Optimizer | Adam | NaturalGradientAdam | None = None,
    kl_annealing_steps: int | None = None,
    num_importance_samples: int = 1,
    doubly_reparameterized: bool = False,
    seed: int = 0,
    callbacks: Sequence[Callback] = (),
    callback_interval: int = 100,
    progress: bool = True,
    jit_compile: bool | None = None,
    checkpoint_directory: str | Path | None = None,
    seconds_between_checkpoints: float = 60.0,
) -> TrainingHistory:
    """Maximise a model's bound by stochastic gradients, in a compiled loop.

    The protocol says how the learning rate falls and how the weight of the log ratios grows from 0
    to 1 in the first steps: see :data:`PROTOCOLS`.

    Ctrl-C ends the run after the present few steps and keeps what was learned. Two runs with one
    seed, from the same parameters, are identical; the seed is also made TensorFlow's global one,
    because some likelihoods draw from it.

    :param model: The model, changed in place.
    :param data: X [N, D] and Y [N, P], or a dataset of batches of them.
    :param num_steps: Number of gradient steps.
    :param batch_size: Rows of a minibatch, drawn without replacement within each epoch; None for
        all rows at every step.
    :param protocol: "fast"; "papers" for theirs, which takes more steps to the same bound;
        "natural" for a :class:`LatentVariableDeepGP`; or "vmg" for a matrix-Gaussian network.
    :param optimizer: None for the protocol's. A :class:`NaturalGradientAdam` also takes natural
        gradients.
    :param kl_annealing_steps: When the weight of the log ratios reaches 1; None for the protocol's.
        Where hidden layers fall back to the prior (log ratios near 0, a low bound), a longer
        annealing helps.
    :param num_importance_samples: K, the draws of each datum's latent variables: 1 for the
        evidence lower bound, more for the importance-weighted one, whose local log ratios are not
        annealed.
    :param doubly_reparameterized: Whether encoders of latent variables get gradients whose signal
        does not vanish as K grows, of a :class:`LatentVariableDeepGP`.
    :param seed: For draws and minibatches.
    :param callbacks: Called every ``callback_interval`` steps and after the last one. A
        :class:`RunCallback` is also told of beginning and end, and may leave the model with other
        parameters than the last ones.
    :param callback_interval: Steps between calls of the callbacks.
    :param progress: Whether to show a progress bar, with the bound per datum.
    :param jit_compile: Whether steps are compiled with XLA; None for: if there is a GPU.
    :param checkpoint_directory: Where the state of training is saved: now and then, when Ctrl-C or
        a callback ends it, and after the last step. A call that finds a state there goes on from
        it, and ends like one that was never cut off, unless the likelihood draws from
        TensorFlow's global generator. A dataset must be one whose iterator TensorFlow can save,
        and ends so only if it does not reshuffle in each epoch. None for no saving.
    :param seconds_between_checkpoints: Least time between two saves in the course of training.
    :raises ValueError: If an argument or the data cannot be used; nothing has been computed then.
    :raises NonFiniteBoundError: If a step's bound or gradient is not finite. The message names
        step and layer; the model is left at the last state whose bound was finite.
    """
    check_integers(
        num_steps=num_steps,
        callback_interval=callback_interval,
        num_importance_samples=num_importance_samples,
    )
    if batch_size is not None:
        check_integers(batch_size=batch_size)
    if kl_annealing_steps is not None:
        check_integers(at_least=0, kl_annealing_steps=kl_annealing_steps)
    if not seconds_between_checkpoints >= 0.0:
        raise ValueError(
            f"seconds_between_checkpoints must not be negative, got {seconds_between_checkpoints}."
        )
    if protocol not in PROTOCOLS:
        raise ValueError(f"protocol must be one of {', '.join(PROTOCOLS)}, got {protocol!r}.")
    next_batch, batches_state = make_batches(model, data, batch_size, seed)
    if kl_annealing_steps is None:
        kl_annealing_steps = PROTOCOLS[protocol].kl_annealing_steps(model, num_steps)
    if optimizer is None:
        optimizer = PROTOCOLS[protocol].optimizer(model, num_steps)
    if jit_compile is None:
        jit_compile = bool(tf.config.list_logical_devices("GPU"))
    loop = CompiledLoop(
        model,
        next_batch,
        optimizer,
        kl_annealing_steps,
        as_seed(seed),
        num_importance_samples=num_importance_samples,
        doubly_reparameterized=doubly_reparameterized,
        jit_compile=jit_compile,
    )

    settings = {
        "num_steps": num_steps,
        "batch_size": batch_size,
        "protocol": protocol,
        "kl_annealing_steps": kl_annealing_steps,
        "seed": seed,
        **(
            {}
            if num_importance_samples == 1
            else {"num_importance_samples": num_importance_samples}
        ),
        **({"doubly_reparameterized": True} if doubly_reparameterized else {}),
    }
    staged = [callback for callback in callbacks if isinstance(callback, RunCallback)]
    past = BoundTerms(np.zeros(0), np.zeros((0, len(model.layers))))
    checkpoint, seconds_before = None, 0.0
    if checkpoint_directory is not None:
        checkpoint = TrainingCheckpoint(
            checkpoint_directory, loop, batches_state, settings, callbacks
        )
        past, seconds_before = checkpoint.restore() or (past, 0.0)
    done = len(past.data)
    # The next call of the callbacks averages over all steps since the last one, resumed or not.
    records, reported = _cut(past, done - done % callback_interval), 1
    answers = [callback.begin(done, model) for callback in staged]
    stopped = any(answers)
    stop_reason = f"took all {num_steps} steps"
    start = time.perf_counter() - seconds_before
    with (
        deferred_interrupt() as interrupted,
        tqdm(total=num_steps, initial=done, disable=not progress, unit="step") as bar,
    ):
        interval = callback_interval if callbacks else num_steps
        if stopped:
            stop_reason = f"a callback ended the run after step {done}"
        for record in _calls(loop, done, done if stopped else num_steps, interval):
            records.append(record)
            if record.failed:
                raise describe_failure(model, loop, record, done)
            done += len(record.terms.data)
            bar.update(len(record.terms.data))
            bar.set_postfix_str(f"bound per datum {_mean_bound([record]) / model.num_data:.3f}")
            if callbacks and (done % callback_interval == 0 or done == num_steps):
                bound, seconds = _mean_bound(records[reported:]), time.perf_counter() - start
                event = TrainingProgress(done, num_steps, bound, model, seconds)
                reported = len(records)
                wishes_to_stop = [callback(event) for callback in callbacks]
                if any(wishes_to_stop):
                    stop_reason = f"a callback ended the run after step {done}"
                    break
            if interrupted():
                stop_reason = f"interrupted after step {done}"
                break
            if checkpoint and checkpoint.seconds_since_save >= seconds_between_checkpoints:
                checkpoint.save(records, time.perf_counter() - start)
        if checkpoint:
            checkpoint.save(records, time.perf_counter() - start)
        for callback in staged:
            callback.finish(model)
    return TrainingHistory(
        np.concatenate([record.terms.data for record in records]),
        np.concatenate([record.terms.log_ratios for record in records]),
        int(model.num_data),
        time.perf_counter() - start,
        stop_reason,
    )


def _calls(loop: CompiledLoop, done: int, num_steps: int, interval: int) -> Iterator[StepRecords]:
    """Take all steps, in calls of about half a second that end at multiples of ``interval``."""
    first, size = done, 1
    while done < num_steps:
        size = min(size, num_steps - done, interval - done % interval)
        start = time.perf_counter()
        record = loop.run(size)
        seconds = time.perf_counter() - start
        yield record
        done += size
        if done > first + 1:  # The first call was mostly tracing.
            size = max(1, int(size * min(10.0, _SECONDS_PER_CALL / max(seconds, 1e-6))))


def _cut(terms: BoundTerms, step: int) -> list[StepRecords]:
    """The records before a step and from it on."""
    return [
        StepRecords(BoundTerms(terms.data[part], terms.log_ratios[part]), False, np.array([]))
        for part in (slice(step), slice(step, None))
    ]


def _mean_bound(records: Sequence[StepRecords]) -> float:
    terms = [record.terms for record in records]
    data = np.concatenate([term.data for term in terms])
    log_ratios = np.concatenate([term.log_ratios for term in terms])
    return float(np.mean(data + log_ratios.sum(axis=1)))
