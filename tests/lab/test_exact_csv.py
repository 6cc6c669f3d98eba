"""Results that are read and written again stay as they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from gpflow_dwp.lab.exact_csv import read_exact_csv


def test_numbers_keep_their_last_digit(tmp_path: Path) -> None:
    """A third of such numbers lose it by the parser that pandas takes by default before 3.1."""
    rng = np.random.default_rng(0)
    numbers = pd.DataFrame({"x": rng.normal(size=1_000) * 10.0 ** rng.integers(-9, 9, 1_000)})
    numbers.to_csv(tmp_path / "x.csv", index=False)
    read = read_exact_csv(tmp_path / "x.csv", dtype={"x": float})
    pd.testing.assert_frame_equal(read, numbers, check_exact=True)
