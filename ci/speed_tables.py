"""Tables of speed and of rounding, from what `gpflow-dwp benchmark --json` wrote."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tabulate import tabulate

_BENCHMARKS = Path(__file__).with_name("results") / "benchmarks"
_SHAPES = ("yacht-2", "yacht-5", "protein-5", "large-3")
_STEPS = {
    "AB / its linear algebra alone": "AB step float64 / AB floor float64",
    "AB / GW": "AB step float64 / GW step float64",
    "AB / deep GP": "AB step float64 / DGP step float64",
    "whitened A / A": "A-whitened step float64 / A step float64",
    "AB / GPflux": "AB step float64 / gpflux step float64",
    "AB / GPyTorch": "AB step float64 / gpytorch step float64",
    "whitened A / GPflux": "A-whitened step float64 / gpflux step float64",
    "whitened A / GPyTorch": "A-whitened step float64 / gpytorch step float64",
    "default / GPflux": "default step float64 / gpflux step float64",
    "default / GPyTorch": "default step float64 / gpytorch step float64",
    "default / gradient of an exact GP": "default step float64 / gpflow step float64",
    "AB, float32 / float64": "AB step float32 / AB step float64",
    "AB, ms": "AB step float64, ms",
    "default, ms": "default step float64, ms",
    "first step of AB, with tracing, s": "AB step float64, first step, s",
}
_BOUNDS = {"yacht": "bound-yacht", "boston": "bound-boston", "energy": "bound-energy"}
_BOUNDS["yacht, depth 5"] = "bound-yacht-5"
_WAYS = {"select_model": "`select_model`", "fast": "`fit`, default", "papers": "`fit`, papers'"}
_FAMILIES = {"A": "A-GW", "AB": "AB-GW", "A-whitened": "A-GW, whitened"}
_GRADIENT = re.compile(r"gradient of .*, error / size")
_DATASETS = ("yacht", "boston", "energy", "concrete", "kin8nm", "power", "protein")


def as_table(rows: Iterable[dict[str, str]]) -> str:
    """A table of GitHub's Markdown, numbers as they are given."""
    return tabulate(
        list(rows), headers="keys", tablefmt="github", showindex=False, disable_numparse=True
    )


def _measured(name: str) -> dict[str, Any]:
    """What a file has of each thing that was measured."""
    values = json.loads((_BENCHMARKS / f"{name}.json").read_text(encoding="utf-8"))
    return {title: value for title, value in values.items() if title != "provenance"}


def _figures(measured: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {figure["name"]: figure for figure in measured["figures"]}


def _steps() -> str:
    """Times of steps; where something is meant of one, what."""
    files = map(_measured, ("step", "step-protein", "step-large"))
    shapes = {shape: _figures(measured) for file in files for shape, measured in file.items()}
    rows = []
    for label, name in _STEPS.items():
        found = {shape: shapes[shape][name] for shape in _SHAPES if name in shapes[shape]}
        meant = {figure["at_most"] for figure in found.values()} - {None}
        row = {"": label, "meant: at most": f"{meant.pop():g}" if meant else ""}
        for shape in _SHAPES:
            row[shape] = _with_spread(found[shape]) if shape in found else ""
        rows.append(row)
    return as_table(rows)


def _with_spread(figure: dict[str, Any]) -> str:
    value, spread = figure["value"], figure["spread"]
    digits = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:,.{digits}f}" + (f" ({spread:.{digits}f})" if spread else "")


def _bounds() -> str:
    """Time until a bound is reached, by the package's own ways and by the papers' protocol."""
    rows = []
    for label, name in _BOUNDS.items():
        [(title, measured)] = _measured(name).items()
        runs = measured["runs"]
        row = {"data set": label, "ELBO above": title.rpartition(" ")[2]}
        for way, heading in _WAYS.items():
            row[heading] = _reached(runs[way]) if way in runs else ""
        seconds = [run["seconds"] for way, run in runs.items() if way != "papers" and run["step"]]
        of_papers = runs["papers"]["seconds"] or runs["papers"]["all_seconds"]
        share = f"{min(seconds) / of_papers:.2f}"
        row["least / papers'"] = share if runs["papers"]["step"] else f"below {share}"
        rows.append(row)
    return as_table(rows)


def _reached(run: dict[str, Any]) -> str:
    if not run["step"]:
        return f"never: {run['last_bound']:.3f} after {run['all_seconds']:,.0f} CPU s"
    return f"{run['step']:,} steps, {run['seconds']:.0f} CPU s"


def _rounding() -> str:
    """Errors of float32's gradients over their size: median over groups of parameters, largest."""
    errors: dict[tuple[str, str], str] = {}
    for key, measured in _measured("precision").items():
        [figures] = (_figures(v) for title, v in measured.items() if title != "provenance")
        values = [f["value"] for name, f in figures.items() if _GRADIENT.fullmatch(name)]
        dataset, _, family = key.rpartition("-")[0].partition("-")
        errors[dataset, family] = f"{statistics.median(values):.4f}, {max(values):.3f}"
    return as_table(
        {"median, largest": label} | {dataset: errors[dataset, family] for dataset in _DATASETS}
        for family, label in _FAMILIES.items()
    )


def _gpu() -> str:
    """Steps on a GPU, with XLA and without, beside the CPU's."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for step in _measured("gpu")["steps"]:
        found.setdefault(step["shape"], {})[step["device"]] = step
    devices = ("CPU", "GPU", "GPU, XLA")
    return as_table(
        {"": shape}
        | {f"{d}, ms": f"{1e3 * on[d]['step']:,.0f}" if d in on else "" for d in devices}
        | {f"{d}, first, s": f"{on[d]['first_step']:.0f}" if d in on else "" for d in devices}
        | {"GPU memory, GB": f"{1e-9 * on['GPU']['peak_bytes']:.1f}"}
        for shape, on in sorted(found.items(), key=lambda item: item[1]["CPU"]["step"])
    )


BLOCKS = {
    "speed, steps": _steps,
    "speed, bounds": _bounds,
    "speed, rounding": _rounding,
    "speed, GPU": _gpu,
}
