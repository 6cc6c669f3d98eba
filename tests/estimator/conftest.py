from __future__ import annotations

from collections.abc import Iterator

import pytest
import tensorflow as tf


@pytest.fixture
def _eager() -> Iterator[None]:
    """Take steps without compiling them, which takes longer than a few steps."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)
