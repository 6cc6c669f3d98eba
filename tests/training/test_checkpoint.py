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
from gpflow.utilities import read_values
from model_reference import tiny_model, toy_data

from gpflow_dwp import DeepWishartProcess, fit
from gpflow_dwp.files import held
from gpflow_dwp.training import TrainingHistory, TrainingProgress

DATA = toy_data()


def run(
    directory: Path | None, depth: int = 1, size: int = 5, fixed: bool = False, **arguments: Any
) -> tuple[DeepWishartProcess, TrainingHistory]:
    """Train a model of the same start for 10 steps."""
    model = tiny_model(depth, posterior="GW", whiten=True, num_inducing=size)
    gpflow.set_trainable(model.layers[0].kernel.variance, not fixed)
    arguments = {"data": DATA, "num_steps": 10, "callback_interval": 4, **arguments}
    history = fit(model, progress=False, checkpoint_directory=directory, **arguments)
    return model, history


def test_the_end_is_that_of_an_uninterrupted_run(tmp_path: Path) -> None:
    """Catches random numbers, or a place in the data, that begin anew."""
    seconds, random = [], {"depth": 2, "batch_size": 5}

    def stop(progress: TrainingProgress) -> bool:
        seconds.append(progress.seconds)
        return progress.step >= 4

    whole, expected = run(None, **random)
    _, first = run(tmp_path, callbacks=[stop], **random)
    resumed, history = run(tmp_path, **random)

    assert first.num_steps == 4
    assert history.stop_reason == "took all 10 steps"
    assert history.seconds > seconds[-1]
    np.testing.assert_array_equal(history.data_term, expected.data_term)
    np.testing.assert_array_equal(history.log_ratios, expected.log_ratios)
    np.testing.assert_equal(read_values(resumed), read_values(whole))


@pytest.mark.parametrize("kind", [RuntimeError, OSError])
def test_a_run_that_died_goes_on_from_its_last_save(kind: type[OSError], tmp_path: Path) -> None:
    """Of an error, or of a full disk, which must not take what was learned."""
    steps, learned = [], []

    def write_to_full_disk(checkpoint: Any, path: str, options: Any) -> None:
        raise tf.errors.ResourceExhaustedError(None, None, f"{path}; No space left on device")

    def die(progress: TrainingProgress) -> None:
        if progress.step == 8:
            if kind is RuntimeError:
                raise RuntimeError
            patch.setattr(tf.train.Checkpoint, "_write", write_to_full_disk)
            learned.extend([progress.model, read_values(progress.model)])

    with pytest.MonkeyPatch.context() as patch, pytest.raises(kind) as error:
        run(tmp_path, callbacks=[die], seconds_between_checkpoints=0.0)
    if learned:
        assert "the state of training could not be saved" in str(error.value)
        assert error.value.errno == errno.ENOSPC and error.value.filename == str(tmp_path)
        np.testing.assert_equal(read_values(learned[0]), learned[1])

    _, expected = run(None)
    note: Any = [lambda progress: steps.append(progress.step)]
    _, history = run(tmp_path, callbacks=note, callback_interval=1)
    assert 4 < steps[0] <= 8 and steps[-1] == 10
    np.testing.assert_array_equal(history.elbo, expected.elbo)


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that took all its steps, with the last two of its saves."""
    directory = tmp_path_factory.mktemp("ended")
    nothing: Any = [lambda progress: None]
    run(directory, callbacks=nothing, callback_interval=5, seconds_between_checkpoints=0.0)
    return directory


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_steps": 12}, "num_steps=10, got 12"),
        ({"optimizer": tf_keras.optimizers.SGD(0.01)}, "optimizer='Adam', got 'SGD'"),
        ({"data": (DATA[0] + 1.0, DATA[1])}, r"data='\[12, 2\] and \[12, 1\], SHA-256 "),
        ({"depth": 2}, r"model=\['DeepWishartProcess', "),
        ({"fixed": True}, r"\S*kernel\.variance='float64 \[\]', got 'float64 \[\], not trainable'"),
        ({"size": 4}, r"\S*\.pseudo_targets='float64 \[5, 1\]', got '.*\[4, 1\]'"),
    ],
)
def test_another_run_is_refused(changes: dict[str, Any], message: str, ended: Path) -> None:
    with pytest.raises(ValueError, match=f"holds a run with {message}"):
        run(ended, **changes)


@pytest.mark.parametrize("place", ["file", "file/below", "a\0b"])
def test_what_cannot_be_written_is_refused_before_any_step(place: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine", encoding="utf-8")

    taken: list[TrainingProgress] = []
    with pytest.raises(ValueError, match="checkpoint_directory .* cannot be written: "):
        run(tmp_path / place, callbacks=[taken.append])
    assert not taken and file.read_text(encoding="utf-8") == "mine"


def test_one_run_at_a_time(ended: Path) -> None:
    with held(ended), pytest.raises(BlockingIOError, match=f"{ended} is in use by another process"):
        run(ended)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("name", "damage"), [("index", flip), ("data-00000-of-00001", Path.unlink)]
)
def test_a_damaged_save_is_named_and_the_one_before_it_taken(
    name: str, damage: Callable[[Path], None], ended: Path, tmp_path: Path
) -> None:
    two_saves = Path(shutil.copytree(ended, tmp_path / "state"))
    damage(two_saves / f"state-10.{name}")

    with pytest.warns(UserWarning, match="state-10 is damaged, and left out"):
        _, history = run(two_saves)

    assert history.num_steps == 10
    for index in two_saves.glob("*.index"):
        flip(index)
    with (
        pytest.warns(UserWarning, match="is damaged"),
        pytest.raises(ValueError, match=f"{two_saves} holds no state that is intact"),
    ):
        run(two_saves)
