"""Arrays and other arguments that cannot be used are refused by an error that names them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from faults.conftest import some
from faults.outcomes import Tally, attempt
from model_reference import tiny_model, toy_data

from gpflow_dwp import (
    DeepWishartProcess,
    build_deep_gaussian_process,
    build_deep_inverse_wishart_process,
    build_deep_wishart_process,
    fit,
)
from gpflow_dwp.estimator import DeepWishartClassifier, DeepWishartRegressor
from gpflow_dwp.layers import GlobalInducingGPLayer, RegressionGPLayer, WishartLayer
from gpflow_dwp.models import load_model, model_from_bytes, model_to_bytes, save_model
from gpflow_dwp.objectives import Estimator
from gpflow_dwp.serving import export_model

PART = "bad arguments"
IN_SHORT = 50
X, Y = toy_data()
N, D = X.shape
NAN = float("nan")
# What is no matrix of finite numbers.
NO_MATRIX: dict[str, Callable[[np.ndarray], Any]] = {
    "None": lambda A: None,
    "text": lambda A: "X",
    "texts": lambda A: np.full(A.shape, "a"),
    "objects": lambda A: np.array([[object()] * A.shape[1]] * len(A)),
    "complex": lambda A: A + 1j,
    "dates": lambda A: np.full(A.shape, np.datetime64("2020-01-01")),
    "spans": lambda A: np.full(A.shape, np.timedelta64(1, "D")),
    "fields": lambda A: np.zeros(A.shape, dtype=[("x", float)]),
    "ragged": lambda A: [[1.0], *[[1.0, 2.0]] * (len(A) - 1)],
    "dictionary": lambda A: {"x": A},
    "nan": lambda A: np.where(np.arange(len(A))[:, None] == 1, np.nan, A),
    "inf": lambda A: np.where(np.arange(len(A))[:, None] == 1, -np.inf, A),
    "scalar": lambda A: 1.0,
    "vector": lambda A: A[:, 0],
    "cube": lambda A: A[:, :, None],
    "no rows": lambda A: A[:0],
    "no columns": lambda A: A[:, :0],
    "more columns": lambda A: np.hstack([A, A]),
    "other rows": lambda A: A[:-1],
}
# What a single array cannot be checked against, and lists of rows that stand for other shapes.
# What no rows predict is no rows.
FOR_ONE = set(NO_MATRIX) - {"other rows", "no rows"}
OF_NEW_MODELS = set(NO_MATRIX) - {"more columns"}
MISSING = {"nan"}  # in Y


def dataset(X: Any, Y: Any) -> Any:
    return tf.data.Dataset.from_tensor_slices((X, Y)).batch(4).repeat()


# What takes X and Y: the call, and which kinds are wrong for X and for Y.
WITH_PAIRS: dict[str, tuple[Callable[[Any, Any], Any], set[str], set[str]]] = {
    "build_deep_wishart_process": (
        lambda X, Y: build_deep_wishart_process((X, Y), 1, num_inducing=2).elbo((X, Y)),
        OF_NEW_MODELS,
        OF_NEW_MODELS - MISSING,
    ),
    "build_deep_gaussian_process": (
        lambda X, Y: build_deep_gaussian_process((X, Y), 1, num_inducing=2).elbo((X, Y)),
        OF_NEW_MODELS,
        OF_NEW_MODELS - MISSING,
    ),
    "fit": (
        lambda X, Y: fit(tiny_model(1), (X, Y), 1, progress=False),
        set(NO_MATRIX),
        set(NO_MATRIX) - MISSING,
    ),
    "elbo": (
        lambda X, Y: tiny_model(1).elbo((X, Y)),
        set(NO_MATRIX),
        set(NO_MATRIX) - MISSING,
    ),
    "elbo_terms": (
        lambda X, Y: tiny_model(1).elbo_terms((X, Y)),
        set(NO_MATRIX),
        set(NO_MATRIX) - MISSING,
    ),
    "predict_log_density": (
        lambda X, Y: tiny_model(1).predict_log_density((X, Y)),
        set(NO_MATRIX),
        set(NO_MATRIX) - MISSING,
    ),
    "posterior().predict_log_density": (
        lambda X, Y: tiny_model(1).posterior(2).predict_log_density((X, Y)),
        set(NO_MATRIX),
        set(NO_MATRIX) - MISSING,
    ),
    "fit(dataset)": (
        lambda X, Y: fit(tiny_model(1), dataset(X, Y), 1, progress=False),
        {"more columns", "vector", "cube", "no columns", "nan", "inf"},
        {"more columns", "cube", "no columns", "inf"},
    ),
    "RegressionGPLayer": (
        lambda X, Y: RegressionGPLayer(gpflow.kernels.RBF(), 2, X, Y),
        OF_NEW_MODELS,
        OF_NEW_MODELS,
    ),
}
# Their messages are scikit-learn's, and so are some of their types.
ESTIMATORS = (DeepWishartRegressor, DeepWishartClassifier)
WITH_ONE: dict[str, Callable[[Any], Any]] = {
    "predict_f": lambda X: tiny_model(1).predict_f(X),
    "predict_f(full_cov=True)": lambda X: tiny_model(1).predict_f(X, full_cov=True),
    "predict_y": lambda X: tiny_model(1).predict_y(X),
    "predict_f_samples": lambda X: tiny_model(1).predict_f_samples(X, 2),
    "posterior().predict_f": lambda X: tiny_model(1).posterior(2).predict_f(X),
    "posterior().sample_f": lambda X: tiny_model(1).posterior(2).sample_f(X),
}
NO_COUNT = (0, -1, 1.5, NAN, "2", None, True, np.array([1, 2]))
NO_SIZE = (*NO_COUNT, 2**31, 2**62)
NO_FLAG = ("no", 1, None, 0.0, np.array([True]), [])
NO_JITTER = (NAN, -1e-6, float("inf"), "x", True, np.array([1e-6, 1e-6]), 1j)
NO_SEED = (-1, 1.5, "x", NAN)
NO_KERNEL = ("", "nope", 3, [], [gpflow.kernels.RBF()], [3, 3], [gpflow.kernels.RBF] * 2)
NO_LIKELIHOOD = ("Gaussian", 3, gpflow.likelihoods.Gaussian)
_LAYER = {"kernel": gpflow.kernels.RBF(), "df": 2, "num_inducing": 2}


def build(**arguments: Any) -> Any:
    return build_deep_wishart_process((X, Y), **{"depth": 2, "num_inducing": 2, **arguments})


def train(**arguments: Any) -> Any:
    return fit(tiny_model(1), (X, Y), **{"num_steps": 1, "progress": False, **arguments})


def fit_estimator(estimator: type, X: Any, y: Any) -> Any:
    try:
        return estimator(depth=1, num_inducing=2, num_steps=1).fit(X, y)
    except TypeError as error:  # scikit-learn's own
        raise ValueError(str(error)) from error


def with_parts(**parts: Any) -> Any:
    """A deep Wishart process of parts, of which some may be wrong."""
    kernels = [gpflow.kernels.RBF(), gpflow.kernels.RBF()]
    fine = {
        "layers": [
            WishartLayer(kernels[0], 2, 2),
            GlobalInducingGPLayer(kernels[1], 1, num_inducing=2),
        ],
        "likelihood": gpflow.likelihoods.Gaussian(),
        "inducing_variable": X[:2],
        "num_data": N,
    }
    return DeepWishartProcess(**{**fine, **parts}).elbo((X, Y))


def hidden(kernel: Any) -> list[Any]:
    return [
        WishartLayer(kernel, 2, 2),
        GlobalInducingGPLayer(gpflow.kernels.RBF(), 1, num_inducing=2),
    ]


TWICE = WishartLayer(gpflow.kernels.RBF(), 2, 2)
# Each function with each value that an argument must not have.
ARGUMENTS: dict[Callable[..., Any], dict[str, tuple[Any, ...]]] = {
    build: {
        "depth": NO_SIZE,
        "num_inducing": NO_SIZE[:-2],
        "width": (0, -1, 1.5, NAN, "2", True, 2**31),
        "num_samples": NO_SIZE,
        "posterior": ("", "nope", None, 3),
        "inducing": ("", "nope", None, 3),
        "output": ("", "nope", 3),
        "kernel": NO_KERNEL,
        "likelihood": NO_LIKELIHOOD,
        "whiten": NO_FLAG,
        "expected_log_ratio": NO_FLAG,
        "stick_the_landing": NO_FLAG,
        "latent_dim": (-1, 1.5, "x", None, NAN, True),
        "jitter": NO_JITTER,
        "seed": NO_SEED,
    },
    train: {
        "num_steps": NO_COUNT,
        "batch_size": (0, -1, 1.5, "x", NAN, True),
        "protocol": ("", "nope", None, 3),
        "optimizer": ("Adam", 3, tf.optimizers.Adam),
        "kl_annealing_steps": (-1, 1.5, "x", NAN, True),
        "estimator": (3, "x", {"num_importance_samples": 2}),
        "seed": (*NO_SEED, None),
        "callbacks": (3, [3], "x", None),
        "callback_interval": NO_COUNT,
        "progress": ("no",),
        "jit_compile": ("no", 1, 0.0, []),
        "strategy": (3, "mirrored", tf.distribute.OneDeviceStrategy, ["CPU:0"]),
        "split": ("", "nope", None, 3),
        "checkpoint_directory": (3, b"x", "a_file", "a_file/x", "/proc/nope", ["x"]),
        "seconds_between_checkpoints": (-1.0, NAN, "x", None),
    },
    lambda **given: WishartLayer(**{**_LAYER, **given}): {
        "kernel": (None, "RBF", gpflow.kernels.RBF),
        "df": NO_COUNT,
        "num_inducing": NO_COUNT,
        "posterior": ("", "nope", None),
        "whiten": NO_FLAG,
        "jitter": NO_JITTER,
    },
    lambda **given: RegressionGPLayer(gpflow.kernels.RBF(), 2, X, Y, **given): {
        "jitter": NO_JITTER,
        "noise_variance": (0.0, -1.0, NAN, float("inf"), "x", True),
    },
    lambda **given: GlobalInducingGPLayer(
        gpflow.kernels.RBF(), 1, **{"num_inducing": 2, **given}
    ): {
        "num_inducing": NO_COUNT,
        "pseudo_targets": (
            np.full([2, 1], NAN),
            np.zeros([2, 2]),
            np.zeros(2),
            "x",
            1j * np.ones([2, 1]),
        ),
        "precision": (0.0, -1.0, NAN, "x"),
    },
    with_parts: {
        "layers": ([], None, 3, [TWICE, TWICE], [3]),
        "likelihood": NO_LIKELIHOOD,
        "inducing_variable": (None, "x", X[:3], np.full([2, D], NAN), X[:2, 0], X[:2] + 1j),
        "num_data": NO_COUNT,
        "num_samples": NO_COUNT,
        "num_prediction_samples": NO_COUNT,
    },
    lambda **given: build_deep_inverse_wishart_process((X, Y), 2, num_inducing=2, **given): {
        "jitter": NO_JITTER,
        "kernel": NO_KERNEL,
        "num_samples": NO_COUNT,
    },
    lambda **given: load_model(**given): {
        "directory": (None, 3, b"x", "absent", "a_file", ".", "\0")
    },
    lambda **given: model_from_bytes(**given): {"content": (None, 3, "x", b"", b"PK", bytes(99))},
    lambda **given: save_model(tiny_model(1), **given): {
        "directory": (None, 3, "a_file", "a_file/x", "a_folder")
    },
    lambda **given: save_model(directory="saved", **given): {
        "model": (None, 3, "x", gpflow.kernels.RBF())
    },
    lambda **given: model_to_bytes(**given): {"model": (None, 3, gpflow.kernels.RBF())},
    lambda **given: export_model(**{"model": tiny_model(1), "directory": "program", **given}): {
        "model": (None, 3),
        "directory": (None, 3, "a_file", "a_folder", "a_file/x"),
        "num_samples": (0, -1, 1.5, "x", True),
        "seed": (1.5, "x", NAN),
        "input_standardiser": (3, "x"),
    },
    lambda **given: tiny_model(1).predict_f(X, **given): {
        "num_samples": (0, -1, 1.5, "x", True, NAN),
    },
    lambda **given: tiny_model(1).elbo((X, Y), **given): {
        "estimator": (None, 3, "x"),
    },
    lambda **given: Estimator(**given): {
        "num_importance_samples": NO_COUNT,
        "doubly_reparameterized": NO_FLAG,
    },
    lambda **given: DeepWishartClassifier(**{"num_steps": 1, **given}).fit(X, Y[:, 0] > 0.0): {
        "depth": NO_COUNT,
        "num_inducing": NO_COUNT,
        "num_steps": NO_COUNT,
        "posterior": ("", "nope", None),
        "whiten": NO_FLAG,
        "kernel": NO_KERNEL[:3],
    },
}
FIRST_KERNELS = {
    "ARD of other inputs": gpflow.kernels.RBF(lengthscales=np.ones(D + 1)),
    "active_dims beyond X": gpflow.kernels.RBF(active_dims=[D]),
    "active_dims from a slice": gpflow.kernels.RBF(active_dims=slice(D, D + 1)),
}


def cases() -> list[tuple[str, Callable[[], Any], str]]:
    """What is tried, the call, and a pattern of its refusal."""
    rows: list[tuple[str, Callable[[], Any], str]] = []
    for name, (call, bad_X, bad_Y) in WITH_PAIRS.items():
        for kind in sorted(bad_X):
            bad = NO_MATRIX[kind](X)
            rows.append(
                (f"{name}, X {kind}", lambda c=call, b=bad: c(b, Y), r"\bX(new)?\b|data|inputs")
            )
        for kind in sorted(bad_Y):
            bad = NO_MATRIX[kind](Y)
            rows.append(
                (f"{name}, Y {kind}", lambda c=call, b=bad: c(X, b), r"\b[Yy]\b|data|targets")
            )
    for estimator in ESTIMATORS:
        for kind in sorted(OF_NEW_MODELS):
            bad, labels = NO_MATRIX[kind](X), Y[:, 0] > 0.0
            what = f"{estimator.__name__}, X {kind}"
            rows.append((what, lambda e=estimator, b=bad, y=labels: fit_estimator(e, b, y), "."))
    for name, one in WITH_ONE.items():
        for kind in sorted(FOR_ONE):
            bad = NO_MATRIX[kind](X)
            rows.append((f"{name}, X {kind}", lambda c=one, b=bad: c(b), r"\bX(new)?\b"))
    for function, arguments in ARGUMENTS.items():
        for name, values in arguments.items():
            for value in values:
                what = f"{name}={value!r}"[:80]
                given = {name: value}
                text = value if isinstance(value, str) and value.strip() else name
                pattern = f"{name}|{re.escape(text)}|bytes are not"
                rows.append((what, lambda f=function, g=given: f(**g), pattern))
    for name, kernel in FIRST_KERNELS.items():
        rows.append(
            (name, lambda k=kernel: with_parts(layers=hidden(k)), "kernel|lengthscales|active")
        )
    return rows


@pytest.mark.usefixtures("quick")
@pytest.mark.filterwarnings("ignore")  # what becomes of a warning is no matter here
def test_arguments_of_no_use_are_refused(here: Path, tally: Tally, is_long: bool) -> None:
    (here / "a_file").write_text("mine")
    (here / "a_folder").mkdir()
    (here / "a_folder/mine.txt").write_text("mine")
    for what, call, piece in some(cases(), is_long, IN_SHORT):
        outcome = attempt(call, ValueError, FileExistsError, FileNotFoundError, NotADirectoryError)
        tally.add_refusal(outcome, piece, what)
    assert (here / "a_file").read_text() == (here / "a_folder/mine.txt").read_text() == "mine"
