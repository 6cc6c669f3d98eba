"""The benchmark of predictions."""

from __future__ import annotations

from gpflow_dwp.lab.benchmarks.measurement import Measured, Report, Subject, measure, ratio, summary
from gpflow_dwp.lab.benchmarks.shapes import SHAPES, STEP_MODELS, DtypeName, ModelName, ShapeName
from gpflow_dwp.lab.benchmarks.subjects import prepare_floor, prepare_prediction

__all__ = ["benchmark_predict"]

_TASKS = ("predict_f", "predict_y", "draws and predict_y")


def benchmark_predict(
    *,
    shapes: tuple[ShapeName, ...] = ("yacht-2", "yacht-5"),
    models: tuple[ModelName, ...] = STEP_MODELS,
    dtypes: tuple[DtypeName, ...] = ("float64",),
    num_samples: int = 100,
    turns: int = 9,
    threads: int = 1,
    report: Report,
) -> dict[str, Measured]:
    """Time compiled predictions, and their linear algebra alone.

    At the N rows of each size: predict_f and predict_y given draws that are made before, and
    predict_y of the model, which makes them first. The linear algebra is that of predict_f.

    :param num_samples: Draws that make up the predictive mixture.
    """
    result: dict[str, Measured] = {}
    for name in shapes:
        report(f"{name}:")
        shape = SHAPES[name]._replace(num_samples=num_samples)
        subjects = [
            subject
            for dtype in dtypes
            for subject in (
                Subject(f"floor {dtype}", prepare_floor, (None, shape, dtype)),
                *(
                    Subject(f"{model} {t} {dtype}", prepare_prediction, (model, shape, dtype, t))
                    for model in models
                    for t in _TASKS
                ),
            )
        ]
        timings = measure(subjects, turns=turns, threads=threads, report=report)
        figures = []
        for title, timing in timings.items():
            seconds = timing.seconds
            figures.append(summary(f"{title}, ms", seconds, unit=1e-3))
            if not title.startswith("floor"):
                per_second = [shape.num_data / value for value in seconds]
                figures.append(summary(f"{title}, rows/ms", per_second, unit=1e3))
            if " predict_f " in title:
                floor = timings[f"floor {title.split()[-1]}"].seconds
                figures.append(ratio(f"{title} / floor", seconds, floor))
        result[name] = Measured(figures, {"timings": timings})
    return result
