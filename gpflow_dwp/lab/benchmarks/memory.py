"""Peak memory of a training step, over what its reverse pass must keep."""

from __future__ import annotations

import sys

from gpflow_dwp.lab.benchmarks.measurement import Figure, Measured, Report, Subject, start, summary
from gpflow_dwp.lab.benchmarks.shapes import (
    SHAPES,
    WISHART_MODELS,
    DtypeName,
    Shape,
    ShapeName,
    WishartName,
)
from gpflow_dwp.lab.benchmarks.subjects import prepare_step

__all__ = ["benchmark_memory", "kept_elements"]

_AT_MOST = 2.0
_BYTES = {"float64": 8, "float32": 4}
# Every array that counts is mapped and unmapped on its own, and TensorFlow's pool for oneDNN, which
# never shrinks, is not used: resident memory then follows what is alive.
_ALLOCATION = {"MALLOC_MMAP_THRESHOLD_": "65536", "TF_ENABLE_ONEDNN_OPTS": "0"}


def benchmark_memory(
    *,
    shapes: tuple[ShapeName, ...] = ("yacht-2", "yacht-5"),
    models: tuple[WishartName, ...] = WISHART_MODELS,
    dtypes: tuple[DtypeName, ...] = ("float64",),
    turns: int = 5,
    threads: int = 1,
    report: Report,
) -> dict[str, Measured]:
    """Measure the peak memory of a step, over the arrays that its reverse pass must keep.

    It is what arrays need once the step is traced and compiled, beyond what was there before: freed
    ones go back to the system at once. Each turn has a process of its own, since the order in which
    a process takes operations that do not depend on each other differs, and the peak with it.
    """
    if not sys.platform.startswith("linux"):
        raise OSError(f"peak memory can be measured on Linux only, this is {sys.platform}.")
    result: dict[str, Measured] = {}
    for name in shapes:
        figures, all_peaks, all_kept = [], {}, {}
        for title, dtype, model in ((f"{m} step {d}", d, m) for d in dtypes for m in models):
            subject, peaks = Subject(title, prepare_step, (model, SHAPES[name], dtype)), []
            for _ in range(turns):
                with start(subject, threads, **_ALLOCATION) as process:
                    process.ask(3)  # with tracing and compilation, which are not to be measured
                    peaks.append(process.ask(memory=True)["peak"])
            elements = kept_elements(SHAPES[name], model)
            kept = {array: _BYTES[dtype] * number for array, number in elements.items()}
            total = sum(kept.values())
            figures += [
                summary(f"{title}, peak / kept", peaks, _AT_MOST, unit=total),
                summary(f"{title}, peak, MB", peaks, unit=1e6),
                Figure(f"{title}, kept, MB", 1e-6 * total),
            ]
            all_peaks[title], all_kept[title] = peaks, kept
            report(f"{name}: measured {title}")
        result[name] = Measured(figures, {"peaks": all_peaks, "kept": all_kept})
    return result


def kept_elements(shape: Shape, model: str) -> dict[str, int]:
    """Count the elements of the arrays that the gradients of one step are made of, by name.

    Counted as the formulas of :mod:`gpflow_dwp.linalg` have them, so that no factorisation, solve
    or product of the forward pass is done again: the arguments of every gradient that are larger
    than N or M². What is element-wise is made again from its result: of a squared exponential
    kernel, the covariance alone is kept, not the distances. The first layer's covariance is one
    for all draws, every other one is one for each. Gradients themselves, parameters and the state
    of the optimiser are not counted.

    :param model: "GW", "A", "AB" (the same arrays) or "A-whitened".
    """
    n, m, s = shape.num_data, shape.num_inducing, shape.num_samples
    r = min(shape.num_inputs, m)
    found: dict[str, int] = {}
    for index in range(shape.depth - 1):
        k = 1 if index == 0 else s
        layer = {
            "K, inducing points": k * m * m,
            "K, inducing points and data": k * m * n,
            "L": k * m * m,
            "V = L⁻¹ C": k * m * n,
            **dict.fromkeys(("L⁻¹ F", "T", "A' T B", "F = L A' T B"), s * m * r),
            "features of the data, and their noise": 2 * s * n * r,
        }
        if model != "A-whitened":
            layer |= dict.fromkeys(("L_A", "C = L⁻¹ L_A", "Q = CᵀC"), k * m * m)
        found |= {f"layer {index + 1}: {name}": size for name, size in layer.items()}
    k = s if shape.depth > 1 else 1
    return found | {
        "output: K, inducing points": k * m * m,
        "output: K, inducing points and data": k * m * n,
        "output: R = L_B⁻¹ Lᵀ": k * m * m,
        "output: L_B⁻¹": k * m * m,
        "output: V = R C": k * m * n,
    }
