"""The models of a study."""

from __future__ import annotations

import pytest

from gpflow_dwp.lab.study import STUDY_MODELS
from gpflow_dwp.lab.study._models import MODELS


def test_every_model_has_a_name() -> None:
    plain = ("DGP", "DIWP", "GW", "A", "AB", "VMG")
    latent = ("GP", "GP-GP", "LV-GP", "LV-GP-GP", "LV-GP-GP-GP", "LV-DWP")
    assert plain + latent == STUDY_MODELS


@pytest.mark.parametrize(
    ("name", "depth"), [("GP", 1), ("LV-GP-GP", 2), ("DGP", None), ("VMG", None)]
)
def test_depth_of_the_name(name: str, depth: int | None) -> None:
    assert MODELS[name].own_depth == depth


def test_arguments_that_are_open() -> None:
    assert MODELS["A"].accepts("latent_dim")
    assert not MODELS["LV-DWP"].accepts("latent_dim")
    assert not MODELS["GP"].accepts("architecture")
    assert not MODELS["VMG"].accepts("num_inducing")
