"""What is printed beside results."""

from __future__ import annotations

import json
import math

from gpflow_dwp.cli.reports import as_json


def test_json_has_null_for_what_is_not_finite() -> None:
    values = {"a": [1, math.nan, (math.inf, "inf")], "b": {"c": -math.inf, "d": 0.5, "e": None}}
    expected = {"a": [1, None, [None, "inf"]], "b": {"c": None, "d": 0.5, "e": None}}
    assert json.loads(as_json(values)) == expected
