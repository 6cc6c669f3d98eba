"""The options of ``gpflow-dwp fit``. Nothing heavy is imported here."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Group, Parameter

from gpflow_dwp.cli.parameters import (
    Config,
    Decimal,
    Depth,
    Encoding,
    Fraction,
    Json,
    Missing,
    Names,
    PositiveInteger,
    Quiet,
    Seed,
    Separator,
    Size,
)

__all__ = ["CompleteOptions", "FitOptions"]

KernelName = Literal[
    "ArcCosine",
    "Exponential",
    "Matern12",
    "Matern32",
    "Matern52",
    "RationalQuadratic",
    "SquaredExponential",
    "RBF",
]
_DATA = Parameter(group=Group.create_ordered("Data"))
LikelihoodName = Literal[
    "gaussian", "noise_free", "warped", "student_t", "warped_student_t", "heteroskedastic"
]
_MODEL = Parameter(group=Group.create_ordered("Model"))
_TRAINING = Parameter(group=Group.create_ordered("Training"))
_STOPPING = Parameter(group=Group.create_ordered("Early stopping and log"))
_OUTPUT = Parameter(group=Group.create_ordered("Output"))
_AGAIN = Parameter(group=Group.create_ordered("Runs again"))


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class FitOptions:
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
        models and with --devices, --log or --validation-metric rmse, which are for one model).
    :param posterior: Family of approximate posteriors of a DWP (default: AB).
    :param whiten: Posteriors of a DWP relative to the prior's scale.
    :param output_posterior: What the posterior of a process's output layer comes from: learned
        pseudo-targets, or a regression on all data, which takes far fewer steps (default:
        regression for numbers, up to 2000 training rows, without minibatches and latent variables).
    :param likelihood: How numbers scatter around a process: warped for noise that is Gaussian in a
        learned function of the target, student_t for learned tails, warped_student_t for both,
        heteroskedastic where the inputs tell how far (default: gaussian; with --depth auto what
        predicts best).
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
    :param latent_dim: Latent variables of each row, extra inputs that its target tells of (default:
        none).
    :param num_steps: Gradient steps (default: 3000, where the papers take 20000; 20000 small ones
        of a VMG; with --depth auto 1000 of each model of several layers, 600 above 500 rows).
    :param num_samples: Draws that estimate the bound (default: 2; 1 for a VMG).
    :param num_importance_samples: Draws of each row's latent variables: more than 1 for the
        importance-weighted bound.
    :param batch_size: Rows of a minibatch (default: all up to 2000 rows, 1000 above; for a VMG 20,
        or a 50th of the rows if that is more).
    :param devices: GPUs of this machine that share every step's rows (default: one device).
    :param seed: For split, start and draws.
    :param out: Run directory to write (default: runs/NAME-K, with the next free K).
    :param overwrite: Replace the run that --out holds, once the new one is written, and the file of
        --log.
    :param validation_fraction: Hold out this share of the training rows, end training when they are
        predicted no better, and keep the best parameters (default: no early stopping). With --depth
        auto that is so of every model that takes gradient steps.
    :param validation_metric: What is to get better (default: log_density).
    :param patience: After how many looks that found nothing better training ends (default: 10).
    :param callback_interval: Steps between two looks, and two rows of the log.
    :param log: File to write the bound to in the course of training, in standardised units: .csv.
    :param resume: Go on with a run that was killed or interrupted, with its own options.
    """

    table: Annotated[Path | None, _DATA] = field(default=None, kw_only=False)
    target: Annotated[str | None, _DATA] = None
    task: Annotated[Literal["regression", "classification"], _DATA] = "regression"
    test_fraction: Annotated[Fraction, _DATA] = 0.1
    columns: Annotated[Names, _DATA] = ()
    drop: Annotated[Names, _DATA] = ()
    categorical: Annotated[Names, _DATA] = ()
    impute: Annotated[Literal["mean", "median", "most_frequent"] | None, _DATA] = None
    separator: Separator = None
    decimal: Decimal = None
    encoding: Encoding = None
    missing: Missing = ()
    model: Annotated[Literal["DWP", "DGP", "DIWP", "VMG"], _MODEL] = "DWP"
    depth: Annotated[Depth | None, _MODEL] = None
    posterior: Annotated[Literal["AB", "A", "GW"] | None, _MODEL] = None
    whiten: Annotated[bool, _MODEL] = False
    output_posterior: Annotated[Literal["pseudo_targets", "regression"] | None, _MODEL] = None
    likelihood: Annotated[LikelihoodName | None, _MODEL] = None
    effort: Annotated[Literal["quick", "default", "thorough"] | None, _MODEL] = None
    kernel: Annotated[KernelName | None, _MODEL] = None
    width: Annotated[Size | None, Parameter(name=("--width", "--hidden-units")), _MODEL] = None
    num_pseudo_data: Annotated[Size | None, _MODEL] = None
    num_inducing: Annotated[Size | None, _MODEL] = None
    inducing: Annotated[Literal["subset", "kmeans"] | None, _MODEL] = None
    latent_dim: Annotated[Size | None, _MODEL] = None
    num_steps: Annotated[PositiveInteger | None, _TRAINING] = None
    num_samples: Annotated[Size | None, _TRAINING] = None
    num_importance_samples: Annotated[Size, Parameter("--importance-samples"), _TRAINING] = 1
    batch_size: Annotated[PositiveInteger | None, _TRAINING] = None
    devices: Annotated[PositiveInteger | None, _TRAINING] = None
    seed: Annotated[Seed, _TRAINING] = 0
    validation_fraction: Annotated[Fraction | None, _STOPPING] = None
    validation_metric: Annotated[Literal["log_density", "rmse"] | None, _STOPPING] = None
    patience: Annotated[PositiveInteger | None, _STOPPING] = None
    callback_interval: Annotated[PositiveInteger, _STOPPING] = 100
    log: Annotated[Path | None, _STOPPING] = None
    out: Annotated[Path | None, _OUTPUT] = None
    overwrite: Annotated[bool, _OUTPUT] = False
    quiet: Annotated[Quiet, _OUTPUT] = False
    json: Annotated[Json, _OUTPUT] = False
    config: Annotated[Config, _AGAIN] = None
    resume: Annotated[Path | None, _AGAIN] = None


@dataclass(frozen=True, kw_only=True)
class CompleteOptions(FitOptions):
    """Options in which nothing is left open that depends on the model."""

    depth: int | str
    num_steps: int
