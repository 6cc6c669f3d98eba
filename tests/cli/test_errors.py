"""Which errors are the user's."""

from __future__ import annotations

import pytest

from gpflow_dwp.cli.errors import UsageError, user_mistakes
from gpflow_dwp.exceptions import SavedModelError, TableError


@pytest.mark.parametrize(
    "error",
    [
        ValueError("a bad value"),
        TableError("a bad table"),
        SavedModelError("a bad model"),
        FileNotFoundError("no file"),
        ImportError("pandas is needed"),
    ],
)
def test_bad_input_is_a_mistake(error: Exception) -> None:
    with pytest.raises(UsageError, match=str(error)) as caught, user_mistakes():
        raise error
    assert caught.value.__cause__ is error


@pytest.mark.parametrize("error", [TypeError("ours"), KeyboardInterrupt(), ZeroDivisionError()])
def test_everything_else_is_ours(error: BaseException) -> None:
    with pytest.raises(type(error)), user_mistakes():
        raise error


def test_a_mistake_that_is_named_already_stays_as_it_is() -> None:
    mistake = UsageError("named")
    with pytest.raises(UsageError) as caught, user_mistakes():
        raise mistake
    assert caught.value is mistake
