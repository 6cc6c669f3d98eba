"""Data for the study's tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from study_archive import write_archive


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two splits of made-up data, under the name of yacht."""
    return write_archive(tmp_path_factory.mktemp("archive"))
