"""How scores are shown."""

from __future__ import annotations

from gpflow_dwp.cli.scores import score_table
from gpflow_dwp.evaluation import Scores


def test_errors_of_any_size_are_told_apart() -> None:
    scores = {
        str(error): Scores(None, 1.0, error, 2.0) for error in (1.234567e-12, 0.25, 1234567.0)
    }
    rows = score_table(scores, "regression").splitlines()[2:]
    assert [row.split()[-2] for row in rows] == ["1.235e-12", "0.25", "1.235e+06"]
