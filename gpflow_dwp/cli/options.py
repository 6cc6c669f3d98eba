"""The options of commands, and which of them go together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Group, Parameter
from cyclopts.validators import Number

from gpflow_dwp.cli.errors import UsageError
from gpflow_dwp.data.reading import Format
from gpflow_dwp.data.table import Task
from gpflow_dwp.files import read_sealed

__all__ = ["FileOptions", "FitOptions", "Json", "NumSamples", "RunDirectory", "complete", "read"]

Count = Annotated[int, Parameter(validator=Number(gte=1))]
Size = Annotated[int, Parameter(validator=Number(gte=1, lte=1_000_000))]
"""A number of draws or points: what arrays of this size are made for."""
_FILE = Group.create_ordered("Table's file")
FileOptions = Annotated[Format, Parameter(name="*", group=_FILE)]
RunDirectory = Annotated[Path, Parameter(help="A directory that fit wrote.")]
NumSamples = Annotated[Size, Parameter(help="Draws that make up the predictive mixture.")]
Json = Annotated[bool, Parameter(help="Print the result as one line of JSON, for programs.")]

_DATA = Parameter(group=Group.create_ordered("Data"))
_MODEL = Parameter(group=Group.create_ordered("Model"))
_OUTPUT = Parameter(group=Group.create_ordered("Output and runs again"))
_Likelihood = Literal[
    "gaussian", "noise_free", "warped", "student_t", "warped_student_t", "heteroskedastic"
]
_Kernel = Literal[
    "AdditiveMatern32",
    "AdditiveMatern52",
    "AdditiveSquaredExponential",
    "ArcCosine",
    "Exponential",
    "LevelsMatern52",
    "Matern12",
    "Matern32",
    "Matern52",
    "RationalQuadratic",
    "SeparableMatern52",
    "SquaredExponential",
    "RBF",
]


@dataclass(frozen=True)
class _TableArgument:
    """The only argument that needs no name, which is therefore the first of the fields."""

    table: Annotated[Path | None, _DATA] = None


@Parameter(name="*", group=_FILE)
@dataclass(frozen=True, kw_only=True)
class FitOptions(Format, _TableArgument):
    """What a run is made of.

    :param table: CSV file with a header, Parquet or Feather file (default: yacht).
    :param target: The column to predict.
    :param task: What the target is: a number or a label.
    :param drop: Columns that are no inputs, such as names of rows.
    :param categorical: Inputs of numbers that are categories, as text and Boolean columns are: the
        model gets a column of 0 and 1 for each.
    :param impute: Fill missing numbers of inputs with the median of the column's training rows
        (default: they are refused); a missing category is one of its own in any case.
    :param test_fraction: Share of rows that are held out.
    :param model: Deep Wishart process, or the deep GP with the same prior.
    :param depth: Layers: N - 1 hidden layers and an output GP; auto for a DWP whose depth, kernel
        and noise are what predicts best (default: auto; 3 for a DGP).
    :param likelihood: How numbers scatter around a function: not at all (noise_free, for a
        simulator without noise), Gaussian, Gaussian in a learned function of the target
        (warped), with learned tails (student_t), both (warped_student_t), or as far as the inputs
        tell (heteroskedastic) (default: gaussian; with --depth auto what predicts best).
    :param kernel: GPflow's name of the kernel (default: SquaredExponential, also called RBF; with
        --depth auto the best of three).
    :param effort: What --depth auto tries: quick for single layers only, thorough for more steps
        and depth 3 (default: default).
    :param num_inducing: Inducing points (default: 100; --depth auto: more at depth 1, many rows).
    :param num_steps: Gradient steps, of --depth auto at most (default: 3000; the papers: 20000).
    :param seed: For split, start and draws.
    :param out: Run directory to write (default: runs/NAME-K, with the next free K).
    :param quiet: Show no progress.
    :param json: Print the result as one line of JSON, for programs.
    :param resume: Go on with a run that was killed or interrupted, with its own options.
    """

    target: Annotated[str | None, _DATA] = None
    task: Annotated[Task, _DATA] = "regression"
    drop: Annotated[tuple[str, ...], _DATA] = ()
    categorical: Annotated[tuple[str, ...], _DATA] = ()
    impute: Annotated[bool, _DATA] = False
    test_fraction: Annotated[float, Parameter(validator=Number(gt=0, lt=1)), _DATA] = 0.1
    model: Annotated[Literal["DWP", "DGP"], _MODEL] = "DWP"
    depth: Annotated[int | Literal["auto"] | None, _MODEL] = None
    likelihood: Annotated[_Likelihood | None, _MODEL] = None
    kernel: Annotated[_Kernel | None, _MODEL] = None
    effort: Annotated[Literal["quick", "default", "thorough"] | None, _MODEL] = None
    num_inducing: Annotated[Size | None, _MODEL] = None
    num_steps: Annotated[Count | None, _MODEL] = None
    seed: Annotated[int, Parameter(validator=Number(gte=0, lt=2**32)), _MODEL] = 0
    out: Annotated[Path | None, _OUTPUT] = None
    quiet: Annotated[bool, _OUTPUT] = False
    json: Annotated[bool, _OUTPUT] = False
    resume: Annotated[Path | None, _OUTPUT] = None

    @property
    def model_arguments(self) -> dict[str, Any]:
        """What the user says of the model, by what builders and selection call it."""
        kernel = "SquaredExponential" if self.kernel == "RBF" else self.kernel
        given = {"kernel": kernel, "num_inducing": self.num_inducing, "seed": self.seed}
        return {name: value for name, value in given.items() if value is not None}

    def plain(self) -> dict[str, Any]:
        """What the run is made of, in values for JSON: all but where it goes."""
        given = {name: value for name, value in asdict(self).items() if name not in _SHOWN}
        return {**given, "table": None if self.table is None else str(self.table.resolve())}


_OF_TABLE = ("target", "task", "drop", "categorical", "impute")
# What a run is not made of.
_SHOWN = ("out", "quiet", "json", "resume")


def read(path: Path, options: FitOptions) -> FitOptions:
    """Return the options that a run was begun with, for one that goes on.

    :param path: A file of what :meth:`FitOptions.plain` gives.
    :param options: Those that are given now.
    """
    shown = {name: getattr(options, name) for name in _SHOWN if name != "out"}
    given = [each.name for each in fields(options) if getattr(options, each.name) != each.default]
    if others := sorted({*given} - {*shown}):
        option = others[0].replace("_", "-")
        raise UsageError(f"--{option} cannot go with --resume: a run goes on as it began")
    kept: dict[str, Any] = read_sealed(path)
    lists = {name: tuple(value) for name, value in kept.items() if isinstance(value, list)}
    if kept.keys() != options.plain().keys():
        raise UsageError(f"{path} was not written by this version of gpflow-dwp")
    table = None if kept["table"] is None else Path(kept["table"])
    return FitOptions(**{**kept, **lists, "table": table, **shown})


def complete(options: FitOptions) -> FitOptions:
    """Fill in the depth, and what depends on it, where the user left it open."""
    for mistake in _mistakes(options):
        raise UsageError(mistake)
    depth = options.depth or ("auto" if options.model == "DWP" else 3)
    if depth == "auto":
        return replace(options, depth=depth)
    return replace(options, depth=depth, num_steps=options.num_steps or 3_000)


def _mistakes(options: FitOptions) -> Iterator[str]:
    """What does not go together."""
    if options.table is None:
        of_table = [*fields(Format), *(each for each in fields(options) if each.name in _OF_TABLE)]
        for each in of_table:
            if getattr(options, each.name) != each.default:
                yield f"--{each.name} belongs to a table of yours: name its file"
    elif options.target is None:
        yield "--target is missing: name the column to predict"
    if isinstance(options.depth, int) and options.depth < 1:
        yield f"--depth must be a positive integer, or auto, got {options.depth}"
    is_auto = options.model == "DWP" and options.depth in (None, "auto")
    if options.effort is not None and not is_auto:
        yield "--effort is for --depth auto"
    if options.depth == "auto" and options.model != "DWP":
        yield f"--depth auto is for --model DWP: give the --depth of a {options.model}"
    if options.task == "classification" and options.likelihood is not None:
        yield "--likelihood is for --task regression: labels have their own"
