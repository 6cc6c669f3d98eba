"""Numbers as names: merged where nothing is lost, and found again."""

from __future__ import annotations

import pytest

from gpflow_dwp.data.cells import as_known, as_whole, merge_whole


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("1", "1"),
        ("1.0", "1"),
        ("-12.000", "-12"),
        ("-0.0", "0"),
        ("1e1", "10"),
        ("1.5e+16", "15000000000000000"),
        ("9007199254740993", "9007199254740993"),
        *((text, None) for text in ("", "1.5", "007", "+1", "1_0", "1.", ".0", "inf", "nan", "a")),
        *((text, None) for text in ("1e999", "9" * 31, "1e-1", "\u0661", "1\n")),
    ],
)
def test_whole_numbers(text: str, whole: str | None) -> None:
    assert as_whole(text) == whole


def test_names_are_merged_only_where_all_are_whole() -> None:
    assert merge_whole(["1", "1.0", "2"]) == ["1", "1", "2"]
    for texts in (["1", "1.0", "a"], ["1", "1.0", "007"], []):
        assert merge_whole(texts) == texts


def test_what_is_known_is_found() -> None:
    assert as_known("1.0", ("0", "1")) == "1"
    assert as_known("1", ("0.0", "1.0")) == "1.0"
    assert as_known("1.0", ("1", "1.0")) == "1.0"
    for text in ("2.0", "a", "01", "1.5"):
        assert as_known(text, ("0", "1")) == text
