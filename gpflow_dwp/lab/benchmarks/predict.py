"""The benchmark of predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gpflow_dwp.lab.benchmarks._arguments import check_arguments
from gpflow_dwp.lab.benchmarks.measurement import Figure, Timings, measure, ratio, summary
from gpflow_dwp.lab.benchmarks.shapes import SHAPES
from gpflow_dwp.lab.benchmarks.subjects import MODELS, Subject, Task

__all__ = ["benchmark_predict"]

_TASKS: tuple[tuple[Task, str], ...] = (
    ("predict_f", "predict_f"),
    ("predict_y", "predict_y"),
    ("draw_predict_y", "draws and predict_y"),
)


def benchmark_predict(
    shapes: Sequence[str],
    models: Sequence[str] = MODELS,
    dtypes: Sequence[str] = ("float64",),
    *,
    num_samples: int = 100,
    turns: int = 9,
    threads: int = 1,
    report: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Time compiled predictions at the N rows of each shape, and the floor of their linear algebra.

    ``predict_f`` and ``predict_y`` of a posterior whose S draws are made before, and ``predict_y``
    of the model, which makes the draws first. The floor is that of ``predict_f``, and the same for
    all models: see :func:`~gpflow_dwp.lab.benchmarks.floor.prediction_operations`.

    :param shapes: Names in :data:`SHAPES`, whose S is not used.
    :param models: Names in :data:`MODELS`.
    :param dtypes: "float64", "float32" or both.
    :param num_samples: S.
    :param turns: See :func:`measure`.
    :param threads: See :func:`measure`.
    :param report: Called with a line of progress.
    :return: For each shape, under "figures" a list of :class:`Figure` as dictionaries, and under
        "timings" what was measured of each subject, in seconds.
    :raises ValueError: If a name is unknown, or a count is not a positive integer.
    """
    check_arguments(
        shapes,
        models,
        dtypes,
        known_models=MODELS,
        num_samples=num_samples,
        turns=turns,
        threads=threads,
    )
    result = {}
    for name in shapes:
        report(f"{name}:")
        shape = SHAPES[name]._replace(num_samples=num_samples)
        figures: list[Figure] = []
        timings: dict[str, Timings] = {}
        for dtype in dtypes:
            floor = Subject(models[0], shape, dtype, floor=True, task="predict_f")
            subjects = [Subject(model, shape, dtype, task=t) for model in models for t, _ in _TASKS]
            measured = measure([floor, *subjects], turns=turns, threads=threads, report=report)
            of_floor, *of_models = measured
            timings[f"floor {dtype}"] = of_floor
            for subject, timing in zip(subjects, of_models, strict=True):
                title = f"{subject.model} {dict(_TASKS)[subject.task]} {dtype}"
                timings[title] = timing
                figures += _figures(subject, title, timing, of_floor)
            figures.append(summary(f"floor {dtype}, ms", [1e3 * s for s in of_floor.seconds]))
        result[name] = {
            "figures": [figure._asdict() for figure in figures],
            "timings": {title: timing._asdict() for title, timing in timings.items()},
        }
    return result


def _figures(subject: Subject, title: str, timing: Timings, floor: Timings) -> list[Figure]:
    figures = [
        summary(f"{title}, ms", [1e3 * seconds for seconds in timing.seconds]),
        summary(
            f"{title}, rows/ms",
            [1e-3 * subject.shape.num_data / seconds for seconds in timing.seconds],
        ),
    ]
    if subject.task == "predict_f":
        figures.append(ratio(f"{title} / floor", timing, floor))
    return figures
