"""``gpflow-dwp benchmark``: how fast training is on this machine.

Each command is made of the signature and docstring of a function of the lab; what several have in
common is said here.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_origin, get_type_hints

from cyclopts import App, Parameter

from gpflow_dwp.cli.errors import user_mistakes
from gpflow_dwp.cli.parameters import (
    LIST,
    PositiveInteger,
    PositiveIntegers,
    Quiet,
    Seed,
    UciFolder,
)
from gpflow_dwp.lab import benchmarks

if TYPE_CHECKING:
    from gpflow_dwp.lab.benchmarks.measurement import Figure

__all__ = ["benchmark"]

_HELP = {
    "shapes": "Sizes of a step.",
    "models": "Deep Wishart processes by their posteriors, and a deep GP.",
    "model": "The posterior of a deep Wishart process, or a DGP.",
    "dtypes": "Precisions.",
    "dtype": "Precision.",
    "turns": "How often each thing is measured.",
    "threads": "Threads of each process.",
    "dataset": "UCI data set.",
    "split": "Its split.",
    "depth": "Layers.",
    "seed": "For start and draws.",
}
_Json = Annotated[
    tuple[Path, ...] | None,
    Parameter(
        consume_multiple=(0, 1),
        help="Print the result as one line of JSON, or write it all to the new file that follows.",
    ),
]
_OF_ALL = [
    inspect.Parameter("quiet", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Quiet),
    inspect.Parameter("json", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_Json),
]
_BY_NAME: dict[str, Any] = {"seed": Seed, "split": int, "uci_folder": UciFolder}
_BY_TYPE: dict[Any, Any] = {int: PositiveInteger, tuple[int, ...]: PositiveIntegers}

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
    gpflow-dwp benchmark scale --axes N M
    gpflow-dwp benchmark devices --devices 2 --shapes large-3
    gpflow-dwp benchmark gpu --shapes large-3
    gpflow-dwp benchmark memory --shapes yacht-5 protein-5
    gpflow-dwp benchmark variance --dataset yacht --depth 2 --json gradient_variance.json
    gpflow-dwp benchmark import
""",
)
"""The command."""


def _command(place: str) -> Callable[..., None]:
    """A command that measures by a function, shows a table, and writes every value."""
    module, _, name = place.partition(":")
    measured_by = import_module(f"{benchmarks.__name__}.{module}")

    def command(*, quiet: bool, json: tuple[Path, ...] | None, **arguments: Any) -> None:
        from gpflow_dwp.cli.reports import teller, write_json
        from gpflow_dwp.evaluation.provenance import describe_provenance

        dtypes = arguments.get("dtypes", [arguments.get("dtype", "float64")])
        provenance = describe_provenance("+".join(dtypes), arguments.get("threads", 1))
        with user_mistakes():
            measure = getattr(measured_by, name)
            report = teller(shown=not quiet, to=sys.stderr)
            measured = measure(**arguments, report=report)
        found = {
            title: {"figures": part.figures, **part.values} for title, part in measured.items()
        }
        if not write_json(json, {"provenance": provenance, **found}):
            for title, part in measured.items():
                _print_figures(title, part.figures)

    options = [*_own_options(getattr(measured_by, name)), *_OF_ALL]
    command.__doc__ = getattr(measured_by, name).__doc__
    command.__annotations__ = {}  # those of the signature are meant
    command.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    return command


def _own_options(function: Callable[..., Any]) -> Iterator[inspect.Parameter]:
    """What a function takes but a report of progress, as options."""
    hints = get_type_hints(function)
    for name, parameter in inspect.signature(function).parameters.items():
        if name == "report":
            continue
        hint = _BY_NAME.get(name) or _BY_TYPE.get(hints[name], hints[name])
        if get_origin(hint) is tuple:
            hint = Annotated[hint, LIST]
        if name in _HELP:
            hint = Annotated[hint, Parameter(help=_HELP[name])]
        yield parameter.replace(annotation=hint)


def _print_figures(title: str, figures: Sequence[Figure]) -> None:
    width = max(len(title), *(len(figure.name) for figure in figures))
    print(f"{title:{width}}      median          +-  at most")
    for name, value, spread, at_most in figures:
        aim = "" if at_most is None else f"{at_most:7g}"
        print(f"{name:{width}}  {value:10.4g}  {spread:10.3g}  {aim}".rstrip())
    print(flush=True)


for _place, (_name, _where) in enumerate(benchmarks.BENCHMARKS.items()):
    benchmark.command(_command(_where), name=_name, sort_key=_place)
