"""What has been found by attacks on files, tables, arrays and numbers, each kind once.

Short runs try some of the cases of each kind, ``--runslow`` all.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pytest
from faults.conftest import FIT, NO_NUMBERS, attempt, command, finish_run, not_refused, put
from model_reference import tiny_model

from gpflow_dwp.cli.runs import TrainedRun
from gpflow_dwp.data import Standardiser
from gpflow_dwp.data.encoding import ColumnEncoder
from gpflow_dwp.data.standardiser import root_mean_square
from gpflow_dwp.distributions import InverseWishart
from gpflow_dwp.estimator import DeepWishartClassifier, DeepWishartRegressor
from gpflow_dwp.evaluation import PredictiveDistribution
from gpflow_dwp.evaluation.predictions import Scores
from gpflow_dwp.exceptions import SavedModelError
from gpflow_dwp.files import read_sealed, seal
from gpflow_dwp.models import model_from_bytes, model_to_bytes
from gpflow_dwp.models.named_kernels import make_kernels
from gpflow_dwp.validation import check_process

IN_SHORT = 15
RUN = Path("run")
FILES = ("run.json", "metrics.json", "options.json", "history.csv", "predictions.csv")
NUM_FLIPS, NUM_CUTS = 60, 14  # of each file, and of a model


def damaged(content: bytes) -> Iterator[bytes]:
    """With one bit flipped, or cut off."""
    rng = np.random.default_rng(len(content))
    for place in rng.integers(0, len(content), NUM_FLIPS):
        changed = bytearray(content)
        changed[place] ^= 1 << int(rng.integers(8))
        yield bytes(changed)
    for size in rng.integers(0, len(content), NUM_CUTS):
        yield content[:size]


def test_damaged_models_are_refused(some: Any) -> None:
    """Catches a bit that nothing looks at: in the description, the arrays, or where they are."""
    content = model_to_bytes(tiny_model(1))
    for changed in some([*damaged(content)], IN_SHORT):
        try:
            model = model_from_bytes(changed)
        except SavedModelError:
            continue
        assert model_to_bytes(model) == content  # of a time or a flag that says nothing


@pytest.mark.usefixtures("quick", "here")
def test_damaged_files_of_a_run_are_refused(some: Any) -> None:
    """Catches a model, scores or units that are not those of the run."""
    finish_run()
    for name in (*FILES, "model/model.zip"):
        path = RUN / name
        content = path.read_bytes()
        for changed in some([*damaged(content)], IN_SHORT // 5):
            path.write_bytes(changed)
            outcome = attempt(lambda: TrainedRun.read(RUN), ValueError)
            assert not not_refused(outcome, "is damaged", name) or changed == content
        path.unlink()
        assert attempt(lambda: TrainedRun.read(RUN), Exception).code == 2
        path.write_bytes(content)
    assert TrainedRun.read(RUN).target_name == "price"


@pytest.mark.usefixtures("quick", "here")
def test_a_model_of_another_run_is_refused() -> None:
    """Catches predictions in the units of another training."""
    finish_run()
    assert command("fit", *FIT, "--seed", "1", "--out", "other").code == 0
    for name in ("model/model.zip", "metrics.json"):
        kept = (RUN / name).read_bytes()
        shutil.copy(Path("other", name), RUN / name)
        for given in (
            ("predict", "run", "table.csv"),
            ("info", "run"),
            ("export", "run", "-o", "e"),
        ):
            assert not not_refused(command(*given), f"{name} is damaged, or of another run", name)
        (RUN / name).write_bytes(kept)


@pytest.mark.usefixtures("quick", "here")
def test_forged_descriptions_of_a_run_are_refused(some: Any) -> None:
    """Catches errors of Python in place of a line that names the file; seals are right here."""
    finish_run()
    path = RUN / "run.json"
    whole = read_sealed(path)
    inner = [
        (name, part) for name, value in whole.items() if isinstance(value, dict) for part in value
    ]
    places = [*((name,) for name in whole), *inner]
    values = (None, 3, "text", [], [1, [2]], {}, {"a": None}, True)
    cases = [(place, value) for place in places for value in ("gone", *values)]
    for place, value in some(cases, IN_SHORT):
        fields = json.loads(json.dumps(whole))
        *outer, last = place
        owner = fields[outer[0]] if outer else fields
        owner.pop(last) if value == "gone" else owner.update({last: value})
        path.write_text(json.dumps(seal(fields)))
        outcome = attempt(lambda: TrainedRun.read(RUN), Exception)
        wrong = outcome.code and not_refused(outcome, "run.json|damaged", f"{place}, {value}")
        assert outcome.code == 0 or not wrong, wrong


N = 12
X = np.random.default_rng(0).uniform(-1.0, 1.0, (N, 2))
Y = X[:, 0] + 0.1 * X[:, 1] ** 2
LABELS = np.where(Y > 0.0, "up", "down")
OF_X = {
    **NO_NUMBERS,
    "a None": lambda A: put(A, None),
    "less than a unit": lambda A: 1e-320 * A,
    "masked": lambda A: np.ma.masked_array(A, np.arange(A.size).reshape(A.shape) == 2),
}
OF_Y = {name: OF_X[name] for name in OF_X if name not in ("nan", "a None", "masked")}
OF_WEIGHTS = {name: OF_X[name] for name in ("masked", "text", "inf", "no rows", "a cube")}
OF_WEIGHTS |= {"below": lambda A: put(A, -1.0, float), "none": np.zeros_like}
OF_LABELS: dict[str, Any] = {
    "masked": OF_X["masked"](np.arange(N) % 2),
    "text and None": np.array(["a", None] * (N // 2), object),
    "text and numbers": np.array(["a", 1] * (N // 2), object),
    "one class": np.full(N, "a"),
    "no rows": LABELS[:0],
    "numbers": Y,
}


def hostile_data() -> Iterator[tuple[str, Any, Any, Any, Any]]:
    """What is wrong, the estimator, inputs, targets and weights."""
    for cls, y in ((DeepWishartRegressor, Y), (DeepWishartClassifier, LABELS)):
        for name, change in OF_X.items():
            yield f"X {name}", cls, change(X), y, None
        for name, change in OF_WEIGHTS.items():
            yield f"weight {name}", cls, X, y, change(np.ones(N))
    for name, change in OF_Y.items():
        yield f"y {name}", DeepWishartRegressor, X, change(Y), None
        if name not in ("ragged", "a cube"):
            yield f"Y {name}", DeepWishartRegressor, X, change(np.c_[Y, -Y]), None
    for name, labels in OF_LABELS.items():
        yield f"labels {name}", DeepWishartClassifier, X, labels, None


def test_hostile_data_are_refused_before_training(monkeypatch: Any, some: Any) -> None:
    """Catches a mask that is dropped, and errors of libraries that name no argument."""
    place = "gpflow_dwp.estimator._base.DeepWishartEstimator._select"
    monkeypatch.setattr(place, lambda *_: pytest.fail("it was trained on"))
    wrong = []
    for what, cls, inputs, y, weights in some([*hostile_data()], 4 * IN_SHORT):
        outcome = attempt(partial(cls().fit, inputs, y, weights), ValueError, TypeError)
        named = "[Xy]|[Ww]eight|[Ff]ound|[Ee]xpected|[Cc]omplex|label|float|numbers"
        wrong += not_refused(outcome, named, f"{cls.__name__}, {what}")
    assert not wrong, "\n".join(wrong)


def test_rounding_and_none_are_told_from_values() -> None:
    """Catches a scale of 1e-17, which puts every other value far away; None is a missing target."""
    column = np.where(np.arange(N) % 2 == 0, 0.1 + 0.2, 0.3)
    given = {"depth": 1, "kernel": "SquaredExponential", "likelihood": "gaussian", "num_steps": 1}
    regressor, inputs = DeepWishartRegressor(**given, random_state=0), np.c_[X, column]
    with pytest.warns(UserWarning, match="1 of 12 runs have no output"):
        regressor.fit(inputs, [None, *(1e-300 * Y[1:])])
    assert regressor.input_standardiser_.scale[2] == 1.0
    mean, deviation = regressor.predict(inputs, return_std=True)
    lower, upper = regressor.predict_quantiles(inputs, (0.1587, 0.8413)).T
    np.testing.assert_allclose(deviation, 0.5 * (upper - lower), rtol=1e-3)
    np.testing.assert_allclose(mean, 0.5 * (upper + lower), rtol=1e-6)


@pytest.mark.parametrize("exponent", [-300, -160, -80, 0, 80, 160, 300])
def test_numbers_have_the_same_units_whatever_their_size(exponent: int, some: Any) -> None:
    """Catches squares and sums that leave the range of float64, against those of numbers near 1."""
    unit = 2.0 ** round(exponent / np.log10(2.0))
    for seed in some([*range(35)], 5):
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=[20, 3]) + 10.0 * rng.normal(size=3)
        weights = None if seed % 2 else rng.uniform(size=20)
        one, other = (Standardiser.fit(u * rows, weights=weights) for u in (1.0, unit))
        np.testing.assert_array_equal(other.mean, unit * one.mean)
        np.testing.assert_array_equal(other.scale, unit * one.scale)
        np.testing.assert_allclose(
            one.scale**2, np.cov(rows.T, ddof=0, aweights=weights).diagonal()
        )
        near, far = (root_mean_square(u * rows) for u in (1.0, unit))
        np.testing.assert_array_equal(far, unit * near)
        known = {"log_likelihood": 0.0, "elbo": None, "seconds": 0.0}
        scores = [Scores.of_numbers(*(u * rows.T[:2]), **known) for u in (1.0, unit)]
        assert scores[1].error == unit * scores[0].error and scores[1].r2 == scores[0].r2
        means, variances = rng.normal(size=[4, 2, 1]), rng.uniform(0.1, 1.0, [4, 2, 1])
        target = Standardiser([unit * 3.0], [unit])
        wide = PredictiveDistribution(means, variances, target)
        plain = PredictiveDistribution(means, variances)
        np.testing.assert_allclose(wide.deviation() / unit, plain.deviation(), rtol=1e-12)
        y = wide.quantile(0.3)
        np.testing.assert_allclose(wide.cdf(y), 0.3, rtol=1e-6)
        assert ((wide.cdf(y) <= 1.0) & (wide.cdf(y) >= 0.0)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1, 5, 50])
def test_inverse_wisharts_are_finite_or_refused(size: int, dtype: Any) -> None:
    """Catches samples that are not finite where the density is."""
    scale = np.eye(size, dtype=dtype)
    above = 0.33 if dtype is np.float32 else 0.04
    assert np.isfinite(InverseWishart(dtype(size - 1 + above), scale).sample(200, seed=1)).all()
    near = InverseWishart(dtype(size - 1 + 1e-3), scale)
    assert np.isfinite(near.log_prob(scale))
    with pytest.raises(ValueError, match=r"df must have values of at least .* for samples"):
        near.sample(seed=1)


def test_inputs_of_an_export_have_names_of_their_own() -> None:
    """Catches a column that is called like another one's category."""
    names = ColumnEncoder(("a", "a=x", "b"), {"a": ("x", "z")}).feature_names
    assert names == ("a=x'", "a=z", "a=x", "b")


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("given", [("predict", "run", "table.csv"), ("export", "run")])
@pytest.mark.parametrize("out", ["table.csv/inner", "x" * 250])
def test_unwritable_places_are_found_at_once(
    given: Any, out: str, here: Path, monkeypatch: Any
) -> None:
    """Catches half a minute of tracing before an error that TensorFlow has words of its own for."""
    finish_run()
    monkeypatch.setattr(TrainedRun, "load", lambda *_: pytest.fail("TensorFlow was loaded"))
    before = {path.name for path in here.iterdir()}
    assert not not_refused(command(*given, "-o", out), "table.csv|too long", out)
    assert {path.name for path in here.iterdir()} == before


def test_no_setting_of_gpflows_is_switched_in_passing(monkeypatch: Any) -> None:
    """Catches kernels of other threads that get the transforms of this one."""
    monkeypatch.setattr(gpflow.config, "set_config", lambda _: pytest.fail("it was switched"))
    (kernel,) = make_kernels("Matern52", 1, 2)
    assert {each.transform.name for each in kernel.parameters} == {"exp"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_forked_process_says_to_spawn(monkeypatch: Any) -> None:
    """Catches what waits for ever for threads that are not there."""
    check_process()
    model, pid = tiny_model(1), os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: pid + 1)
    with pytest.raises(RuntimeError, match="forked.*spawn"):
        DeepWishartRegressor(depth=1, num_steps=1).fit(X, Y)
    with pytest.raises(RuntimeError, match="forked.*spawn"):
        model.predict_y(X)
