"""Arrays and other arguments that cannot be used are refused by an error that names them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from faults.conftest import NO_NUMBERS, attempt, not_refused
from model_reference import tiny_model, toy_data

from gpflow_dwp import DeepWishartProcess, build_deep_wishart_process, fit
from gpflow_dwp.layers import GlobalInducingGPLayer, RegressionGPLayer, WishartLayer
from gpflow_dwp.models import load_model, model_from_bytes, save_model
from gpflow_dwp.serving import export_model

IN_SHORT = 20
REFUSALS = (ValueError, FileExistsError, FileNotFoundError, NotADirectoryError)
X, Y = toy_data()
N, D = X.shape
NAN = float("nan")
NO_COUNT = (0, -1, 1.5, NAN, "2", None, True, np.array([1, 2]))
NO_SIZE = (*NO_COUNT, 2**31, 2**62)
NO_FLAG = ("no", 1, None, 0.0, np.array([True]), [])
NO_NAME = ("", "nope", None, 3)
NO_JITTER = (NAN, -1e-6, float("inf"), "x", True, np.array([1e-6, 1e-6]), 1j)
NO_SEED = (-1, 1.5, "x", NAN)
NO_KERNEL = ("", "nope", 3, [], [gpflow.kernels.RBF()], [3, 3], [gpflow.kernels.RBF] * 2)
NO_LIKELIHOOD = ("Gaussian", 3, gpflow.likelihoods.Gaussian)


def wishart() -> WishartLayer:
    return WishartLayer(gpflow.kernels.RBF(), df=2, num_inducing=2)


def built(X: Any, Y: Any) -> Any:
    return build_deep_wishart_process((X, Y), 1).elbo((X, Y))


def with_parts(**given: Any) -> Any:
    """A deep Wishart process of parts, of which some may be wrong."""
    output = GlobalInducingGPLayer(gpflow.kernels.RBF(), 1, pseudo_targets=np.zeros((2, 1)))
    fine = {"layers": [wishart(), output], "likelihood": gpflow.likelihoods.Gaussian()}
    fine |= {"inducing_variable": X[:2], "num_data": N, **given}
    return DeepWishartProcess(**fine).elbo((X, Y))


MODEL, TWICE = tiny_model(1), wishart()
regression = partial(RegressionGPLayer, gpflow.kernels.RBF(), 2)
# Each function with each value that an argument must not have.
ARGUMENTS: dict[Callable[..., Any], dict[str, tuple[Any, ...]]] = {
    partial(build_deep_wishart_process, (X, Y), depth=2, num_inducing=2): {
        **dict.fromkeys(("depth", "num_inducing"), NO_SIZE[:-2]),
        "num_samples": (0, -1, 1.5, "2", True),
        "width": (0, -1, 1.5, NAN, "2", True, 2**31),
        **dict.fromkeys(("posterior", "inducing"), NO_NAME),
        "output": ("", "nope", 3),
        "kernel": NO_KERNEL,
        "likelihood": NO_LIKELIHOOD,
        "whiten": NO_FLAG,
        "expected_log_ratio": ("no", 1, 0.0, []),
        "jitter": NO_JITTER,
        "seed": NO_SEED,
    },
    partial(fit, MODEL, (X, Y), num_steps=1, progress=False): {
        **dict.fromkeys(("num_steps", "callback_interval", "num_importance_samples"), NO_COUNT),
        "batch_size": (0, -1, 1.5, "x", NAN, True),
        "protocol": ("", "nope", 3),
        "optimizer": ("Adam", 3, tf.optimizers.Adam),
        "kl_annealing_steps": (-1, 1.5, "x", NAN, True),
        "seed": (*NO_SEED, None),
        "callbacks": (3, [3], "x", None),
        "progress": ("no",),
        "jit_compile": ("no", 1, 0.0, []),
        "strategy": (3, "mirrored", tf.distribute.OneDeviceStrategy, ["CPU:0"]),
        "checkpoint_directory": ("a_file", "a_file/x", "/proc/nope"),
        "seconds_between_checkpoints": (-1.0, NAN, "x", None),
    },
    with_parts: {
        "layers": ([], None, 3, [TWICE, TWICE], [3]),
        "likelihood": NO_LIKELIHOOD,
        "inducing_variable": (None, "x", X[:3], np.full([2, D], NAN), X[:2, 0], X[:2] + 1j),
        **dict.fromkeys(("num_data", "num_samples", "num_prediction_samples"), NO_COUNT),
    },
    load_model: {"directory": ("absent", "a_file", ".")},
    model_from_bytes: {"content": (None, 3, "x", b"", b"PK", bytes(99))},
    partial(save_model, model=MODEL, directory="saved"): {
        "directory": ("a_file",),
        "model": (None, 3, "x", gpflow.kernels.RBF()),
    },
    partial(export_model, model=MODEL, directory="program"): {
        "model": (None, 3),
        "directory": ("a_file", "a_folder"),
        "num_samples": (0, -1, 1.5, "x", True),
        "seed": (1.5, "x", NAN),
        "input_standardiser": (3, "x"),
    },
    partial(MODEL.predict_f, X): {"num_samples": (0, -1, 1.5, "x", True, NAN)},
}


def cases() -> Iterator[tuple[str, Callable[[], Any], str]]:
    """What is tried, the call, and a pattern of its refusal."""
    for name, call in (("build", built), ("RegressionGPLayer", regression)):
        for kind, make in NO_NUMBERS.items():
            yield f"{name}, X {kind}", partial(call, make(X), Y), r"\bX\b|data|inputs"
            if kind != "nan" or call == regression:
                yield f"{name}, Y {kind}", partial(call, X, make(Y)), r"\b[Yy]\b|data|targets"
    for function, arguments in ARGUMENTS.items():
        for name, values in arguments.items():
            for value in values:
                text = value if isinstance(value, str) and value.strip() else name
                pattern = f"{name}|{re.escape(text)}|not a saved model"
                yield f"{name}={value!r}"[:80], partial(function, **{name: value}), pattern


@pytest.mark.usefixtures("quick")
@pytest.mark.filterwarnings("ignore")  # what becomes of a warning is no matter here
def test_arguments_of_no_use_are_refused(here: Path, some: Any) -> None:
    (here / "a_file").write_text("mine")
    (here / "a_folder").mkdir()
    (here / "a_folder/mine.txt").write_text("mine")
    wrong = []
    for what, call, pattern in some([*cases()], IN_SHORT):
        wrong += not_refused(attempt(call, *REFUSALS), pattern, what)
    assert not wrong, "\n".join(wrong)
    assert (here / "a_file").read_text() == (here / "a_folder/mine.txt").read_text() == "mine"
