"""What a model is made of, as a table: for the terminal and for notebooks."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import Combination, Kernel, Product, Sum
from gpflow.utilities import parameter_dict
from tabulate import tabulate

from gpflow_dwp.layers.base import Layer
from gpflow_dwp.models.named_kernels import KERNELS, kernel_name

if TYPE_CHECKING:
    from gpflow_dwp.models.variational import VariationalModel

__all__ = ["ModelSummary", "PartSummary", "model_summary"]

_HEADERS = ("part", "kind", "kernel", "what it draws", "posterior", "parameters", "KL (nats)")


class PartSummary(NamedTuple):
    """One part of a model: a layer, the inducing inputs, the likelihood.

    :param name: The model's attribute, such as ``layers[0]``.
    :param kind: Name of its class.
    :param kernel: Its kernel, "" if it has none.
    :param shape: What it draws or holds, with its shape.
    :param posterior: Family of its approximate posterior, "" if it has none.
    :param num_parameters: How many numbers describe it; a triangular matrix counts its triangle.
    :param kl: Divergence of its posterior from its prior, in nats; None where there is none, or
        none was asked for.
    :param collapsed: Whether it has learned nothing: see
        :meth:`VariationalModel.collapsed_layers`.
    """

    name: str
    kind: str
    kernel: str
    shape: str
    posterior: str
    num_parameters: int
    kl: float | None
    collapsed: bool = False


@dataclass(frozen=True)
class ModelSummary:
    """A model's parts, in the order in which data flow; ``str`` makes a table of it.

    :param title: The model's class, and its numbers of inputs and training data.
    :param parts: Its parts.
    """

    title: str
    parts: tuple[PartSummary, ...]

    def __str__(self) -> str:
        return "\n".join([self.title, self._tabulated("simple"), *self._remarks])

    def _repr_html_(self) -> str:
        return "<br>".join([self.title, self._tabulated("html"), *self._remarks])

    @property
    def _remarks(self) -> list[str]:
        return [f"{part.name} has learned next to nothing" for part in self.parts if part.collapsed]

    def _tabulated(self, form: str) -> str:
        """Parts and their sum; without the last column where no divergence is known."""
        known = [part.kl for part in self.parts if part.kl is not None]
        size = sum(part.num_parameters for part in self.parts)
        rows = [*(part[:7] for part in self.parts), ("all", "", "", "", "", size, sum(known))]
        width = len(_HEADERS) - (not known)
        return tabulate(
            [row[:width] for row in rows], _HEADERS[:width], form, intfmt=",", floatfmt=",.2f"
        )


def model_summary(model: VariationalModel, *, kl: bool = True, seed: int = 0) -> ModelSummary:
    """Describe a model part by part: kernels, shapes, parameters, posterior families, divergences.

    >>> import numpy as np
    >>> from gpflow_dwp import build_deep_wishart_process
    >>> from gpflow_dwp.models import model_summary
    >>> X = np.linspace(-1.0, 1.0, 8)[:, None]
    >>> summary = model_summary(build_deep_wishart_process((X, np.sin(X)), depth=2), kl=False)
    >>> [(part.name, part.shape) for part in summary.parts if part.posterior]
    [('layers[0]', 'Gram matrix [8, 8], rank 1'), ('layers[1]', 'functions [8, 1]')]

    :param model: The model.
    :param kl: Whether to estimate the layers' divergences: a few evaluations of the bound.
    :param seed: For the draws of that estimate.
    :raises CholeskyError: If, with ``kl``, a factorisation fails with every jitter.
    """
    counts: Counter[str] = Counter()
    first_paths: dict[int, str] = {}
    for path, parameter in parameter_dict(model).items():
        if first_paths.setdefault(id(parameter), path) == path:
            (name,) = re.findall(r"^\.(\w+(?:\[\d+\])?)", path)
            variable = getattr(parameter, "unconstrained_variable", parameter)
            counts[name] += int(np.size(variable))
    layers: dict[str, Any] = {f"layers[{index}]": each for index, each in enumerate(model.layers)}
    nats = model.divergences(seed=seed) if kl else []
    divergences = dict(zip((*layers, "likelihood"), nats, strict=False))
    collapsed = {f"layers[{index}]" for index in model.collapsed_layers(nats)}
    below = {name: getattr(model, name) for name in counts if name not in (*layers, "likelihood")}
    parts = {**below, **layers, "likelihood": model.likelihood}
    return ModelSummary(
        f"{type(model).__name__}: {model.num_inputs} inputs, {model.num_data} training data",
        tuple(
            PartSummary(
                name,
                type(part).__name__,
                *_describe(part),
                counts[name],
                divergences.get(name),
                name in collapsed,
            )
            for name, part in parts.items()
        ),
    )


def _describe(part: Any) -> tuple[str, str, str]:
    """Kernel, what is drawn or held, and the posterior."""
    if isinstance(part, Layer):
        return "" if part.kernel is None else _kernel_name(part.kernel), *part.describe()
    return "", f"points {list(part.Z.shape)}" if isinstance(part, InducingPoints) else "", ""


def _kernel_name(kernel: Kernel) -> str:
    kind = kernel_name(kernel)
    if kind in KERNELS or not isinstance(kernel, Combination):
        return kind
    parts = [_kernel_name(part) for part in kernel.kernels]
    if isinstance(kernel, Sum | Product):
        return "(" + (" + " if isinstance(kernel, Sum) else " * ").join(parts) + ")"
    return f"{kind}({', '.join(parts)})"
