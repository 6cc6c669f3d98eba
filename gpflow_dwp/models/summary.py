"""What a model is made of, as a table: for the terminal and for notebooks."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

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
        return "\n".join([self._title(), self._tabulated("simple"), *self._remarks()])

    def _repr_html_(self) -> str:
        title, *remarks = (html.escape(line) for line in (self._title(), *self._remarks()))
        return f"<p>{title}</p>{self._tabulated('html')}" + "".join(f"<p>{r}</p>" for r in remarks)

    def _tabulated(self, form: str) -> str:
        header, *rows = self._table()
        alignment = ["left"] * 5 + ["right"] * (len(header) - 5)
        return tabulate(rows, header, form, disable_numparse=True, colalign=alignment)

    def _remarks(self) -> list[str]:
        return [f"{part.name} has learned next to nothing" for part in self.parts if part.collapsed]

    def _title(self) -> str:
        return f"{self.model}: {self.num_inputs} inputs, {self.num_data} training data"

    def _table(self) -> list[tuple[str, ...]]:
        """Header, parts and their sum; without the last column where no divergence is known."""
        rows: list[tuple[str, ...]] = [_HEADERS]
        for part in self.parts:
            rows.append(
                (*part[:5], _count(part.num_parameters, part.num_trainable), _nats(part.kl))
            )
        total = _count(self.num_parameters, self.num_trainable)
        rows.append(("all", "", "", "", "", total, _nats(self.kl)))
        return [row[:-1] for row in rows] if self.kl is None else rows


class _Summarised(Protocol):
    """What a model says of itself: see :class:`VariationalModel`."""

    layers: Sequence[Layer]

    @property
    def num_inputs(self) -> int: ...

    @property
    def num_data(self) -> int: ...

    def divergences(self, *, seed: int = 0) -> list[float]: ...


def collapsed_layers(model: _Summarised, nats: Iterable[float]) -> list[int]:
    """Return the layers that have learned nothing, as ``least_nats`` of their classes says.

    :param model: The model.
    :param nats: Divergence of each layer's posterior from its prior, [L].
    :return: Their indices, bottom first.
    """
    return [
        index
        for index, (layer, divergence) in enumerate(zip(model.layers, nats, strict=False))
        if divergence < layer.least_nats
    ]


def model_summary(model: _Summarised, *, kl: bool = True, seed: int = 0) -> ModelSummary:
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
    counts: dict[str, list[int]] = {}
    seen: set[int] = set()
    for path, parameter in parameter_dict(model).items():
        if id(parameter) in seen:
            continue
        seen.add(id(parameter))
        match = re.match(r"\.(\w+(?:\[\d+\])?)", path)
        count = counts.setdefault(match.group(1) if match else path, [0, 0])
        size = int(np.size(parameter.unconstrained_variable))
        count[0] += size
        count[1] += size * parameter.trainable
    layers = [f"layers[{index}]" for index in range(len(model.layers))]
    below = [name for name in counts if name not in (*layers, "likelihood")]
    nats = model.divergences(seed=seed) if kl else []
    divergences = dict(zip((*layers, "likelihood"), nats, strict=False))
    collapsed = {layers[index] for index in collapsed_layers(model, nats)}
    return ModelSummary(
        type(model).__name__,
        model.num_inputs,
        int(model.num_data),
        tuple(
            _summarise(
                model, name, counts.get(name, [0, 0]), divergences.get(name), name in collapsed
            )
            for name in (*below, *layers, "likelihood")
        ),
    )


def _summarise(
    model: _Summarised, name: str, count: list[int], kl: float | None, collapsed: bool
) -> PartSummary:
    index = re.fullmatch(r"layers\[(\d+)\]", name)
    part: Any = model.layers[int(index.group(1))] if index else getattr(model, name)
    kernel, shape, posterior = "", "", ""
    if isinstance(part, Layer):
        shape, posterior = part.describe()
        kernel = "" if part.kernel is None else _kernel_name(part.kernel)
    elif isinstance(part, InducingPoints):
        shape = f"points {list(part.Z.shape)}"
    return PartSummary(
        name,
        type(part).__name__,
        kernel,
        shape,
        posterior,
        count[0],
        count[1],
        kl,
        collapsed,
    )


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


def _nats(kl: float | None) -> str:
    return "" if kl is None else f"{kl:,.2f}"
