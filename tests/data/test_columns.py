"""Frames of categories and whole numbers: against scikit-learn's encoder and closed forms."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import numpy as np
import pandas
import pytest
from exact_process import one_layer
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from gpflow_dwp import emulation
from gpflow_dwp.data.columns import Columns
from gpflow_dwp.estimator import ChainedEmulator, DeepWishartClassifier, DeepWishartRegressor

pytestmark = pytest.mark.usefixtures("plain_single_layers")

BOUNDS = {"speed": (0.0, 1.0), "passes": (0.7, 4)}


def runs(size: int = 40) -> pandas.DataFrame:
    rng = np.random.default_rng(0)
    return pandas.DataFrame(
        {
            "alloy": rng.choice(["A", "B", "C"], size),
            "speed": rng.uniform(size=size),
            "passes": rng.integers(1, 5, size),
            "grade": pandas.Categorical(rng.choice([10, 20], size)),
        }
    )


def wear(frame: pandas.DataFrame) -> np.ndarray:
    return np.asarray(2.0 * (frame["alloy"] == "B") + frame["speed"] + frame["passes"])


@pytest.fixture(scope="module")
def fitted() -> DeepWishartRegressor:
    return one_layer().fit(runs(), wear(runs()))


@pytest.mark.usefixtures("eager")
def test_predicts_as_from_what_scikit_learn_encodes(
    fitted: DeepWishartRegressor, tmp_path: Path
) -> None:
    """Catches levels and columns in another order, and ones that are lost in a file."""
    frame, labels = runs(), ["alloy", "grade"]
    encoder = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["alloy"]),
        ("passthrough", ["speed", "passes"]),
        (OneHotEncoder(sparse_output=False), ["grade"]),
    ).fit(frame)
    other = DeepWishartRegressor(**fitted.get_params())
    other.fit(encoder.transform(frame), wear(frame))
    new = runs(60)[40:]
    expected = other.predict(encoder.transform(new))
    np.testing.assert_array_equal(fitted.predict(new), expected)
    assert (fitted.n_features_in_, [*fitted.feature_names_in_]) == (4, [*frame])
    assert fitted.columns_.levels == {"alloy": ("A", "B", "C"), "grade": ("10", "20")}
    fitted.save(tmp_path / "fitted")
    loaded = DeepWishartRegressor.load(tmp_path / "fitted")
    for copy in (pickle.loads(pickle.dumps(fitted)), loaded):
        np.testing.assert_array_equal(copy.predict(new), expected)
    classifier = DeepWishartClassifier(depth=1, num_steps=1, random_state=0)
    assert classifier.fit(frame[labels], frame["passes"]).predict(new[labels]).shape == (20,)


def test_codes_and_frames_are_the_same_runs() -> None:
    """Catches codes that are rounded to what is no level, or beyond bounds."""
    columns = Columns.of(runs())
    assert columns is not None
    numbers = columns.encoded(runs(), lambda part: part.to_numpy(float))
    np.testing.assert_array_equal(columns.expanded(columns.codes(numbers)), numbers)
    decoded = columns.decoded(numbers)
    pandas.testing.assert_frame_equal(decoded, runs().astype({"grade": int}), check_dtype=False)
    ends = columns.rounded(columns.limits(BOUNDS).T)
    np.testing.assert_array_equal(ends, [[0.0, 0.0, 1.0, 0.0], [2.0, 1.0, 4.0, 1.0]])


def test_emulation_knows_levels_and_whole_numbers(fitted: DeepWishartRegressor) -> None:
    """Catches levels that are not equally probable, and runs that nobody can make.

    Variances of 2 [alloy = B], of the speed and of four whole numbers are 8/9, 1/12 and 5/4.
    """
    indices = emulation.sobol_indices(fitted, BOUNDS, num_points=1_024, num_functions=8)
    shares = np.array([8 / 9, 1 / 12, 5 / 4, 0.0])
    np.testing.assert_allclose(indices.first, shares / shares.sum(), atol=0.03)
    effects = emulation.main_effects(fitted, BOUNDS, resolution=9, num_functions=8)
    np.testing.assert_array_equal(effects.points[0], np.repeat([0.0, 1.0, 2.0], 3))
    by_level = effects.mean[0, ::4] - effects.mean[0, 0]
    np.testing.assert_allclose(by_level, [0.0, 2.0, 0.0], atol=0.05)
    slopes, _ = emulation.gradient(fitted, runs()[:3])
    np.testing.assert_array_equal(np.isnan(slopes), [[True, False, False, True]] * 3)
    np.testing.assert_allclose(slopes[:, 1:3], 1.0, atol=0.1)
    told = pickle.loads(pickle.dumps(fitted))
    new = emulation.suggest(told, BOUNDS, batch=3, candidates=64)
    assert {*new["alloy"]} <= {"A", "B", "C"} and {*new["grade"]} <= {10, 20}
    assert new["passes"].dtype == int and new["passes"].between(1, 4).all()
    told.tell(new, wear(new))
    np.testing.assert_allclose(told.predict(new), wear(new), atol=0.02)


def test_bounds_go_by_name_in_any_frame() -> None:
    """Catches names that are those of whole numbers and categories alone."""
    frame = runs()[["speed"]].assign(depth=np.linspace(2.0, 3.0, 40))
    one = one_layer().fit(frame, frame["speed"])
    new = emulation.suggest(one, {"depth": (2.0, 3.0), "speed": (0.0, 1.0)}, 2, candidates=16)
    assert (np.floor(new) == [[0.0, 2.0]] * 2).all()


def test_names_that_come_twice_are_those_of_a_matrix() -> None:
    """Catches a frame of two columns that is taken for one of them."""
    frame = runs()[["speed", "passes"]].set_axis(["a", "a"], axis=1)
    assert Columns.of(frame) is None and Columns.of(frame.set_axis(["a", "b"], axis=1)) is not None


def test_what_cannot_be_used_is_named(fitted: DeepWishartRegressor) -> None:
    """Catches a level, a frame or a bound that is taken for another."""
    frame = runs()[:3]
    for X, message in (
        (frame.assign(alloy=["A", "D", "C"]), r"X\['alloy'\] must be one of .* 'D' in row 2"),
        (frame.to_numpy(), "must be a frame with the columns"),
        (frame[[*frame][::-1]], "same order"),
    ):
        with pytest.raises(ValueError, match=message):
            fitted.predict(X)
    for bounds, message in (
        (BOUNDS | {"alloy": (0, 1)}, "must be None for 'alloy'"),
        ({"speed": (0, 1)}, "pair of numbers for 'passes'"),
        (BOUNDS | {"spd": (0, 1)}, "got 'spd'"),
        ([None, (0, 1)], "shape"),
    ):
        with pytest.raises(ValueError, match=message):
            emulation.suggest(fitted, bounds)
    for model, message in (
        (make_pipeline(StandardScaler(), fitted), re.escape("give pipeline[-1]")),
        ("gp", "got str"),
    ):
        with pytest.raises(ValueError, match=message):
            emulation.leave_one_out(model)
    with pytest.raises(ValueError, match="one of categories: .'alloy', 'grade'"):
        ChainedEmulator([fitted])
    names = frame.assign(alloy=[f"a{i}" for i in range(3)])
    names = pandas.concat([names.assign(alloy=names["alloy"] + str(i)) for i in range(8)])
    with pytest.raises(ValueError, match="24 different texts"):
        fitted.fit(names, wear(names))
