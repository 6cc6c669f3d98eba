"""The options of commands, and which of them go together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Group, Parameter
from cyclopts.validators import Number

from gpflow_dwp.cli.errors import UsageError
from gpflow_dwp.data.reading import Format
from gpflow_dwp.data.table import Task

__all__ = ["FileOptions", "FitOptions", "Json", "NumSamples", "RunDirectory", "Seed", "complete"]

Count = Annotated[int, Parameter(validator=Number(gte=1))]
Size = Annotated[int, Parameter(validator=Number(gte=1, lte=1_000_000))]
"""A number of draws or columns: what arrays of this size are made for."""
Fraction = Annotated[float, Parameter(validator=Number(gt=0, lt=1))]
Seed = Annotated[int, Parameter(validator=Number(gte=0, lt=2**32))]
_FILE = Group.create_ordered("Table's file")
FileOptions = Annotated[Format, Parameter(name="*", group=_FILE)]
RunDirectory = Annotated[Path, Parameter(help="A directory that fit wrote.")]
NumSamples = Annotated[Size, Parameter(help="Draws that make up the predictive mixture.")]
Json = Annotated[bool, Parameter(help="Print the result as one line of JSON, for programs.")]

_DATA = Parameter(group=Group.create_ordered("Data"))
_MODEL = Parameter(group=Group.create_ordered("Model"))
_TRAINING = Parameter(group=Group.create_ordered("Training"))
_OUTPUT = Parameter(group=Group.create_ordered("Output and runs again"))
_Likelihood = Literal[
    "gaussian", "noise_free", "warped", "student_t", "warped_student_t", "heteroskedastic"
]
_Kernel = Literal[
    "ArcCosine",
    "Exponential",
    "Matern12",
    "Matern32",
    "Matern52",
    "RationalQuadratic",
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
    :param test_fraction: Share of rows that are held out.
    :param columns: The inputs (default: every column but the target).
    :param drop: Columns that are no inputs, such as names of rows.
    :param categorical: Inputs of numbers that are categories, as text and Boolean columns are: the
        model gets a column of 0 and 1 for each.
    :param impute: Fill missing numbers of inputs with this of the column's training rows (default:
        they are refused); a missing category is one of its own in any case.
    :param model: Deep Wishart process, the deep GP with the same prior, deep inverse Wishart
        process, or matrix-Gaussian neural network.
    :param depth: Layers: N - 1 hidden layers and an output GP, or output weights of a VMG; auto for
        a DWP whose depth, kernel and noise are what predicts best (default: auto; 3 for other
        models and with --devices).
    :param posterior: Family of approximate posteriors of a DWP (default: AB).
    :param whiten: Posteriors of a DWP relative to the prior's scale.
    :param output_posterior: What the posterior of a process's output layer comes from: learned
        pseudo-targets, or a regression on all data, which takes far fewer steps (default:
        regression for numbers, up to 2000 training rows, without minibatches).
    :param likelihood: How numbers scatter around a process: not at all (noise_free, for a simulator
        without noise), Gaussian, Gaussian in a learned function of the target (warped), with
        learned tails (student_t), both (warped_student_t), or as far as the inputs tell
        (heteroskedastic) (default: gaussian; with --depth auto what predicts best).
    :param effort: What --depth auto tries: quick for single layers only, thorough for more steps
        and depth 3 (default: default).
    :param kernel: GPflow's name of the kernel (default: SquaredExponential, also called RBF; with
        --depth auto the best of three).
    :param width: Degrees of freedom of each layer: its number of features in a DGP (default: number
        of inputs), of hidden units in a VMG (default: 50).
    :param num_pseudo_data: Pseudo-data pairs of each layer of a VMG, at most its inputs (default:
        10).
    :param num_inducing: Inducing points, also of the sparse GP that is compared with (default: 100;
        with --depth auto more in a single layer and for many rows).
    :param inducing: Where they start: on training rows or cluster centres (default: subset).
    :param num_steps: Gradient steps (default: 3000, where the papers take 20000; 20000 small ones
        of a VMG; with --depth auto 1000 of each model of several layers, 600 above 500 rows).
    :param num_samples: Draws that estimate the bound (default: 2; 1 for a VMG).
    :param batch_size: Rows of a minibatch (default: all up to 2000 rows, 1000 above; for a VMG 20,
        or a 50th of the rows if that is more).
    :param devices: GPUs of this machine that share every step's rows (default: one device).
    :param seed: For split, start and draws.
    :param validation_fraction: Hold out this share of the training rows, end training when their
        log density gets no better, and keep the best parameters (default: no early stopping). With
        --depth auto that is so of every model that takes gradient steps.
    :param patience: After how many looks that found nothing better training ends (default: 10).
    :param callback_interval: Steps between two looks.
    :param out: Run directory to write (default: runs/NAME-K, with the next free K).
    :param overwrite: Replace the run that --out holds, once the new one is written.
    :param quiet: Show no progress.
    :param json: Print the result as one line of JSON, for programs.
    :param config: YAML or JSON file of options by name, such as the config.yaml that every run
        writes; options of the command line go before it.
    :param resume: Go on with a run that was killed or interrupted, with its own options.
    """

    target: Annotated[str | None, _DATA] = None
    task: Annotated[Task, _DATA] = "regression"
    test_fraction: Annotated[Fraction, _DATA] = 0.1
    columns: Annotated[tuple[str, ...], _DATA] = ()
    drop: Annotated[tuple[str, ...], _DATA] = ()
    categorical: Annotated[tuple[str, ...], _DATA] = ()
    impute: Annotated[Literal["mean", "median", "most_frequent"] | None, _DATA] = None
    model: Annotated[Literal["DWP", "DGP", "DIWP", "VMG"], _MODEL] = "DWP"
    depth: Annotated[int | Literal["auto"] | None, _MODEL] = None
    posterior: Annotated[Literal["AB", "A", "GW"] | None, _MODEL] = None
    whiten: Annotated[bool, _MODEL] = False
    output_posterior: Annotated[Literal["pseudo_targets", "regression"] | None, _MODEL] = None
    likelihood: Annotated[_Likelihood | None, _MODEL] = None
    effort: Annotated[Literal["quick", "default", "thorough"] | None, _MODEL] = None
    kernel: Annotated[_Kernel | None, _MODEL] = None
    width: Annotated[Size | None, Parameter(name=("--width", "--hidden-units")), _MODEL] = None
    num_pseudo_data: Annotated[Size | None, _MODEL] = None
    num_inducing: Annotated[Size | None, _MODEL] = None
    inducing: Annotated[Literal["subset", "kmeans"] | None, _MODEL] = None
    num_steps: Annotated[Count | None, _TRAINING] = None
    num_samples: Annotated[Size | None, _TRAINING] = None
    batch_size: Annotated[Count | None, _TRAINING] = None
    devices: Annotated[Count | None, _TRAINING] = None
    seed: Annotated[Seed, _TRAINING] = 0
    validation_fraction: Annotated[Fraction | None, _TRAINING] = None
    patience: Annotated[Count | None, _TRAINING] = None
    callback_interval: Annotated[Count, _TRAINING] = 100
    out: Annotated[Path | None, _OUTPUT] = None
    overwrite: Annotated[bool, _OUTPUT] = False
    quiet: Annotated[bool, _OUTPUT] = False
    json: Annotated[bool, _OUTPUT] = False
    config: Annotated[Path | None, _OUTPUT] = None
    resume: Annotated[Path | None, _OUTPUT] = None

    @property
    def model_arguments(self) -> dict[str, Any]:
        """What the user says of the model, by what builders and selection call it."""
        names = ("inducing", "kernel", "num_inducing", "num_pseudo_data")
        given = {name: getattr(self, name) for name in (*names, "posterior", "whiten", "width")}
        given["output"] = self.output_posterior
        given["kernel"] = "SquaredExponential" if self.kernel == "RBF" else self.kernel
        given["num_samples"] = self.num_samples or (1 if self.model == "VMG" else 2)
        chosen = {name: value for name, value in given.items() if value not in (None, False)}
        return {**chosen, "seed": self.seed}


# Options that are not for a model.
_NOT_FOR: dict[str, tuple[str, ...]] = {
    "DWP": ("num_pseudo_data",),
    "DGP": ("num_pseudo_data", "posterior", "whiten"),
    "DIWP": ("num_pseudo_data", "posterior", "whiten", "width"),
    "VMG": (*("inducing", "kernel", "likelihood", "output_posterior", "posterior", "whiten"),),
}


def complete(options: FitOptions) -> FitOptions:
    """Fill in the depth, and what depends on it, where the user left it open."""
    for mistake in _mistakes(options):
        raise UsageError(mistake)
    depth = options.depth or (3 if _for_one_model(options) else "auto")
    if depth == "auto":
        return replace(options, depth=depth)
    num_steps = options.num_steps or (20_000 if options.model == "VMG" else 3_000)
    num_inducing = options.num_inducing or 100
    return replace(options, depth=depth, num_steps=num_steps, num_inducing=num_inducing)


def _mistakes(options: FitOptions) -> Iterator[str]:
    """What does not go together."""
    if options.table is None:
        of_a_table = (options.target, options.categorical, options.columns, options.drop)
        if any(of_a_table) or options.task != "regression":
            yield "--target and --task belong to a table of yours; name its CSV file"
    elif options.target is None:
        yield "--target is missing: name the column to predict"
    if options.columns and options.drop:
        yield "--drop cannot go with --columns, which names all inputs"
    if isinstance(options.depth, int) and options.depth < 1:
        yield f"--depth must be a positive integer, or auto, got {options.depth}"
    if options.effort is not None and options.depth not in (None, "auto"):
        yield "--effort is for --depth auto"
    if options.depth == "auto":
        for name in _for_one_model(options):
            yield f"--depth auto cannot go with {name}, which is for one model: give its --depth"
    for name in _NOT_FOR[options.model]:
        if getattr(options, name) not in (None, False):
            yield f"--{name.replace('_', '-')} is not for --model {options.model}"
    if options.task == "classification" and options.likelihood is not None:
        yield "--likelihood is for --task regression: labels have their own"
    if options.patience is not None and options.validation_fraction is None:
        yield "--patience goes with --validation-fraction only"


def _for_one_model(options: FitOptions) -> list[str]:
    """Options that are given, and are for a model of one depth."""
    devices = [] if options.devices is None else ["--devices"]
    return [*devices, *([f"--model {options.model}"] if options.model != "DWP" else [])]
