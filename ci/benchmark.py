"""How fast training is on this machine: `python ci/benchmark.py step --shapes yacht-5`.

Subjects take turns, each in a process of its own. Medians are printed, half of the distance of the
quartiles, and what is aimed at; --out adds them to a CSV file such as ci/results/benchmarks.csv.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks import bound as bounds
from benchmarks import peers as libraries
from benchmarks.measuring import Figure, Subject, Timings, measure, ratio, start, summary
from benchmarks.models import (
    SHAPES,
    STEP_MODELS,
    Shape,
    prepare_floor,
    prepare_step,
)
from cyclopts import App, Parameter
from uci.tables import published

app = App(help=__doc__, default_parameter=Parameter(consume_multiple=True, negative=()))

_PEERS = {
    "gpflow": libraries.prepare_gpflow,
    "svgp": libraries.prepare_svgp,
    "gpflux": libraries.prepare_gpflux,
    "gpytorch": libraries.prepare_gpytorch,
    "gpytorch-gp": libraries.prepare_gpytorch_gp,
}
# What a ratio is meant to be at most, at all shapes.
_RATIOS = {
    ("AB step", "AB floor"): 1.4,
    ("AB step", "AB floor by TensorFlow"): None,
    ("A-whitened step", "A-whitened floor"): None,
    ("AB step", "GW step"): 1.05,
    ("A-whitened step", "A step"): 0.85,
    ("AB step", "DGP step"): 1.0,
    **{(f"{m} step", "gpflux step"): 0.33 for m in ("AB", "A-whitened", "default")},
    **{(f"{m} step", "gpytorch step"): 0.12 for m in ("AB", "A-whitened", "default")},
    **{("default step", f"{peer} step"): None for peer in ("gpflow", "svgp", "gpytorch-gp")},
}


@app.command
def step(
    *,
    shapes: tuple[str, ...] = ("yacht-2", "yacht-5"),
    models: tuple[str, ...] = STEP_MODELS,
    dtypes: tuple[str, ...] = ("float64",),
    peers: tuple[str, ...] = (),
    peer_python: str | None = None,
    turns: int = 15,
    threads: int = 1,
    out: Path | None = None,
) -> None:
    """Time training steps against the dense linear algebra of a step alone by LAPACK and BLAS.

    :param shapes: Names, or sizes such as 1000,6,100,5,3: rows, inputs, inducing points, draws and
        depth.
    :param peers: Other libraries to compare with: deep GPs of gpflux and gpytorch, and single
        layers, of which the gradient is timed: gpflow and gpytorch-gp, exact GPs, and svgp,
        GPflow's. A step of the defaults is timed with them.
    :param peer_python: Interpreter of an environment that has them.
    """
    for name in shapes:
        shape, subjects = named_shape(name), []
        for dtype in dtypes:
            floored = [model for model in ("AB", "A-whitened") if model in models]
            usual = ("AB", shape._replace(num_samples=2), dtype, "regression")
            subjects += [
                *(Subject(f"{m} step {dtype}", prepare_step, (m, shape, dtype)) for m in models),
                *(
                    Subject(f"{p} step {dtype}", _PEERS[p], (shape, dtype), peer_python)
                    for p in peers
                ),
                *([Subject(f"default step {dtype}", prepare_step, usual)] if peers else []),
                *(Subject(f"{m} floor {dtype}", prepare_floor, (m, shape, dtype)) for m in floored),
            ]
            if "AB" in floored:
                title = f"AB floor by TensorFlow {dtype}"
                subjects.append(Subject(title, prepare_floor, ("AB", shape, dtype, "TensorFlow")))
        show("step", name, step_figures(measure(subjects, turns, threads), dtypes), out)


def named_shape(name: str) -> Shape:
    """Return the shape of a name, or of sizes with commas between them."""
    return SHAPES[name] if name in SHAPES else Shape(*map(int, name.split(",")))


def step_figures(timings: Mapping[str, Timings], dtypes: Sequence[str]) -> list[Figure]:
    """Return ratios of wall time, times in ms, and the seconds of first steps."""
    pairs = {
        (f"{over} {dtype}", f"{under} {dtype}"): at_most
        for (over, under), at_most in _RATIOS.items()
        for dtype in dtypes
    }
    pairs["AB step float32", "AB step float64"] = 0.6
    figures = [
        ratio(f"{over} / {under}", timings[over].seconds, timings[under].seconds, at_most)
        for (over, under), at_most in pairs.items()
        if over in timings and under in timings
    ]
    for title, timing in timings.items():
        figures.append(summary(f"{title}, ms", 1e3 * np.array(timing.seconds)))
        if " floor " not in title:
            figures.append(Figure(f"{title}, first step, s", timing.first_step, 0.0, 10.0))
    return figures


@app.command
def gpu(
    *,
    shapes: tuple[str, ...] = ("yacht-2", "protein-5", "large-3", "larger-3"),
    model: str = "AB",
    dtype: str = "float64",
    turns: int = 5,
    threads: int = 8,
    out: Path | None = None,
) -> None:
    """Time a training step on a GPU, compiled with XLA or not, and on the CPU."""
    places = {"GPU": ("GPU:0", False), "GPU, XLA": ("GPU:0", True), "CPU": ("CPU:0", False)}
    for name in shapes:
        subjects = [
            Subject(title, prepare_step, (model, SHAPES[name], dtype, "pseudo_targets", *place))
            for title, place in places.items()
        ]
        figures = []
        for title, timing in measure(subjects, turns, threads).items():
            figures.append(summary(f"{title}, ms", 1e3 * np.array(timing.seconds)))
            figures.append(Figure(f"{title}, first, s", timing.first_step))
        show("gpu", name, figures, out)


@app.command
def bound(
    *,
    dataset: str = "yacht",
    split: int = 0,
    model: str = "A",
    depth: int = 2,
    seed: int = 0,
    uci_folder: Path | None = None,
    level: float | None = None,
    num_steps: int = 3_000,
    search_steps: int = 1_000,
    papers_steps: int = 20_000,
    hold: int = 1_000,
    threads: int = 1,
    out: Path | None = None,
) -> None:
    """Time training to a bound, by two protocols and from a Gaussian process on.

    The papers' protocol runs beside the default one, and then beside ``select_model`` of the same
    depth, kernel and noise, of which all is timed. Times are processor times of one run each.
    Learning rates fall to the end of a run, so that a bound is passed late in one that is just long
    enough.

    :param model: GW, A, AB or A-whitened.
    :param level: Bound per datum to stay above (default: the printed one, less 0.02).
    :param num_steps: Steps of the default protocol's run.
    :param hold: Steps above the level after which a run is ended.
    """
    if level is None:
        printed = published("elbo", "improved").set_index(["dataset", "depth", "model"])["mean"]
        level = float(printed[dataset, depth, model]) - 0.02
    folder = None if uci_folder is None else str(uci_folder.resolve())
    place = (dataset, split, folder, model, depth, seed)
    fast, papers = (
        Subject(name, bounds.prepare_run, (place, name, count, level, hold))
        for name, count in (("fast", num_steps), ("papers", papers_steps))
    )
    search = Subject("select_model", bounds.prepare_search, (place, search_steps, level))
    runs = {}
    with start(papers, threads) as neighbour:
        neighbour.send()
        for subject in (fast, search):
            with start(subject, threads) as process:
                runs[subject.title] = bounds.BoundRun(*process.ask()["value"])
        runs["papers"] = bounds.BoundRun(*neighbour.receive()["value"])
    title = dataset if depth == 2 else f"{dataset}, depth {depth}"
    show("bound", title, bound_figures(runs, level), out)


def bound_figures(runs: Mapping[str, bounds.BoundRun], level: float) -> list[Figure]:
    """Return steps and seconds to the bound, where it was reached, and how runs ended."""
    figures = [Figure("level", level)]
    for way, run in runs.items():
        if run.step is not None and run.seconds is not None:
            figures += [Figure(f"{way}, steps", run.step), Figure(f"{way}, s", run.seconds)]
        figures += [
            Figure(f"{way}, last bound", run.last_bound),
            Figure(f"{way}, all s", run.all_seconds),
        ]
    for way, at_most in (("fast", 0.1), ("select_model", 0.05)):
        own, papers = runs[way].seconds, runs["papers"].seconds
        if own is not None and papers is not None:
            figures.append(Figure(f"{way} / papers", own / papers, 0.0, at_most))
    return figures


def show(benchmark: str, subject: str, figures: Sequence[Figure], out: Path | None) -> None:
    """Print figures, and add them to a CSV file."""
    print(f"\n{subject}: median, half the distance of the quartiles, at most")
    for name, value, spread, at_most in figures:
        print(f"{name:60} {value:10.4g} {spread:10.3g} {'' if at_most is None else at_most:>7}")
    if out is None:
        return
    from gpflow_dwp.evaluation.provenance import describe_provenance

    about: dict[str, Any] = describe_provenance("float64", 1)
    is_new = not out.exists()
    with out.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if is_new:
            names = ("name", "value", "spread", "at_most", "machine", "commit", "date")
            writer.writerow(["benchmark", "subject", *names])
        for figure in figures:
            where = (about["machine"], about["commit"], about["date"])
            writer.writerow([benchmark, subject, *figure, *where])


if __name__ == "__main__":
    sys.exit(app())
