"""MultiSWAG whose members are trained as cells are: of tiny deep Wishart processes."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from study_archive import write_archive

from gpflow_dwp.exceptions import SavedModelError
from gpflow_dwp.lab.experiments.deep_wishart_iterates import DeepWishart
from gpflow_dwp.lab.experiments.experiment import read_table
from gpflow_dwp.lab.experiments.multi_swag import MultiSWAGOfWishart, train_member

FEW = {"collecting_steps": 100, "num_inducing": 4}


@pytest.fixture
def experiment(tmp_path: Path) -> MultiSWAGOfWishart:
    archive = write_archive(tmp_path / "archive")
    return MultiSWAGOfWishart(*("yacht", 1, 20, 2, tmp_path / "members", FEW), uci_folder=archive)


@pytest.mark.slow
def test_members_are_trained_and_mixed(experiment: MultiSWAGOfWishart, tmp_path: Path) -> None:
    """Members that share a start, or are not those that were trained, would have equal scores."""
    with pytest.raises(SavedModelError):
        list(experiment.rows())
    told: list[int] = []
    for cell in experiment.cells():
        collected = train_member(
            cell.to_dict(),
            iterates=cell.files(experiment.directory)["iterates"],
            checkpoint_directory=tmp_path / "checkpoints" / cell.key,
            uci_folder=experiment.uci_folder,
            report=lambda step, bound: told.append(step),
        )
        assert collected["num_collected"] == 10
        assert told[-1] == cell.num_steps == 120

    alone, mixed = experiment.rows()

    assert (alone["predictor"], mixed["predictor"]) == ("SWAG", "MultiSWAG")
    for row in (alone, mixed):
        assert np.isfinite(row["test_log_likelihood"]) and 0.0 < row["rmse"] < 100.0
    assert alone["test_log_likelihood"] != mixed["test_log_likelihood"]
    table = pd.DataFrame([alone, mixed])
    assert experiment.is_in(table)
    with pytest.raises(ValueError, match="yacht, split 1 with --members 2, not 3"):
        dataclasses.replace(experiment, members=3).is_in(table)
    table.to_csv(tmp_path / "table.csv")
    with pytest.raises(ValueError, match="table.csv holds another experiment"):
        read_table(tmp_path / "table.csv", DeepWishart)


def test_refusals(experiment: MultiSWAGOfWishart) -> None:
    experiment.check()
    for changes, message in (
        ({"dataset": "nope"}, "dataset must be one of"),
        ({"split": 20}, "split must be an integer from 0 to 19"),
        ({"options": {"collecting_steps": 90}}, "collecting_steps must be an integer of at least"),
        ({"steps": 0}, "steps must be a positive integer"),
    ):
        fields = {**vars(experiment), **changes}
        with pytest.raises(ValueError, match=message):
            MultiSWAGOfWishart(**fields).check()
