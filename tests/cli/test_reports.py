"""What is printed beside results."""

from __future__ import annotations

import json
import math

from gpflow_dwp.cli.reports import as_json, named_scores, scores_as_text
from gpflow_dwp.evaluation import Scores


def test_json_has_null_for_what_is_not_finite() -> None:
    values = {"a": [1, math.nan, (math.inf, "inf")], "b": {"c": -math.inf, "d": 0.5, "e": None}}
    expected = {"a": [1, None, [None, "inf"]], "b": {"c": None, "d": 0.5, "e": None}}
    assert json.loads(as_json(values)) == expected


def test_json_has_named_tuples_by_their_fields() -> None:
    scores = Scores(None, 1.0, math.nan, 2.0)
    (found,) = json.loads(as_json({"scores": [scores]}))["scores"]
    assert [found[name] for name in ("elbo", "error")] == [None, None]


def test_scores_have_the_names_of_their_task() -> None:
    for scores in (Scores(None, 1.0, 0.5, 2.0, crps=3.0, r2=0.1), Scores(1.0, 2.0, 3.0, 4.0)):
        named = named_scores(scores, "regression")
        assert named["rmse"] == scores.error and ("crps" in named) == (scores.crps is not None)
        assert named["elbo"] == scores.elbo
        assert named_scores(scores, "classification")["error_rate"] == scores.error


def test_errors_of_any_size_are_told_apart() -> None:
    scores = {
        str(error): named_scores(Scores(None, 1.0, error, 2.0), "regression")
        for error in (1.234567e-12, 0.25, 1234567.0)
    }
    rows = scores_as_text(scores).splitlines()[2:]
    assert [row.split()[-2] for row in rows] == ["1.235e-12", "0.25", "1.235e+06"]
