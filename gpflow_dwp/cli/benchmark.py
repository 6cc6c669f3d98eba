"""``gpflow-dwp benchmark``: how fast a training step is on this machine."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpflow_dwp.benchmarks import (
    FLOORED_MODELS,
    GRIDS,
    SHAPES,
    Operation,
    benchmark_bound,
    benchmark_import,
    benchmark_memory,
    benchmark_precision,
    benchmark_predict,
    benchmark_scale,
    benchmark_step,
    floor_operations,
    plot_scale,
)
from gpflow_dwp.cli.benchmark_variance import run_variance
from gpflow_dwp.cli.errors import UsageError, user_mistakes
from gpflow_dwp.cli.reports import check_out, write_json
from gpflow_dwp.optional import import_optional
from gpflow_dwp.study import describe_provenance

__all__ = ["run_benchmark"]

_Report = Callable[[str], None]


def run_benchmark(options: argparse.Namespace) -> None:
    """Measure, print a table, and write every value where that is asked for.

    :param options: As ``gpflow-dwp benchmark`` parses them.
    :raises UsageError: If the input cannot be used; nothing has been measured then.
    """
    with user_mistakes():
        for file in (options.json, getattr(options, "out", None)):
            check_out(file if isinstance(file, Path) else None, overwrite=True)
    if options.what == "step" and options.show_floor:
        _show_floor(options)
        return
    report = _silent if options.quiet else _to_standard_error
    if options.what == "variance":
        with user_mistakes():
            run_variance(options, report)
        return
    measured: dict[str, Callable[[argparse.Namespace, _Report], dict[str, Any]]] = {
        "step": _step,
        "predict": _predict,
        "scale": _scale,
        "memory": _memory,
        "bound": _bound,
        "precision": _precision,
        "import": _import,
    }
    dtypes = getattr(options, "dtypes", None) or [getattr(options, "dtype", "float64")]
    provenance = describe_provenance("+".join(dtypes), getattr(options, "threads", 1))
    with user_mistakes():
        result = measured[options.what](options, report)
    whole = {"provenance": provenance, **result}
    if write_json(options.json, whole):
        return
    for name, part in result.items():
        _print_figures(name, part["figures"])


def _step(options: argparse.Namespace, report: _Report) -> dict[str, Any]:
    return benchmark_step(
        options.shapes,
        options.models,
        options.dtypes,
        peers=options.peers,
        peer_python=options.peer_python,
        turns=options.turns,
        threads=options.threads,
        report=report,
    )


def _predict(options: argparse.Namespace, report: _Report) -> dict[str, Any]:
    return benchmark_predict(
        options.shapes,
        options.models,
        options.dtypes,
        num_samples=options.num_samples,
        turns=options.turns,
        threads=options.threads,
        report=report,
    )


def _scale(options: argparse.Namespace, report: _Report) -> dict[str, Any]:
    if options.figure is not None:
        _check_figure(options.figure)
    result = benchmark_scale(
        options.axes or list(GRIDS),
        options.model,
        options.dtype,
        turns=options.turns,
        threads=options.threads,
        report=report,
    )
    if options.figure is not None:
        plot_scale(result).savefig(options.figure)
    return result


def _memory(options: argparse.Namespace, report: _Report) -> dict[str, Any]:
    return benchmark_memory(
        options.shapes,
        options.models,
        options.dtypes,
        turns=options.turns,
        threads=options.threads,
        report=report,
    )


def _bound(options: argparse.Namespace, report: _Report) -> dict[str, Any]:
    return benchmark_bound(
        options.dataset,
        options.depth,
        options.model,
        split=options.split,
        level=options.level,
        num_steps=options.num_steps,
        papers_steps=options.papers_steps,
        hold=options.hold,
        seed=options.seed,
        threads=options.threads,
        uci_folder=options.uci_folder,
        report=report,
    )


def _precision(options: argparse.Namespace, report: _Report) -> dict[str, Any]:
    return benchmark_precision(
        options.dataset,
        options.depth,
        options.model,
        split=options.split,
        output=options.output,
        dtype=options.dtype,
        num_steps=options.num_steps,
        num_draws=options.num_draws,
        seed=options.seed,
        uci_folder=options.uci_folder,
        report=report,
    )


def _import(options: argparse.Namespace, report: _Report) -> dict[str, Any]:
    figures = benchmark_import(options.turns, report=report)
    return {"import": {"figures": [figure._asdict() for figure in figures]}}


def _check_figure(file: Path) -> None:
    """Refuse a file that cannot be written before minutes are spent."""
    canvas = import_optional("matplotlib.backend_bases", "cli").FigureCanvasBase
    known = sorted(canvas.get_supported_filetypes())
    if file.suffix[1:].lower() not in known:
        raise UsageError(f"--figure must end in one of .{', .'.join(known)}, got {file}.")
    if not file.absolute().parent.is_dir():
        raise UsageError(f"--figure: there is no folder {file.parent}.")


def _print_figures(name: str, figures: list[dict[str, Any]]) -> None:
    width = max(len(name), *(len(figure["name"]) for figure in figures))
    print(f"{name:{width}}  median   +-      at most")
    for figure in figures:
        aim = "" if figure["at_most"] is None else f"{figure['at_most']:g}"
        print(f"{figure['name']:{width}}  {figure['value']:7.3f}  {figure['spread']:6.3f}  {aim}")
    print(flush=True)


def _show_floor(options: argparse.Namespace) -> None:
    models = [model for model in options.models if model in FLOORED_MODELS]
    if not models:
        raise UsageError(f"--show-floor: --models must name one of {', '.join(FLOORED_MODELS)}")
    lists = {
        name: {model: floor_operations(SHAPES[name], model) for model in models}
        for name in options.shapes
    }
    plain = {
        name: {model: [op._asdict() for op in ops] for model, ops in of_models.items()}
        for name, of_models in lists.items()
    }
    if write_json(options.json, plain):
        return
    for name, of_models in lists.items():
        for model, operations in of_models.items():
            _print_floor(name, model, operations)


def _print_floor(name: str, model: str, operations: list[Operation]) -> None:
    print(f"{name}: dense operations of a step of {model}")
    for operation in operations:
        sizes = f"{operation.rows} x {operation.inner} x {operation.columns}"
        print(f"{operation.times:5d}  {operation.routine:5}  {sizes:18}  {operation.name}")
    print(flush=True)


def _to_standard_error(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _silent(text: str) -> None:
    pass
