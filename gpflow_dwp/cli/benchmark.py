"""``gpflow-dwp benchmark``: how fast a training step is on this machine."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from gpflow_dwp.cli.errors import UsageError, user_mistakes
from gpflow_dwp.cli.parameters import (
    LIST,
    Dtype,
    PositiveInteger,
    PositiveIntegers,
    Quiet,
    Seed,
    UciFolder,
)
from gpflow_dwp.optional import import_optional

if TYPE_CHECKING:
    from gpflow_dwp.lab.benchmarks import Operation

__all__ = [
    "benchmark",
    "bound",
    "memory",
    "precision",
    "scale",
    "step",
    "time_import",
    "time_predictions",
    "variance",
]

_Model = Literal["GW", "A", "AB", "A-whitened", "DGP"]
_WishartModel = Literal["GW", "A", "AB", "A-whitened"]
_Shape = Literal["yacht-2", "yacht-5", "protein-5", "large-3"]
_Shapes = Annotated[tuple[_Shape, ...], LIST, Parameter(help="Sizes of a step.")]
_Models = Annotated[tuple[_Model, ...], LIST, Parameter(help="Deep Wishart processes, and a DGP.")]
_WishartModels = Annotated[
    tuple[_WishartModel, ...], LIST, Parameter(help="Deep Wishart processes.")
]
_Dtypes = Annotated[tuple[Literal["float64", "float32"], ...], LIST, Parameter(help="Precisions.")]
_Turns = Annotated[PositiveInteger, Parameter(help="How often each thing is measured.")]
_Threads = Annotated[PositiveInteger, Parameter(help="Threads of each process.")]
_Dataset = Annotated[str, Parameter(help="UCI data set.")]
_Split = Annotated[int, Parameter(help="Its split.")]
_Seed = Annotated[Seed, Parameter(help="For start and draws.")]
_Depth = Annotated[PositiveInteger, Parameter(help="Layers.")]
_Json = Annotated[
    tuple[Path, ...] | None,
    Parameter(
        consume_multiple=(0, 1),
        help="Print the result as one line of JSON, or write every value to the file that follows.",
    ),
]
_MODEL = Parameter(help="The posterior of a deep Wishart process, or a DGP.")
_SHAPES: tuple[_Shape, ...] = ("yacht-2", "yacht-5")
_MODELS: tuple[_Model, ...] = ("GW", "A", "AB", "A-whitened", "DGP")
_WISHART_MODELS: tuple[_WishartModel, ...] = ("GW", "A", "AB", "A-whitened")

benchmark = App(
    "benchmark",
    help="""Measure how fast training is on this machine.

Subjects take turns, each in a process of its own; medians are printed, half of the distance of the
quartiles, and what is aimed at.

examples:

    gpflow-dwp benchmark step --shapes yacht-5 --models AB GW --json step.json
    gpflow-dwp benchmark step --shapes protein-5 --models AB --dtypes float64 float32
    gpflow-dwp benchmark step --models AB --peers gpflux gpytorch --peer-python peers/bin/python
    gpflow-dwp benchmark predict --shapes yacht-2 --models AB DGP
    gpflow-dwp benchmark scale --figure scale.png
    gpflow-dwp benchmark memory --shapes yacht-5 protein-5
    gpflow-dwp benchmark variance --dataset yacht --depth 2 --out gradient_variance.csv
    gpflow-dwp benchmark import
""",
)
"""The command."""


@benchmark.command(sort_key=0)
def step(
    *,
    shapes: _Shapes = _SHAPES,
    models: _Models = _MODELS,
    dtypes: _Dtypes = ("float64",),
    peers: Annotated[tuple[Literal["gpflux", "gpytorch"], ...], LIST] = (),
    peer_python: str | None = None,
    show_floor: bool = False,
    turns: _Turns = 15,
    threads: _Threads = 1,
    quiet: Quiet = False,
    json: _Json = None,
) -> None:
    """Time training steps against the dense linear algebra of a step alone by LAPACK and BLAS.

    :param peers: Deep GPs of other libraries to compare with.
    :param peer_python: Interpreter of an environment that has the peers (default: this one).
    :param show_floor: Print the dense operations of a step instead, and time nothing.
    """
    arguments = locals()
    if arguments.pop("show_floor"):
        _show_floor(shapes, models, json)
    else:
        _measure("step", **arguments)


@benchmark.command(name="predict", sort_key=1)
def time_predictions(
    *,
    shapes: _Shapes = _SHAPES,
    models: _Models = _MODELS,
    dtypes: _Dtypes = ("float64",),
    num_samples: PositiveInteger = 100,
    turns: _Turns = 9,
    threads: _Threads = 1,
    quiet: Quiet = False,
    json: _Json = None,
) -> None:
    """Time compiled predictions, and their linear algebra alone.

    :param num_samples: Draws that make up the predictive mixture.
    """
    _measure("predict", **locals())


@benchmark.command(sort_key=2)
def scale(
    *,
    axes: Annotated[tuple[Literal["N", "S", "depth", "M"], ...], LIST] = ("N", "S", "depth", "M"),
    model: Annotated[_Model, _MODEL] = "AB",
    dtype: Dtype = "float64",
    figure: Path | None = None,
    turns: _Turns = 7,
    threads: _Threads = 1,
    quiet: Quiet = False,
    json: _Json = None,
) -> None:
    """Tell how the time of a step grows with rows, draws, depth and inducing points: exponents.

    :param axes: What grows, one after the other.
    :param figure: Figure to write; its ending says the format.
    """
    from gpflow_dwp.lab.benchmarks import plot_scale

    if figure is not None:
        with user_mistakes():
            _check_figure(figure)
    result = _measure(
        "scale", json, quiet, axes=axes, model=model, dtype=dtype, turns=turns, threads=threads
    )
    if figure is not None:
        plot_scale(result).savefig(figure)


@benchmark.command(sort_key=3)
def memory(
    *,
    shapes: _Shapes = _SHAPES,
    models: _WishartModels = _WISHART_MODELS,
    dtypes: _Dtypes = ("float64",),
    turns: _Turns = 5,
    threads: _Threads = 1,
    quiet: Quiet = False,
    json: _Json = None,
) -> None:
    """Measure the peak memory of a step, over the arrays that its reverse pass must keep."""
    _measure("memory", **locals())


@benchmark.command(sort_key=4)
def variance(
    *,
    dataset: _Dataset = "yacht",
    split: _Split = 0,
    model: Annotated[_WishartModel, _MODEL] = "AB",
    depth: _Depth = 2,
    seed: _Seed = 0,
    uci_folder: UciFolder = None,
    num_samples: PositiveIntegers = (1, 2, 5, 10),
    num_inducing: PositiveInteger = 100,
    num_steps: PositiveInteger = 2_000,
    num_gradients: PositiveInteger = 100,
    out: Path | None = None,
    quiet: Quiet = False,
    json: _Json = None,
) -> None:
    """Measure the noise of gradients, by the estimator of the bound.

    :param num_samples: Draws that estimate the bound.
    :param num_inducing: Inducing points.
    :param num_steps: Steps of training between the two measurements.
    :param num_gradients: Gradients that each variance is estimated from.
    :param out: CSV file to write, with every value.
    """
    from gpflow_dwp.cli.benchmark_variance import flat, print_variances, write_variances
    from gpflow_dwp.cli.reports import check_out, write_json
    from gpflow_dwp.data import UCI_DATASETS, load_uci
    from gpflow_dwp.lab.benchmarks import benchmark_variance, posterior_arguments
    from gpflow_dwp.lab.study import describe_provenance
    from gpflow_dwp.models import build_deep_wishart_process
    from gpflow_dwp.validation import check_choice

    with user_mistakes():
        for file in (out, *(json or ())):
            check_out(file, overwrite=True)
        check_choice(UCI_DATASETS, **{"--dataset": dataset})
        data = load_uci(dataset, split, folder=uci_folder).train
        built = build_deep_wishart_process(
            data,
            depth,
            num_inducing=num_inducing,
            output="pseudo_targets",
            seed=seed,
            **posterior_arguments(model),
        )
        provenance = describe_provenance("float64", 1)
        rows = benchmark_variance(
            built,
            data,
            num_steps=num_steps,
            num_samples=num_samples,
            num_gradients=num_gradients,
            seed=seed,
            report=_report(quiet),
        )
    if not write_json(json, {"provenance": provenance, "rows": [flat(row) for row in rows]}):
        print_variances(rows)
    if out is None:
        return
    settings = {
        "dataset": dataset,
        "split": split,
        "depth": depth,
        "model": model,
        "num_inducing": num_inducing,
        "num_gradients": num_gradients,
        "seed": seed,
    }
    write_variances(out, settings, rows, provenance)


@benchmark.command(sort_key=5)
def bound(
    *,
    dataset: _Dataset = "yacht",
    split: _Split = 0,
    model: Annotated[_WishartModel, _MODEL] = "A",
    depth: _Depth = 2,
    seed: _Seed = 0,
    uci_folder: UciFolder = None,
    level: float | None = None,
    num_steps: PositiveInteger = 3_000,
    papers_steps: PositiveInteger = 20_000,
    hold: PositiveInteger = 1_000,
    threads: _Threads = 1,
    quiet: Quiet = False,
    json: _Json = None,
) -> None:
    """Time training to a bound, by two protocols.

    :param level: Bound per datum to stay above (default: the printed one, less 0.02).
    :param num_steps: Steps of the default protocol's run.
    :param papers_steps: Steps of the papers' protocol's run.
    :param hold: Steps above the level after which a run is ended.
    """
    _measure("bound", **locals())


@benchmark.command(sort_key=6)
def precision(
    *,
    dataset: _Dataset = "yacht",
    split: _Split = 0,
    model: Annotated[_WishartModel, _MODEL] = "A",
    depth: _Depth = 5,
    seed: _Seed = 0,
    uci_folder: UciFolder = None,
    output: Literal["pseudo_targets", "regression"] | None = None,
    dtype: Dtype = "float32",
    num_steps: PositiveInteger = 2_000,
    num_draws: PositiveInteger = 50,
    quiet: Quiet = False,
    json: _Json = None,
) -> None:
    """Compare float32 with float64 at one state.

    :param output: Output layer's posterior (default: regression up to 2000 rows).
    :param num_steps: Steps of training before.
    :param num_draws: Estimates that are compared.
    """
    _measure("precision", **locals())


@benchmark.command(name="import", sort_key=7)
def time_import(*, turns: _Turns = 7, quiet: Quiet = False, json: _Json = None) -> None:
    """Tell what the import of the package adds to that of GPflow."""
    _measure("import", **locals())


def _measure(
    what: str, json: Sequence[Path] | None, quiet: bool, **arguments: Any
) -> dict[str, Any]:
    """Measure, print a table, and write every value where that is asked for.

    :param arguments: Options, as the function of the library has them.
    """
    from gpflow_dwp.cli.reports import check_out, write_json
    from gpflow_dwp.lab import benchmarks
    from gpflow_dwp.lab.study import describe_provenance

    dtypes = arguments.get("dtypes", [arguments.get("dtype", "float64")])
    provenance = describe_provenance("+".join(dtypes), arguments.get("threads", 1))
    with user_mistakes():
        for file in json or ():
            check_out(file, overwrite=True)
        measured = getattr(benchmarks, f"benchmark_{what}")(**arguments, report=_report(quiet))
    if what == "import":
        measured = {"import": {"figures": [figure._asdict() for figure in measured]}}
    if not write_json(json, {"provenance": provenance, **measured}):
        for name, part in measured.items():
            _print_figures(name, part["figures"])
    return measured


def _report(quiet: bool) -> Callable[[str], None]:
    def report(text: str) -> None:
        if not quiet:
            print(text, file=sys.stderr, flush=True)

    return report


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


def _show_floor(shapes: Sequence[str], models: Sequence[str], json: Sequence[Path] | None) -> None:
    from gpflow_dwp.cli.reports import check_out, write_json
    from gpflow_dwp.lab.benchmarks import FLOORED_MODELS, SHAPES, floor_operations

    with user_mistakes():
        for file in json or ():
            check_out(file, overwrite=True)
    floored = [model for model in models if model in FLOORED_MODELS]
    if not floored:
        raise UsageError(f"--show-floor: --models must name one of {', '.join(FLOORED_MODELS)}")
    lists = {
        name: {model: floor_operations(SHAPES[name], model) for model in floored} for name in shapes
    }
    plain = {
        name: {model: [op._asdict() for op in ops] for model, ops in of_models.items()}
        for name, of_models in lists.items()
    }
    if write_json(json, plain):
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
