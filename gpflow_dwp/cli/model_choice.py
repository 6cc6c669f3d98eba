"""What model ``gpflow-dwp fit`` trains, and how, as its options say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from gpflow_dwp.cli.errors import UsageError
from gpflow_dwp.cli.fit_data import FitData
from gpflow_dwp.cli.fit_options import CompleteOptions, FitOptions

if TYPE_CHECKING:
    from gpflow_dwp.models import VariationalModel
    from gpflow_dwp.training.protocol import ProtocolName

__all__ = [
    "TITLES",
    "build_model",
    "choose_protocol",
    "complete",
    "model_arguments",
    "number_of_draws",
]

TITLES = {
    "DWP": "deep Wishart process",
    "DGP": "deep GP",
    "DIWP": "deep inverse Wishart process",
    "VMG": "matrix-Gaussian network",
}
"""What tables of scores call each model."""
_LOGS = (".csv",)
# Options that are not for a model.
_NOT_FOR: dict[str, tuple[str, ...]] = {
    "DWP": ("num_pseudo_data",),
    "DGP": ("num_pseudo_data", "posterior", "whiten"),
    "DIWP": ("num_pseudo_data", "posterior", "whiten", "width"),
    "VMG": (
        *("inducing", "kernel", "latent_dim", "likelihood", "output_posterior", "posterior"),
        "whiten",
    ),
}

# Options that builders and selection take, by what they call them; what is left out has their
# defaults.
_ARGUMENTS = {
    name: {"output_posterior": "output"}.get(name, name)
    for name in (
        *("inducing", "kernel", "latent_dim", "num_inducing", "num_pseudo_data"),
        *("output_posterior", "posterior", "whiten", "width"),
    )
}
_STEPS = {"fast": 3_000, "vmg": 20_000}
_STEPS_OF_EACH = 0  # what suits each model


def choose_protocol(options: FitOptions) -> ProtocolName:
    """Return the protocol that trains the model."""
    return "vmg" if options.model == "VMG" else "fast"


def complete(options: FitOptions) -> CompleteOptions:
    """Fill in what depends on the model where the user left it open.

    :raises UsageError: If options do not go together.
    """
    for mistake in _mistakes(options):
        raise UsageError(mistake)
    protocol = choose_protocol(options)
    defaults: dict[str, Any] = {"depth": 3 if _for_one_model(options) else "auto"}
    defaults |= {"num_steps": _STEPS[protocol]}
    if (options.depth or defaults["depth"]) == "auto":
        defaults["num_steps"] = _STEPS_OF_EACH
    else:
        defaults["num_inducing"] = 100
    chosen = {name: value for name, value in asdict(options).items() if value is not None}
    return CompleteOptions(**{**defaults, **chosen})


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
    if options.effort is not None and options.depth not in (None, "auto"):
        yield "--effort is for --depth auto"
    if options.depth == "auto":
        for name in _for_one_model(options):
            yield f"--depth auto cannot go with {name}, which is for one model: give its --depth"
    for name in _NOT_FOR[options.model]:
        if getattr(options, name) not in (None, False):
            yield f"{_flag(name)} is not for --model {options.model}"
    if options.task == "classification":
        if options.likelihood is not None:
            yield "--likelihood is for --task regression: labels have their own"
        if options.validation_metric == "rmse":
            yield "--validation-metric rmse is not for --task classification"
    if options.num_importance_samples > 1 and options.model == "VMG":
        yield "--importance-samples must be 1 for --model VMG"
    if options.num_importance_samples > 1 and options.latent_dim is None:
        yield "--importance-samples are draws of latent variables: give --latent-dim"
    if options.log is not None and options.log.suffix not in _LOGS:
        yield f"--log must end in {' or '.join(_LOGS)}, got {str(options.log)!r}"
    for name in ("patience", "validation_metric"):
        if getattr(options, name) is not None and options.validation_fraction is None:
            yield f"{_flag(name)} goes with --validation-fraction only"


def _for_one_model(options: FitOptions) -> list[str]:
    """Options that are given, and are for a model of one depth."""
    are_given = {
        "--devices": options.devices is not None,
        "--log": options.log is not None,
        "--validation-metric rmse": options.validation_metric == "rmse",
        f"--model {options.model}": options.model != "DWP",
    }
    return [option for option, is_given in are_given.items() if is_given]


def build_model(options: CompleteOptions, data: FitData) -> VariationalModel:
    """Return an untrained model, which has a single layer where the depth is still to be chosen.

    :raises ValueError: If an option's value cannot be used.
    """
    from gpflow_dwp import matrix_gaussian, models

    arguments = model_arguments(options)
    likelihood: Any = data.likelihood
    if options.model == "VMG":
        arguments.pop("num_inducing", None)  # those of the sparse GP that is compared with
        arguments["target_scale"] = 1.0 if data.target is None else float(data.target.scale[0])
    else:
        likelihood = likelihood or options.likelihood or "gaussian"
        if options.batch_size is not None:
            arguments.setdefault("output", "pseudo_targets")
    builders: dict[str, Any] = {
        "DWP": models.build_deep_wishart_process,
        "DGP": models.build_deep_gaussian_process,
        "DIWP": models.build_deep_inverse_wishart_process,
        "VMG": matrix_gaussian.build_matrix_gaussian_network,
    }
    model: VariationalModel = builders[options.model](
        data.rows,
        1 if options.depth == "auto" else options.depth,
        likelihood=likelihood,
        num_samples=number_of_draws(options),
        seed=options.seed,
        **arguments,
    )
    return model


def number_of_draws(options: FitOptions) -> int:
    """Return how many draws estimate the bound."""
    return options.num_samples or (1 if options.model == "VMG" else 2)


def model_arguments(options: FitOptions) -> dict[str, Any]:
    """Return what the user says of the model, by what builders and selection call it."""
    given = {argument: getattr(options, name) for name, argument in _ARGUMENTS.items()}
    given["kernel"] = {"RBF": "SquaredExponential"}.get(options.kernel or "", options.kernel)
    return {name: value for name, value in given.items() if value not in (None, False)}


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
