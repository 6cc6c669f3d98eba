"""Lists of candidates of a user's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from gpflow.kernels import Matern52, SquaredExponential

from gpflow_dwp.estimator import DeepWishartRegressor
from gpflow_dwp.layers import SkipLayer, WishartLayer
from gpflow_dwp.selection import Candidate, select_model

pytestmark = pytest.mark.usefixtures("eager", "plain_single_layers")

LINE = np.linspace(-1.7, 1.7, 30)[:, None]
JUMP = np.sign(LINE - 0.1) + 0.05 * np.random.default_rng(3).standard_normal((30, 1))
DATA = LINE, (JUMP - JUMP.mean()) / JUMP.std()
SKIP = Candidate(
    kernel=["SquaredExponential", "Matern52"], width=2, posterior="GW", layer=SkipLayer
)


def test_a_list_is_what_is_tried() -> None:
    """Catches usual candidates that are tried nevertheless, and single layers mixed up."""
    given = [SKIP, Candidate(depth=1, kernel="Matern32")]
    settings = {"likelihood": "gaussian", "num_steps": 1, "progress": False}
    selection = select_model(DATA, candidates=given, **settings)
    fitted, single, *deep = ((each.depth, each.kernel) for each in selection.candidates)
    assert {fitted, single} == {(1, "SquaredExponential"), (1, "Matern32")}
    assert deep == [(1, "Matern32"), (2, "SquaredExponential")]


def test_a_layer_of_ones_own(tmp_path: Path) -> None:
    """Catches fields of a candidate left out, or lost when saved or told of further runs."""
    settings = {"likelihood": "gaussian", "num_steps": 1, "num_prediction_samples": 3}
    regressor = DeepWishartRegressor(candidates=[SKIP], **settings)
    regressor.fit(LINE[::2], JUMP[::2, 0]).save(tmp_path / "saved")
    loaded = DeepWishartRegressor.load(tmp_path / "saved")
    assert loaded.candidates == [SKIP]
    np.testing.assert_array_equal(loaded.predict(LINE), regressor.predict(LINE))
    loaded.tell(LINE[1::2], JUMP[1::2, 0])
    for model in (regressor.model_, loaded.model_):
        first, last = model.layers
        assert isinstance(first, SkipLayer) and isinstance(first.layer, WishartLayer)
        assert (first.layer.df, first.layer.bartlett_factor.family) == (2, "GW")
        assert isinstance(first.kernel, SquaredExponential) and isinstance(last.kernel, Matern52)


@pytest.mark.parametrize("output", ["pseudo_targets", "nearest_neighbours"])
def test_candidates_are_compared_by_bounds(output: str) -> None:
    """Catches lists that given outputs take no notice of, and outputs without a deep model."""
    deep = SKIP if output == "pseudo_targets" else Candidate(depth=2, kernel="SquaredExponential")
    given = [deep, Candidate(depth=1, kernel="Matern32")]
    selection = select_model(DATA, candidates=given, output=output, num_steps=2, progress=False)
    tried = [(each.depth, each.kernel) for each in selection.candidates[-2:]]
    assert tried == [(2, "SquaredExponential"), (1, "Matern32")]
    assert selection.best.elbo == max(each.elbo for each in selection.candidates[-2:])


def test_bad_candidates_are_refused() -> None:
    with pytest.raises(ValueError, match="kernel must be 2 names, one a layer, got 1"):
        Candidate(kernel=["Matern52"])
    with pytest.raises(ValueError, match="candidates must be one or more"):
        select_model(DATA, candidates=[])
    with pytest.raises(ValueError, match="kernel='Matern52'"):
        select_model(DATA, candidates=[SKIP], kernel="Matern52")
