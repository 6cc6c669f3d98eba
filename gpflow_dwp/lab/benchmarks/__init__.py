"""How fast training is, as ratios taken in one run; how much memory it takes, and what it rounds.

Every benchmark is a function that the command line calls by its name in :data:`BENCHMARKS`. Its
signature and docstring are the command's, so importing its module does not import TensorFlow.
"""

from __future__ import annotations

__all__ = ["BENCHMARKS"]

BENCHMARKS = {
    "step": "step:benchmark_step",
    "predict": "predict:benchmark_predict",
    "scale": "scale:benchmark_scale",
    "devices": "devices:benchmark_devices",
    "gpu": "gpu:benchmark_gpu",
    "memory": "memory:benchmark_memory",
    "variance": "variance:benchmark_variance",
    "bound": "time_to_bound:benchmark_bound",
    "precision": "precision:benchmark_precision",
    "import": "import_time:benchmark_import",
}
"""Where in this package each benchmark is."""
