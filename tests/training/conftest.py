from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture
def few_objects() -> Iterator[None]:
    """Let what the collector looks at, and knows of, be what a test makes: others left millions."""
    gc.freeze()
    yield
    gc.unfreeze()
