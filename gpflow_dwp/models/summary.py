"""What a model is made of, as a table: for the terminal and for notebooks."""

from __future__ import annotations

import html
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import Combination, Kernel, Product, Sum
from gpflow.utilities import parameter_dict
from tabulate import tabulate

from gpflow_dwp.layers.base import Layer

__all__ = ["ModelSummary", "PartSummary", "collapsed_layers", "model_summary"]

_HEADERS = ("part", "kind", "kernel", "what it draws", "posterior", "parameters", "KL (nats)")


class PartSummary(NamedTuple):
    """One part of a model: a layer, the inducing inputs, the likelihood.

    :param name: The model's attribute, such as ``layers[0]``.
    :param kind: Name of the model's class.
    :param kernel: Its kernel, "" if it has none.
    :param shape: What it draws or holds, with its shape.
    :param posterior: Family of its approximate posterior, "" if it has none.
    :param num_parameters: How many numbers describe it; a triangular matrix counts its triangle.
    :param num_trainable: How many of them are trained.
    :param kl: Divergence of its posterior from its prior, in nats; None where there is none, or
        none was asked for.
    :param collapsed: Whether it has learned nothing: see :func:`collapsed_layers`.
    """

    name: str
    kind: str
    kernel: str
    shape: str
    posterior: str
    num_parameters: int
    num_trainable: int
    kl: float | None
    collapsed: bool = False


@dataclass(frozen=True)
class ModelSummary:
    """A model's parts, in the order in which data flow; ``str`` makes a table of it.

    :param model: The model's class.
    :param num_inputs: Number of input columns, D.
    :param num_data: Number of training data.
    :param parts: Its parts.
    """

    model: str
    num_inputs: int
    num_data: int
    parts: tuple[PartSummary, ...]

    @property
    def num_parameters(self) -> int:
        """How many numbers describe the model."""
        return sum(part.num_parameters for part in self.parts)

    @property
    def num_trainable(self) -> int:
        """How many of them are trained."""
        return sum(part.num_trainable for part in self.parts)

    @property
    def kl(self) -> float | None:
        """The sum of the parts' divergences, in nats; None if none was asked for."""
        known = [part.kl for part in self.parts if part.kl is not None]
        return sum(known) if known else None

    def __str__(self) -> str:
        return "\n".join([self._title, self._tabulated("simple"), *self._remarks])

    def _repr_html_(self) -> str:
        title, *remarks = (f"<p>{html.escape(line)}</p>" for line in (self._title, *self._remarks))
        return title + self._tabulated("html") + "".join(remarks)

    @property
    def _title(self) -> str:
        return f"{self.model}: {self.num_inputs} inputs, {self.num_data} training data"

    @property
    def _remarks(self) -> list[str]:
        return [f"{part.name} has learned next to nothing" for part in self.parts if part.collapsed]

    def _tabulated(self, form: str) -> str:
        """Parts and their sum; without the last column where no divergence is known."""
        total = ("all", "", "", "", "", self.num_parameters, self.num_trainable, self.kl)
        width = len(_HEADERS) - (self.kl is None)
        rows = [
            (*cells, _count(size, trained), "" if kl is None else f"{kl:,.2f}")[:width]
            for *cells, size, trained, kl in (*(part[:8] for part in self.parts), total)
        ]
        alignment = ["left"] * 5 + ["right"] * (width - 5)
        return tabulate(rows, _HEADERS[:width], form, disable_numparse=True, colalign=alignment)


def collapsed_layers(model: Any, nats: Iterable[float]) -> list[int]:
    """Return the layers that have learned nothing, as ``least_nats`` of their classes says.

    :param model: A :class:`VariationalModel`.
    :param nats: Divergence of each layer's posterior from its prior, [L].
    :return: Their indices, bottom first.
    """
    return [
        index
        for index, (layer, divergence) in enumerate(zip(model.layers, nats, strict=False))
        if divergence < layer.least_nats
    ]


def model_summary(model: Any, *, kl: bool = True, seed: int = 0) -> ModelSummary:
    """Describe a model part by part: kernels, shapes, parameters, posterior families, divergences.

    >>> import numpy as np
    >>> from gpflow_dwp import build_deep_wishart_process
    >>> from gpflow_dwp.models import model_summary
    >>> X = np.linspace(-1.0, 1.0, 8)[:, None]
    >>> summary = model_summary(build_deep_wishart_process((X, np.sin(X)), depth=2), kl=False)
    >>> [(part.name, part.shape) for part in summary.parts if part.posterior]
    [('layers[0]', 'Gram matrix [8, 8], rank 1'), ('layers[1]', 'functions [8, 1]')]

    :param model: A :class:`VariationalModel`.
    :param kl: Whether to estimate the layers' divergences: a few evaluations of the bound.
    :param seed: For the draws of that estimate.
    :raises CholeskyError: If, with ``kl``, a factorisation fails with every jitter.
    """
    counts: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    paths: dict[int, tuple[str, Any]] = {}
    for path, parameter in parameter_dict(model).items():
        paths.setdefault(id(parameter), (path, parameter))  # by the first of its paths
    for path, parameter in paths.values():
        match = re.match(r"\.(\w+(?:\[\d+\])?)", path)
        count = counts[match[1] if match else path]
        size = int(np.size(parameter.unconstrained_variable))
        count[0] += size
        count[1] += size * parameter.trainable
    parts: dict[str, Any] = {f"layers[{index}]": each for index, each in enumerate(model.layers)}
    nats = model.divergences(seed=seed) if kl else []
    divergences = dict(zip((*parts, "likelihood"), nats, strict=False))
    collapsed = {[*parts][index] for index in collapsed_layers(model, nats)}
    below = {name: getattr(model, name) for name in counts if name not in (*parts, "likelihood")}
    parts = {**below, **parts, "likelihood": model.likelihood}
    return ModelSummary(
        type(model).__name__,
        model.num_inputs,
        int(model.num_data),
        tuple(
            PartSummary(
                name,
                type(part).__name__,
                *_describe(part),
                counts[name][0],
                counts[name][1],
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
    kind = type(kernel).__name__
    if not isinstance(kernel, Combination):
        return kind
    parts = [_kernel_name(part) for part in kernel.kernels]
    if isinstance(kernel, Sum | Product):
        return "(" + (" + " if isinstance(kernel, Sum) else " * ").join(parts) + ")"
    return f"{kind}({', '.join(parts)})"


def _count(num_parameters: int, num_trainable: int) -> str:
    fixed = "" if num_trainable == num_parameters else f" ({num_trainable:,} trained)"
    return f"{num_parameters:,}{fixed}"
