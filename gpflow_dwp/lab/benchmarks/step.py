"""The benchmark of a training step."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Literal

from gpflow_dwp.lab.benchmarks import _peers
from gpflow_dwp.lab.benchmarks.measurement import (
    Figure,
    Measured,
    Report,
    Subject,
    Timings,
    measure,
    ratio,
    start,
    summary,
)
from gpflow_dwp.lab.benchmarks.shapes import (
    SHAPES,
    STEP_MODELS,
    WISHART_MODELS,
    DtypeName,
    ModelName,
    Shape,
    ShapeName,
)
from gpflow_dwp.lab.benchmarks.subjects import prepare_floor, prepare_lowered, prepare_step

__all__ = ["benchmark_step"]

PeerName = Literal["gpflow", "gpflux", "gpytorch"]
"""Distributions with an exact GP, GPflow's ``GPR``, of which the gradient alone is timed, or deep
GPs: GPflux's ``build_constant_input_dim_deep_gp`` and GPyTorch's ``DeepGP``, both with the width of
the inputs in every layer."""

_PEERS = {
    "gpflow": _peers.prepare_gpflow,
    "gpflux": _peers.prepare_gpflux,
    "gpytorch": _peers.prepare_gpytorch,
}
_DEFAULT = "default step"
"""A step by the defaults: AB-GW, two draws, the output a regression on the data."""
_FLOORED = ("AB", "A-whitened")
_FIRST_STEP_AT_MOST = 10.0
# What a ratio is meant to be at most, at all shapes or at one.
_RATIOS = {
    ("AB step float64", "AB floor float64"): 1.5,
    ("A-whitened step float64", "A-whitened floor float64"): None,
    ("AB step float64", "GW step float64"): 1.05,
    ("A-whitened step float64", "A step float64"): 0.85,
    ("AB step float64", "DGP step float64"): 1.0,
    ("AB step float32", "AB step float64"): 0.6,
    ("AB step float64", "gpflux step float64"): 0.33,
    ("AB step float64", "gpytorch step float64"): 0.12,
    ("A-whitened step float64", "gpflux step float64"): 0.33,
    ("A-whitened step float64", "gpytorch step float64"): 0.12,
    (f"{_DEFAULT} float64", "gpflow step float64"): None,
    (f"{_DEFAULT} float64", "gpflux step float64"): 0.33,
    (f"{_DEFAULT} float64", "gpytorch step float64"): 0.12,
}
_VERSIONS = """
import importlib.metadata as metadata, json, sys
installed = {d.metadata["Name"]: d.version for d in metadata.distributions()}
print(json.dumps({name: installed[name] for name in sys.argv[1:] if name in installed}))
"""


def benchmark_step(
    *,
    shapes: tuple[ShapeName, ...] = ("yacht-2", "yacht-5"),
    models: tuple[ModelName, ...] = STEP_MODELS,
    dtypes: tuple[DtypeName, ...] = ("float64",),
    peers: tuple[PeerName, ...] = (),
    peer_python: str | None = None,
    show_floor: bool = False,
    turns: int = 15,
    threads: int = 1,
    report: Report,
) -> dict[str, Measured]:
    """Time training steps against the dense linear algebra of a step alone by LAPACK and BLAS.

    Ratios are of wall time, and between different libraries of processor time, too. What XLA is
    given of a step where there is a GPU is counted, if TensorFlow is built for GPUs.

    :param peers: Models of other libraries to compare with, and with a step of the defaults, too:
        an exact GP (gpflow), of which the gradient is timed, and deep GPs.
    :param peer_python: Interpreter of an environment that has the peers (default: this one).
    :param show_floor: Print the dense operations of a step instead, and time nothing.
    """
    if show_floor:
        return _list_floors(shapes, models)
    python = peer_python or sys.executable
    versions = _peer_versions(peers, python) if peers else {}
    result: dict[str, Measured] = {}
    for name in shapes:
        report(f"{name}:")
        shape, subjects = SHAPES[name], []
        for dtype in dtypes:
            floored = [m for m in _FLOORED if m in models]
            subjects += [
                *(Subject(f"{m} step {dtype}", prepare_step, (m, shape, dtype)) for m in models),
                *(Subject(f"{p} step {dtype}", _PEERS[p], (shape, dtype), python) for p in peers),
                *([_default_step(shape, dtype)] if peers else []),
                *(Subject(f"{m} floor {dtype}", prepare_floor, (m, shape, dtype)) for m in floored),
            ]
        timings = measure(subjects, turns=turns, threads=threads, report=report)
        lowered = {
            f"{model} step {dtype}": counts
            for dtype in dtypes
            for model in models
            if (counts := _lowered(model, shape, dtype, threads)) is not None
        }
        values = {"timings": timings, "lowered": lowered, **({"peers": versions} if peers else {})}
        result[name] = Measured(_figures(timings) + _counts(lowered), values)
    return result


def _default_step(shape: Shape, dtype: DtypeName) -> Subject:
    arguments = ("AB", shape._replace(num_samples=2), dtype, "regression")
    return Subject(f"{_DEFAULT} {dtype}", prepare_step, arguments)


def _lowered(
    model: ModelName, shape: Shape, dtype: DtypeName, threads: int
) -> dict[str, int] | None:
    """Counts of what XLA is given of a step where there is a GPU."""
    subject = Subject(f"{model} lowered", prepare_lowered, (model, shape, dtype))
    with start(subject, threads) as process:
        value: dict[str, int] | None = process.ask()["value"]
    return value


def _counts(lowered: dict[str, dict[str, int]]) -> list[Figure]:
    return [
        Figure(f"{title}, {what} for XLA on a GPU", count)
        for title, counts in lowered.items()
        for what, count in counts.items()
    ]


def _figures(timings: dict[str, Timings]) -> list[Figure]:
    figures = []
    for (over, under), at_most in _RATIOS.items():
        if over in timings and under in timings:
            of, to, name = timings[over], timings[under], f"{over} / {under}"
            figures.append(ratio(name, of.seconds, to.seconds, at_most))
            if under.split()[0] in _PEERS:
                processor = (of.processor_seconds, to.processor_seconds)
                figures.append(ratio(f"{name}, processor", *processor, at_most))
    figures += [summary(f"{title}, ms", t.seconds, unit=1e-3) for title, t in timings.items()]
    return figures + [
        Figure(f"{title}, first step, s", timing.first_step, 0.0, _FIRST_STEP_AT_MOST)
        for title, timing in timings.items()
        if " floor " not in title
    ]


def _list_floors(shapes: Sequence[str], models: Sequence[str]) -> dict[str, Measured]:
    from gpflow_dwp.lab.benchmarks.floor import floor_operations

    floored = [model for model in models if model in WISHART_MODELS]
    if not floored:
        raise ValueError(f"--models must name one of {', '.join(WISHART_MODELS)} for --show-floor.")
    lists = {
        f"{name}, {model}": floor_operations(SHAPES[name], model)
        for name in shapes
        for model in floored
    }
    return {
        f"{title}: dense operations of a step": Measured(
            [
                Figure(f"{o.routine:5} {o.rows} x {o.inner} x {o.columns}: {o.name}", o.times)
                for o in operations
            ],
            {"operations": operations},
        )
        for title, operations in lists.items()
    }


def _peer_versions(peers: Sequence[str], python: str) -> dict[str, str]:
    """Versions of peers, and of what they compute with, in their environment."""
    command = [python, "-I", "-c", _VERSIONS, *peers, "tensorflow", "torch", "numpy"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise ValueError(f"--peer-python must be a Python interpreter, got {python}.") from error
    versions: dict[str, str] = json.loads(done.stdout)
    for peer in peers:
        if peer not in versions:
            raise ValueError(
                f"--peers: {peer} is not installed for {python}: python -m pip install "
                f'"gpflow-dwp[peers]", or {peer} in an environment of its own, named by '
                "--peer-python."
            )
    return versions
