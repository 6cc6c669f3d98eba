"""A run that was cut off goes on from its checkpoint, and ends as if it had not been."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.keras import tf_keras
from model_reference import tiny_model, toy_data

from gpflow_dwp import DeepWishartProcess, fit
from gpflow_dwp.files import held
from gpflow_dwp.training import TrainingHistory, TrainingProgress

DATA = toy_data()


def run(directory: Path | None, **arguments: Any) -> tuple[DeepWishartProcess, TrainingHistory]:
    """Train a model of the same start for 10 steps."""
    own = {name: arguments.pop(name) for name in ("kernel", "num_inducing") if name in arguments}
    fixed = arguments.pop("fixed", None)
    model = tiny_model(arguments.pop("depth", 1), posterior="GW", whiten=True, **own)
    if fixed is not None:
        gpflow.set_trainable(getattr(model.layers[0].kernel, fixed), False)
    arguments = {"data": DATA, "num_steps": 10, "callback_interval": 4, **arguments}
    history = fit(model, progress=False, checkpoint_directory=directory, **arguments)
    return model, history


def stop(progress: TrainingProgress) -> bool:
    return progress.step >= 4


@pytest.mark.parametrize("arguments", [{"depth": 2}, {"batch_size": 5}])
def test_the_end_is_that_of_an_uninterrupted_run(arguments: dict[str, Any], tmp_path: Path) -> None:
    whole, expected = run(None, **arguments)

    seconds = []

    def stop_in_time(progress: TrainingProgress) -> bool:
        seconds.append(progress.seconds)
        return stop(progress)

    _, first = run(tmp_path, callbacks=[stop_in_time], **arguments)
    resumed, history = run(tmp_path, **arguments)

    assert first.num_steps == 4
    assert history.stop_reason == "took all 10 steps"
    assert history.seconds > seconds[-1]
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
        ({"optimizer": tf_keras.optimizers.SGD(0.01)}, "optimizer='Adam', got 'SGD'"),
        ({"data": (DATA[0] + 1.0, DATA[1])}, r"data='\[12, 2\] and \[12, 1\], SHA-256 "),
        ({"depth": 2}, r"model=\['DeepWishartProcess', "),
        (
            {"fixed": "variance"},
            r"\.layers\[0\]\.kernel\.variance='float64 \[\]', got 'float64 \[\], not trainable'",
        ),
        (
            {"num_inducing": 4},
            r"\.layers\[0\]\.pseudo_targets='float64 \[5, 1\]', got '.*\[4, 1\]'",
        ),
    ],
)
def test_another_run_is_refused(changes: dict[str, Any], message: str, saved: Path) -> None:
    with pytest.raises(ValueError, match=f"holds a run with {message}"):
        run(saved, **changes)


@pytest.mark.parametrize("place", ["file", "file/below", "a\0b"])
def test_what_cannot_be_written_is_refused_before_any_step(place: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine", encoding="utf-8")

    with pytest.raises(ValueError, match="checkpoint_directory .* cannot be written: "):
        run(tmp_path / place, callbacks=[not_called])
    assert file.read_text(encoding="utf-8") == "mine"


def not_called(progress: TrainingProgress) -> None:
    raise RuntimeError("a step was taken")


def test_one_run_at_a_time(saved: Path) -> None:
    with held(saved), pytest.raises(BlockingIOError, match=f"{saved} is in use by another process"):
        run(saved)


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that took all its steps, with the last two of its saves."""
    directory = tmp_path_factory.mktemp("ended")
    nothing: Any = [lambda progress: None]
    run(directory, callbacks=nothing, callback_interval=5, seconds_between_checkpoints=0.0)
    return directory


@pytest.fixture
def two_saves(ended: Path, tmp_path: Path) -> Path:
    """A copy of that, to be damaged."""
    return Path(shutil.copytree(ended, tmp_path / "state"))


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def numbers(directory: Path) -> list[int]:
    """The steps of the saves that are there."""
    return sorted(int(path.stem.partition("-")[2]) for path in directory.glob("*.index"))


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("index", flip),
        ("data-00000-of-00001", Path.unlink),
    ],
)
def test_a_damaged_save_is_named_and_the_one_before_it_taken(
    name: str, damage: Callable[[Path], None], two_saves: Path
) -> None:
    _, newest = numbers(two_saves)
    damage(two_saves / f"state-{newest}.{name}")

    message = f"state-{newest} is damaged, and left out"
    with pytest.warns(UserWarning, match=message):
        _, history = run(two_saves)

    assert history.num_steps == 10
    for index in two_saves.glob("*.index"):
        flip(index)
    with (
        pytest.warns(UserWarning, match="is damaged"),
        pytest.raises(ValueError, match=f"{two_saves} holds no state that is intact"),
    ):
        run(two_saves)


def test_a_full_disk_keeps_what_was_saved_and_what_was_learned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(progress: TrainingProgress) -> None:
        if progress.step == 8:
            monkeypatch.setattr(tf.train.Checkpoint, "_write", write_to_full_disk)

    model = tiny_model(1, posterior="GW", whiten=True)
    start = [variable.numpy() for variable in model.trainable_variables]
    with pytest.raises(OSError, match="the state of training could not be saved") as error:
        fit(
            model,
            DATA,
            10,
            callbacks=[fill],
            callback_interval=4,
            progress=False,
            checkpoint_directory=tmp_path,
            seconds_between_checkpoints=0.0,
        )

    assert error.value.errno == errno.ENOSPC and error.value.filename == str(tmp_path)
    assert any(
        (variable.numpy() != value).any()
        for variable, value in zip(model.trainable_variables, start, strict=True)
    )
    monkeypatch.undo()
    _, expected = run(None)
    _, history = run(tmp_path)
    np.testing.assert_array_equal(history.elbo, expected.elbo)


def write_to_full_disk(checkpoint: Any, path: str, options: Any) -> None:
    raise tf.errors.ResourceExhaustedError(None, None, f"{path}; No space left on device")
