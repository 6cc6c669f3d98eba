"""A run that was cut off goes on from its checkpoint, and ends as if it had not been."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from gpflow.keras import tf_keras
from model_reference import tiny_model, toy_data

from gpflow_dwp import DeepWishartProcess, fit
from gpflow_dwp.training import TrainingHistory, TrainingProgress

DATA = toy_data()


def run(directory: Path | None, **arguments: Any) -> tuple[DeepWishartProcess, TrainingHistory]:
    """Train a model of the same start for 10 steps."""
    own = {name: arguments.pop(name) for name in ("kernel", "num_inducing") if name in arguments}
    model = tiny_model(arguments.pop("depth", 1), posterior="GW", whiten=True, **own)
    arguments = {"data": DATA, "num_steps": 10, "callback_interval": 4, **arguments}
    history = fit(model, progress=False, checkpoint_directory=directory, **arguments)
    return model, history


def stop(progress: TrainingProgress) -> bool:
    return progress.step >= 4


def batches() -> tf.data.Dataset:
    # One that reshuffles in each epoch is not always restored to the same order by TensorFlow.
    dataset = tf.data.Dataset.from_tensor_slices(DATA)
    return dataset.shuffle(12, seed=3, reshuffle_each_iteration=False).batch(5)


@pytest.mark.parametrize("kind", ["full batch", "minibatches", "dataset"])
def test_the_end_is_that_of_an_uninterrupted_run(kind: str, tmp_path: Path) -> None:
    def arguments() -> dict[str, Any]:
        return {
            "full batch": {"depth": 2},
            "minibatches": {"batch_size": 5},
            "dataset": {"data": batches()},
        }[kind]

    whole, expected = run(None, **arguments())

    _, first = run(tmp_path, callbacks=[stop], **arguments())
    resumed, history = run(tmp_path, **arguments())

    assert first.num_steps == 4
    assert history.stop_reason == "took all 10 steps"
    assert history.seconds > first.seconds
    np.testing.assert_array_equal(history.data_term, expected.data_term)
    np.testing.assert_array_equal(history.log_ratios, expected.log_ratios)
    for variable, other in zip(resumed.trainable_variables, whole.trainable_variables, strict=True):
        np.testing.assert_array_equal(variable, other)


def test_a_run_that_died_goes_on_from_its_last_save(tmp_path: Path) -> None:
    def die(progress: TrainingProgress) -> None:
        if progress.step == 8:
            raise RuntimeError("died")

    _, expected = run(None)
    with pytest.raises(RuntimeError, match="died"):
        run(tmp_path, callbacks=[die], seconds_between_checkpoints=0.0)
    steps: list[int] = []

    def note(progress: TrainingProgress) -> None:
        steps.append(progress.step)

    _, history = run(tmp_path, callbacks=[note], callback_interval=1)

    assert 4 < steps[0] <= 8 and steps[-1] == 10
    np.testing.assert_array_equal(history.elbo, expected.elbo)


def test_a_finished_run_is_read_back(tmp_path: Path) -> None:
    model, expected = run(tmp_path)

    again, history = run(tmp_path)

    assert history.stop_reason == "took all 10 steps"
    np.testing.assert_array_equal(history.elbo, expected.elbo)
    for variable, other in zip(again.trainable_variables, model.trainable_variables, strict=True):
        np.testing.assert_array_equal(variable, other)


def test_the_optimiser_goes_on(tmp_path: Path) -> None:
    first, second = (tf_keras.optimizers.Adam(0.01) for _ in range(2))
    run(tmp_path, callbacks=[stop], optimizer=first)

    run(tmp_path, optimizer=second)

    assert int(second.iterations) == 10


def test_old_saves_are_removed(tmp_path: Path) -> None:
    run(
        tmp_path,
        callbacks=[lambda progress: None],
        callback_interval=1,
        seconds_between_checkpoints=0.0,
    )

    assert len(list(tmp_path.glob("*.index"))) == 2


def test_a_run_of_before_runs_were_described_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys.modules["gpflow_dwp.training.fit"], "describe_run", lambda *_: {})
        run(tmp_path, callbacks=[stop])

    _, history = run(tmp_path)

    assert history.stop_reason == "took all 10 steps"


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The state of a run after four steps."""
    directory = tmp_path_factory.mktemp("saved")
    run(directory, callbacks=[stop])
    return directory


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_steps": 12}, "num_steps=10, got 12"),
        ({"batch_size": 5}, "batch_size=None, got 5"),
        ({"seed": 1}, "seed=0, got 1"),
        ({"kl_annealing_steps": 3}, "kl_annealing_steps=1, got 3"),
        ({"protocol": "papers"}, "protocol='fast', got 'papers'"),
        ({"optimizer": tf_keras.optimizers.SGD(0.01)}, "optimizer='Adam', got 'SGD'"),
        ({"data": (DATA[0] + 1.0, DATA[1])}, r"data='\[12, 2\] and \[12, 1\], SHA-256 "),
        ({"depth": 2}, r"model=\['DeepWishartProcess', "),
        ({"kernel": "Matern32"}, r"model=\['DeepWishartProcess', .*'SquaredExponential'"),
        (
            {"num_inducing": 4},
            r"\.layers\[0\]\.pseudo_targets='float64 \[5, 1\]', got '.*\[4, 1\]'",
        ),
    ],
)
def test_another_run_is_refused(changes: dict[str, Any], message: str, saved: Path) -> None:
    with pytest.raises(ValueError, match=f"holds a run with {message}"):
        run(saved, **changes)


def test_a_file_is_refused_and_stays(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("mine", encoding="utf-8")

    with pytest.raises(ValueError, match="checkpoint_directory must be a folder, got a file"):
        run(file)
    assert file.read_text(encoding="utf-8") == "mine"
