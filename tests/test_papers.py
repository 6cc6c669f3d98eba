"""What to cite for a model."""

from __future__ import annotations

import numpy as np
import pytest
import yaml
from package_source import ROOT

from gpflow_dwp import build_deep_wishart_process, build_matrix_gaussian_network, citation
from gpflow_dwp.papers import DEEP_WISHART_PROCESS, IMPROVED_POSTERIOR

X = np.linspace(-1.0, 1.0, 5)[:, None]


def test_parts_say_what_a_model_rests_on() -> None:
    """Catches a part that is not asked, an entry that comes twice, and one of another model's."""
    model = build_deep_wishart_process((X, X), depth=3)
    model.likelihood.papers = ("@misc{mine}",)
    text = citation(model)
    for entry in (
        DEEP_WISHART_PROCESS,
        IMPROVED_POSTERIOR,
        "@misc{mine}",
        "@article{GPflow2017",
        "titsias",
    ):
        assert text.count(entry) == 1, entry
    assert "louizos" not in text and text.count("{") == text.count("}")
    assert IMPROVED_POSTERIOR not in citation(build_deep_wishart_process((X, X), 2, posterior="GW"))
    assert "louizos" in citation(build_matrix_gaussian_network((X, X)))
    with pytest.raises(ValueError, match="model must be"):
        citation("model")  # type: ignore[arg-type]


def test_the_package_is_cited_with_its_version_and_the_same_papers() -> None:
    """Catches a version, a title or a DOI that is changed in one place only."""
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert f'version = "{cited["version"]}"' in (ROOT / "pyproject.toml").read_text("utf-8")
    entries = DEEP_WISHART_PROCESS, IMPROVED_POSTERIOR
    for entry, paper in zip(entries, cited["references"], strict=True):
        plain = entry.replace("{W}", "W")
        assert paper["title"] in plain and paper["doi"] in plain and str(paper["year"]) in plain
        for each in paper["authors"]:
            assert f"{each['family-names']}, {each['given-names']}" in plain
