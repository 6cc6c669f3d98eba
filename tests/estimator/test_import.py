"""Estimators are there where scikit-learn is, and the rest of the package does without."""

from __future__ import annotations

import subprocess
import sys


def test_without_scikit_learn_the_message_says_what_to_install() -> None:
    program = "import sys; sys.modules['sklearn'] = None; import gpflow_dwp; gpflow_dwp.estimator"

    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert result.returncode != 0
    assert 'pip install "gpflow-dwp[sklearn]"' in result.stderr
