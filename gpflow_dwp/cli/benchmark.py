"""``gpflow-dwp benchmark``: how fast a training step is on this machine."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from gpflow_dwp.benchmarks import MODELS, SHAPES, benchmark_import, benchmark_step, floor_operations
from gpflow_dwp.study import describe_provenance

__all__ = ["run_benchmark"]


def run_benchmark(options: argparse.Namespace) -> None:
    """Measure, print a table or JSON, and write JSON where that is asked for."""
    if options.show_floor:
        for name in options.shapes or list(SHAPES):
            _print_floor(name)
        return
    provenance = describe_provenance("+".join(options.dtypes), options.threads)
    report = _silent if options.quiet else _to_standard_error
    if options.what == "import":
        figures = [figure._asdict() for figure in benchmark_import(options.turns, report=report)]
        result: dict[str, Any] = {"import": {"figures": figures}}
    else:
        result = benchmark_step(
            options.shapes or ["yacht-2", "yacht-5"],
            options.models or list(MODELS),
            options.dtypes,
            turns=options.turns,
            threads=options.threads,
            report=report,
        )
    found = {"provenance": provenance, **result}
    if options.json:
        print(json.dumps(found))
    else:
        for name, measured in result.items():
            _print_figures(name, measured["figures"])
    if options.out is not None:
        options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _print_figures(name: str, figures: list[dict[str, Any]]) -> None:
    width = max(len(figure["name"]) for figure in figures)
    print(f"{name:{width}}  median   +-      at most")
    for figure in figures:
        aim = "" if figure["at_most"] is None else f"{figure['at_most']:g}"
        print(f"{figure['name']:{width}}  {figure['value']:7.3f}  {figure['spread']:6.3f}  {aim}")
    print(flush=True)


def _print_floor(name: str) -> None:
    print(f"{name}: dense operations of a step of AB")
    for operation in floor_operations(SHAPES[name], "AB"):
        sizes = f"{operation.rows} x {operation.inner} x {operation.columns}"
        print(f"{operation.times:5d}  {operation.routine:5}  {sizes:18}  {operation.name}")
    print(flush=True)


def _to_standard_error(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _silent(text: str) -> None:
    pass
