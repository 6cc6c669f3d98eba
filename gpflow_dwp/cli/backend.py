"""TensorFlow, which takes seconds to import: once it is known that a command can be done."""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["load_tensorflow"]


def load_tensorflow(note: str | None = None) -> None:
    """Import TensorFlow, and discard what its libraries write to standard error meanwhile.

    They report on instruction sets and missing GPUs before any log level is obeyed.

    :param note: A line that is shown on a terminal before.
    """
    if note is not None and "tensorflow" not in sys.modules and sys.stderr.isatty():
        print(note, file=sys.stderr)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        import tensorflow as tf

        tf.config.list_physical_devices()  # looking for GPUs is what writes most
    finally:
        os.dup2(kept, 2)
        os.close(kept)
