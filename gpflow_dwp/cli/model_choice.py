"""What model ``gpflow-dwp fit`` trains, and how, as its options say."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from gpflow.likelihoods import Likelihood

from gpflow_dwp.base import Array
from gpflow_dwp.cli.errors import UsageError
from gpflow_dwp.cli.fit_options import CompleteOptions, FitOptions
from gpflow_dwp.models import (
    VariationalModel,
    build_deep_gaussian_process,
    build_deep_inverse_wishart_process,
    build_deep_wishart_process,
    build_matrix_gaussian_network,
    suitable_output,
)
from gpflow_dwp.selection import Selection, select_model
from gpflow_dwp.training import PROTOCOLS, ProtocolName

__all__ = ["TITLES", "build_model", "choose_protocol", "complete", "select"]

_BUILDERS: dict[str, tuple[str, Callable[..., VariationalModel]]] = {
    "DWP": ("deep Wishart process", build_deep_wishart_process),
    "DGP": ("deep GP", build_deep_gaussian_process),
    "DIWP": ("deep inverse Wishart process", build_deep_inverse_wishart_process),
    "VMG": ("matrix-Gaussian network", build_matrix_gaussian_network),
}
TITLES = {name: title for name, (title, _) in _BUILDERS.items()}
"""What tables of scores call each model."""

# Options that builders and selection take, by what they call them; what is left out has their
# defaults.
_ARGUMENTS = {
    name: {"output_posterior": "output"}.get(name, name)
    for name in (
        *("inducing", "kernel", "latent_dim", "noise", "num_inducing", "num_pseudo_data"),
        *("output_posterior", "posterior", "warp", "whiten", "width"),
    )
}
_STEPS = {"fast": 3_000, "vmg": 20_000}
_STEPS_OF_EACH = 1_000


def choose_protocol(options: FitOptions) -> ProtocolName:
    """Return the protocol that trains the model.

    :param options: As ``gpflow-dwp fit`` parses them.
    """
    return "vmg" if options.model == "VMG" else "fast"


def complete(options: FitOptions) -> CompleteOptions:
    """Fill in what depends on the model where the user left it open.

    :param options: As ``gpflow-dwp fit`` parses them.
    :raises UsageError: If ``--depth auto`` is given with an option that is for one model.
    """
    protocol = choose_protocol(options)
    for_one = ["latent_dim", "validation_fraction", "log"]
    given = [name for name in for_one if getattr(options, name) is not None]
    if options.model != "DWP":
        given.append("model")
    if options.depth == "auto" and given:
        raise UsageError(f"--depth auto cannot go with {_flag(given[0])}")
    defaults: dict[str, Any] = {"depth": 3 if given else "auto"}
    defaults |= {"num_steps": _STEPS[protocol], "num_samples": PROTOCOLS[protocol].num_samples}
    if (options.depth or defaults["depth"]) == "auto":
        defaults["num_steps"] = _STEPS_OF_EACH
    else:
        defaults["num_inducing"] = 100
    chosen = {name: value for name, value in asdict(options).items() if value is not None}
    return CompleteOptions(**{**defaults, **chosen})


def build_model(
    options: CompleteOptions,
    data: tuple[Array, Array],
    likelihood: Likelihood | None,
    target_scale: float,
) -> VariationalModel:
    """Return an untrained model, which has a single layer where the depth is still to be chosen.

    :param options: Complete ones.
    :param data: Training rows in the model's units, X [N, D] and Y [N, 1].
    :param likelihood: None for a Gaussian one.
    :param target_scale: What one unit of the model is in the target's.
    :raises UsageError: If an option is not for the model that is chosen.
    :raises ValueError: If an option's value cannot be used.
    """
    (_, build), arguments = _BUILDERS[options.model], _arguments(options)
    known = inspect.signature(build).parameters
    for name, argument in _ARGUMENTS.items():
        # Inducing points are also those of the sparse GP that is compared with.
        if argument in arguments and argument not in known and name != "num_inducing":
            raise UsageError(f"{_flag(name)} is not for --model {options.model}")
    if options.warp and likelihood is not None:
        raise UsageError("--warp is for --task regression: labels are not warped")
    if options.noise is not None and likelihood is not None:
        raise UsageError("--noise is for --task regression: labels have none")
    if options.num_importance_samples > 1 and options.model == "VMG":
        raise UsageError("--importance-samples must be 1 for --model VMG")
    if options.num_importance_samples > 1 and options.latent_dim is None:
        raise UsageError("--importance-samples are draws of latent variables: give --latent-dim")
    if options.model == "VMG":
        arguments["target_scale"] = target_scale
    elif "output" not in arguments:
        arguments["output"] = suitable_output(
            len(data[0]), likelihood, options.latent_dim or 0, options.batch_size
        )
    return build(
        data,
        1 if options.depth == "auto" else options.depth,
        likelihood=likelihood,
        num_samples=options.num_samples,
        seed=options.seed,
        **{name: value for name, value in arguments.items() if name in known},
    )


def select(
    options: CompleteOptions, data: tuple[Array, Array], likelihood: Likelihood | None
) -> Selection:
    """Train the models that ``--depth auto`` tries, and return the best.

    :param options: Complete ones, which :func:`build_model` has taken.
    :param data: Training rows in the model's units, X [N, D] and Y [N, 1].
    :param likelihood: None for a Gaussian one.
    """
    return select_model(
        data,
        likelihood=likelihood,
        num_steps=options.num_steps,
        batch_size=options.batch_size,
        num_samples=options.num_samples,
        seed=options.seed,
        progress=not options.quiet,
        **_arguments(options),
    )


def _arguments(options: CompleteOptions) -> dict[str, Any]:
    """What the user says of the model."""
    given = {argument: getattr(options, name) for name, argument in _ARGUMENTS.items()}
    return {name: value for name, value in given.items() if value not in (None, False)}


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
