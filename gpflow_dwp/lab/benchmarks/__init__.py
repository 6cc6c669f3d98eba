"""How fast a training step is, as ratios taken in one run."""

from gpflow_dwp.lab.benchmarks.figures import plot_scale
from gpflow_dwp.lab.benchmarks.floor import (
    FLOORED_MODELS,
    Floor,
    Operation,
    floor_operations,
    prediction_operations,
)
from gpflow_dwp.lab.benchmarks.import_time import benchmark_import
from gpflow_dwp.lab.benchmarks.kept import KeptArray, kept_arrays
from gpflow_dwp.lab.benchmarks.measurement import (
    Figure,
    Timings,
    measure,
    ratio,
    summary,
)
from gpflow_dwp.lab.benchmarks.memory import benchmark_memory
from gpflow_dwp.lab.benchmarks.parameter_groups import gradients_by_group, parameter_groups
from gpflow_dwp.lab.benchmarks.peers import PEERS, peer_command, peer_versions
from gpflow_dwp.lab.benchmarks.precision import benchmark_precision
from gpflow_dwp.lab.benchmarks.predict import benchmark_predict
from gpflow_dwp.lab.benchmarks.scale import GRIDS, Grid, benchmark_scale, exponents
from gpflow_dwp.lab.benchmarks.shapes import SHAPES, Shape
from gpflow_dwp.lab.benchmarks.step import benchmark_step
from gpflow_dwp.lab.benchmarks.subjects import (
    MODELS,
    WISHART_MODELS,
    Subject,
    Task,
    posterior_arguments,
    prepare,
)
from gpflow_dwp.lab.benchmarks.time_to_bound import (
    BoundRun,
    BoundTask,
    benchmark_bound,
    printed_bound,
    train_to_bound,
)
from gpflow_dwp.lab.benchmarks.variance import (
    ESTIMATORS,
    GradientEstimator,
    GradientSampler,
    GroupVariance,
    benchmark_variance,
)

__all__ = [
    "ESTIMATORS",
    "FLOORED_MODELS",
    "GRIDS",
    "MODELS",
    "PEERS",
    "SHAPES",
    "WISHART_MODELS",
    "BoundRun",
    "BoundTask",
    "Figure",
    "Floor",
    "GradientEstimator",
    "GradientSampler",
    "Grid",
    "GroupVariance",
    "KeptArray",
    "Operation",
    "Shape",
    "Subject",
    "Task",
    "Timings",
    "benchmark_bound",
    "benchmark_import",
    "benchmark_memory",
    "benchmark_precision",
    "benchmark_predict",
    "benchmark_scale",
    "benchmark_step",
    "benchmark_variance",
    "exponents",
    "floor_operations",
    "gradients_by_group",
    "kept_arrays",
    "measure",
    "parameter_groups",
    "peer_command",
    "peer_versions",
    "plot_scale",
    "posterior_arguments",
    "prediction_operations",
    "prepare",
    "printed_bound",
    "ratio",
    "summary",
    "train_to_bound",
]
