"""The benchmark of a training step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gpflow_dwp.lab.benchmarks._arguments import check_arguments
from gpflow_dwp.lab.benchmarks.measurement import Figure, Timings, measure, ratio, summary
from gpflow_dwp.lab.benchmarks.peers import PEERS, peer_versions
from gpflow_dwp.lab.benchmarks.shapes import SHAPES
from gpflow_dwp.lab.benchmarks.subjects import MODELS, Subject

__all__ = ["benchmark_step"]

# (over, under, at most): pairs of (model, dtype, floor), and the aim at all shapes or at one.
_RATIOS: tuple[tuple[tuple[str, str, bool], tuple[str, str, bool], float | None], ...] = (
    (("AB", "float64", False), ("AB", "float64", True), 1.5),
    (("A-whitened", "float64", False), ("A-whitened", "float64", True), None),
    (("AB", "float64", False), ("GW", "float64", False), 1.05),
    (("A-whitened", "float64", False), ("A", "float64", False), 0.85),
    (("AB", "float64", False), ("DGP", "float64", False), 1.0),
    (("AB", "float32", False), ("AB", "float64", False), 0.6),
    (("AB", "float64", False), ("gpflux", "float64", False), 0.33),
    (("AB", "float64", False), ("gpytorch", "float64", False), 0.12),
    (("A-whitened", "float64", False), ("gpflux", "float64", False), 0.33),
    (("A-whitened", "float64", False), ("gpytorch", "float64", False), 0.12),
)


def benchmark_step(
    shapes: Sequence[str],
    models: Sequence[str] = MODELS,
    dtypes: Sequence[str] = ("float64",),
    *,
    peers: Sequence[str] = (),
    peer_python: str | None = None,
    turns: int = 15,
    threads: int = 1,
    report: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Time training steps, and the floors of deep Wishart processes, shape by shape.

    Ratios are of wall time, and, between models of different libraries, of processor time too,
    which other processes disturb less.

    :param shapes: Names in :data:`SHAPES`.
    :param models: Names in :data:`MODELS`.
    :param dtypes: "float64", "float32" or both.
    :param peers: Names in :data:`~gpflow_dwp.lab.benchmarks.peers.PEERS`: others' deep GPs.
    :param peer_python: An interpreter that has them; None for this one.
    :param turns: See :func:`measure`.
    :param threads: See :func:`measure`.
    :param report: Called with a line of progress.
    :return: For each shape, under "figures" a list of :class:`Figure` as dictionaries, and under
        "timings" what was measured of each subject, in seconds; where there are peers, under
        "peers" their versions.
    :raises ValueError: If a name is unknown, a peer is not installed, or a count is not
        a positive integer.
    """
    check_arguments(shapes, models, dtypes, known_models=MODELS, turns=turns, threads=threads)
    versions = peer_versions(peers, peer_python) if peers else {}
    result: dict[str, Any] = {}
    for name in shapes:
        report(f"{name}:")
        keys = [(model, dtype, False) for dtype in dtypes for model in (*models, *peers)]
        floored = [model for model in ("AB", "A-whitened") if model in models]
        keys += [(model, dtype, True) for dtype in dtypes for model in floored]
        subjects = [Subject(model, SHAPES[name], dtype, floor) for model, dtype, floor in keys]
        measured = measure(
            subjects, turns=turns, threads=threads, peer_python=peer_python, report=report
        )
        timings = dict(zip(keys, measured, strict=True))
        result[name] = {
            "figures": [figure._asdict() for figure in _figures(timings)],
            "timings": {_title(key): timing._asdict() for key, timing in timings.items()},
        }
        if peers:
            result[name]["peers"] = versions
    return result


def _figures(timings: dict[tuple[str, str, bool], Timings]) -> list[Figure]:
    figures = [
        ratio(f"{_title(over)} / {_title(under)}", timings[over], timings[under], at_most)
        for over, under, at_most in _RATIOS
        if over in timings and under in timings
    ]
    figures += [
        ratio(
            f"{_title(over)} / {_title(under)}, processor",
            _of_processor(timings[over]),
            _of_processor(timings[under]),
            at_most,
        )
        for over, under, at_most in _RATIOS
        if under[0] in PEERS and over in timings and under in timings
    ]
    for key, timing in timings.items():
        milliseconds = [1e3 * seconds for seconds in timing.seconds]
        figures.append(summary(f"{_title(key)}, ms", milliseconds))
    figures += [
        Figure(f"{_title(key)}, first step, s", timing.first_step, 0.0, 10.0)
        for key, timing in timings.items()
        if not key[2]
    ]
    return figures


def _of_processor(timings: Timings) -> Timings:
    return timings._replace(seconds=timings.processor_seconds)


def _title(key: tuple[str, str, bool]) -> str:
    model, dtype, floor = key
    return f"{model} {'floor' if floor else 'step'} {dtype}"
