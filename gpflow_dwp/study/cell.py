"""One cell of the study's tables: a model of one data set, depth and split."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

from gpflow.base import RegressionData

from gpflow_dwp import models as _models
from gpflow_dwp.data import UCI_DATASETS, load_uci
from gpflow_dwp.models import VariationalModel
from gpflow_dwp.training import PROTOCOLS, ProtocolName
from gpflow_dwp.validation import check_integers

__all__ = ["STUDY_MODELS", "STUDY_PROTOCOLS", "Cell", "StudyProtocol", "make_cells"]

_DTYPES = ("float64", "float32")
_DENSITY_PROTOCOLS = ("cde", "cde-fast")
_LATENT_VARIABLES = "build_latent_variable_deep_gp"

StudyProtocol = Literal["papers", "fast", "vmg", "cde", "cde-fast"]
"""A protocol of training, or that of conditional density estimation (Salimbeni et al., 2019), also
with "fast" training for all models."""

STUDY_PROTOCOLS: tuple[StudyProtocol, ...] = ("papers", "fast", "vmg", "cde", "cde-fast")
"""What a :data:`StudyProtocol` can be."""

_STEPS: dict[StudyProtocol, int] = {
    "papers": 20_000,
    "fast": 20_000,
    "vmg": 60_000,
    "cde": 20_000,
    "cde-fast": 20_000,
}

# What Louizos and Welling (2016, section 4.1) use instead of 10 pseudo-data pairs and 50 units.
_OPTIONS_OF_VMG: dict[str, dict[str, Any]] = {
    "yacht": {"num_pseudo_data": 5},
    "protein": {"num_pseudo_data": 20, "width": 100},
}

_BUILDERS: dict[str, tuple[str, dict[str, Any]]] = {
    "DGP": ("build_deep_gaussian_process", {}),
    "DIWP": ("build_deep_inverse_wishart_process", {}),
    "GW": ("build_deep_wishart_process", {"posterior": "GW"}),
    "A": ("build_deep_wishart_process", {"posterior": "A"}),
    "AB": ("build_deep_wishart_process", {"posterior": "AB"}),
    "VMG": ("build_matrix_gaussian_network", {}),
    **{
        name: (_LATENT_VARIABLES, {"architecture": name})
        for name in ("GP", "GP-GP", "LV-GP", "LV-GP-GP", "LV-GP-GP-GP")
    },
    "LV-DWP": ("build_deep_wishart_process", {"posterior": "A", "latent_dim": 1}),
}

STUDY_MODELS = tuple(_BUILDERS)
"""The models that can be compared: the deep GP, the deep inverse Wishart process, deep Wishart
processes by their posterior family, and the matrix-Gaussian network; deep GPs with latent variables
(LV) by their layers, bottom first; and a deep Wishart process, posterior A, above latent variables.
"""


@dataclass(frozen=True)
class Cell:
    """Everything that decides the result of one run.

    :param dataset: Name of a UCI data set.
    :param depth: Number of GP layers of the equivalent deep GP; of weight matrices for VMG; where
        the model's name says it, that.
    :param model: One of :data:`STUDY_MODELS`.
    :param split: Number of the split into training and test rows.
    :param num_steps: Gradient steps.
    :param batch_size: Rows of a minibatch; None for all rows at every step.
    :param num_inducing: M; VMG has none.
    :param num_samples: S in training.
    :param num_prediction_samples: S in predictions.
    :param dtype: "float64" or "float32".
    :param seed: For starting values, minibatches and draws.
    :param kl_annealing_steps: When the weight of the log ratios reaches 1; None for the protocol's.
    :param protocol: See :func:`gpflow_dwp.fit` and :attr:`training_protocol`.
    :param options: Further arguments of the model's builder, as sorted pairs of name and value.
    :param num_importance_samples: K in training; 1 for models without latent variables.
    """

    dataset: str
    depth: int
    model: str
    split: int
    num_steps: int = 20_000
    batch_size: int | None = None
    num_inducing: int = 100
    num_samples: int = 10
    num_prediction_samples: int = 100
    dtype: Literal["float64", "float32"] = "float64"
    seed: int = 0
    kl_annealing_steps: int | None = None
    protocol: StudyProtocol = "papers"
    options: tuple[tuple[str, Any], ...] = ()
    num_importance_samples: int = 1

    def __post_init__(self) -> None:
        check_integers(
            depth=self.depth,
            num_steps=self.num_steps,
            num_inducing=self.num_inducing,
            num_samples=self.num_samples,
            num_prediction_samples=self.num_prediction_samples,
            num_importance_samples=self.num_importance_samples,
            batch_size=1 if self.batch_size is None else self.batch_size,
        )
        check_integers(
            at_least=0,
            split=self.split,
            seed=self.seed,
            kl_annealing_steps=0 if self.kl_annealing_steps is None else self.kl_annealing_steps,
        )
        _check_choice("dataset", self.dataset, tuple(UCI_DATASETS))
        last_split = UCI_DATASETS[self.dataset].num_splits - 1
        if self.split > last_split:
            raise ValueError(
                f"split must be an integer from 0 to {last_split} for {self.dataset}, "
                f"got {self.split}."
            )
        _check_choice("model", self.model, STUDY_MODELS)
        _check_choice("dtype", self.dtype, _DTYPES)
        _check_choice("protocol", self.protocol, STUDY_PROTOCOLS)
        own_depth = _own_depth(self.model)
        if own_depth not in (None, self.depth):
            raise ValueError(f"depth must be {own_depth} for model {self.model}, got {self.depth}.")
        accepted = inspect.signature(self._builder()).parameters
        for name, _ in self.options:
            if name not in accepted or name in _SET_BY_CELL or name in _BUILDERS[self.model][1]:
                raise ValueError(f"options: the builder of model {self.model} takes no {name!r}.")
        if self.num_importance_samples > 1 and not self.takes_importance_samples:
            raise ValueError(
                f"num_importance_samples must be 1 for this cell of model {self.model}, "
                f"got {self.num_importance_samples}."
            )

    @property
    def takes_importance_samples(self) -> bool:
        """Whether the model has latent variables of which it can take more than one draw."""
        latent_dim = dict(self.options).get("latent_dim", 0)
        return self.model.startswith("LV-") or bool(latent_dim)

    @property
    def training_protocol(self) -> ProtocolName:
        """How the model is trained.

        For "cde" that is "natural" where the output layer has the parameters that natural gradients
        move, as all models of that paper have, and "fast" where it has not.
        """
        if self.protocol == "cde-fast":
            return "fast"
        if self.protocol == "cde":
            return "natural" if _BUILDERS[self.model][0] == _LATENT_VARIABLES else "fast"
        return self.protocol

    @property
    def estimates_densities(self) -> bool:
        """Whether the protocol is one of conditional density estimation."""
        return self.protocol in _DENSITY_PROTOCOLS

    @property
    def key(self) -> str:
        """Sixteen hexadecimal digits that tell this cell from every other one."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def title(self) -> str:
        """Data set, depth, model and split in a few words."""
        return f"{self.dataset}, depth {self.depth}, {self.model}, split {self.split}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON, without some that are left at their defaults.

        These came later than the first results, whose keys stay what they were.
        """
        result = asdict(self) | {"options": dict(self.options)}
        for name, default in (
            ("kl_annealing_steps", None),
            ("protocol", "papers"),
            ("options", {}),
            ("num_importance_samples", 1),
        ):
            if result[name] == default:
                del result[name]
        return result

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Cell:
        """Return the inverse of :meth:`to_dict`.

        :raises ValueError: If a field is missing, unknown or cannot be used.
        """
        unknown = sorted(set(values) - {field.name for field in fields(cls)})
        missing = sorted({"dataset", "depth", "model", "split"} - set(values))
        if unknown or missing:
            raise ValueError(f"a cell has unknown fields {unknown}, missing fields {missing}.")
        return cls(**{**values, "options": _sorted_options(values.get("options", {}))})

    def build(self, data: RegressionData, *, target_scale: float = 1.0) -> VariationalModel:
        """Build the model, untrained.

        :param data: Standardised training inputs [N, D] and targets [N, 1].
        :param target_scale: Standard deviation of the targets in raw units, for which the noise of
            the matrix-Gaussian network has its prior.
        """
        own: dict[str, Any] = {} if _own_depth(self.model) else {"depth": self.depth}
        if self.model == "VMG":
            own["target_scale"] = target_scale
        else:
            own["num_inducing"] = self.num_inducing
        if "output" in inspect.signature(self._builder()).parameters:
            own["output"] = "pseudo_targets"  # as in the papers, whatever suits the data
        return self._builder()(
            data,
            num_samples=self.num_samples,
            seed=self.seed,
            **_BUILDERS[self.model][1],
            **{**own, **dict(self.options)},
        )

    def _builder(self) -> Callable[..., VariationalModel]:
        name = _BUILDERS[self.model][0]
        if not hasattr(_models, name):
            raise ValueError(f"model {self.model} is not available in this version.")
        return getattr(_models, name)


_SET_BY_CELL = frozenset(
    {
        "architecture",
        "data",
        "depth",
        "num_inducing",
        "num_samples",
        "posterior",
        "seed",
        "target_scale",
    }
)


def make_cells(
    datasets: Sequence[str],
    depths: Sequence[int],
    models: Sequence[str],
    splits: Sequence[int],
    *,
    num_steps: int | None = None,
    batch_size: int | None = None,
    num_inducing: int | None = None,
    num_samples: int | None = None,
    num_prediction_samples: int | None = None,
    dtype: Literal["float64", "float32"] = "float64",
    seed: int = 0,
    kl_annealing_steps: int | None = None,
    protocol: StudyProtocol = "papers",
    options: Mapping[str, Any] | None = None,
    num_importance_samples: int = 1,
    uci_folder: str | Path | None = None,
) -> list[Cell]:
    """Make every combination, in the order of data set, depth, split and model.

    The defaults are the papers' protocol (Ober and Aitchison, 2021, section 6; Ober, Anson, Milsom
    and Aitchison, 2023, section 5); for VMG "vmg" and the numbers of pseudo-data and units of
    Louizos and Welling (2016, section 4.1); or with "cde" that of Salimbeni, Dutordoir, Hensman and
    Deisenroth (2019, appendix A), who take 100,000 steps. Every split is read once, so that what is
    wrong with the data is known before anything is trained.

    :param datasets: Names of UCI data sets.
    :param depths: Numbers of layers. A model whose name says its number has one cell, not several.
    :param models: Names in :data:`STUDY_MODELS`.
    :param splits: Numbers of splits.
    :param num_steps: Gradient steps; None for 20,000, and for "vmg" 60,000.
    :param batch_size: Rows of a minibatch; None for the protocol's, for "cde" that of "natural".
    :param num_inducing: M; None for 100, for "cde" 128.
    :param num_samples: S in training; None for the number of the protocol of training.
    :param num_prediction_samples: S in predictions; None for 100, for "cde" 2,000.
    :param dtype: "float64" or "float32".
    :param seed: For starting values, minibatches and draws.
    :param kl_annealing_steps: See :class:`Cell`.
    :param protocol: See :class:`Cell`.
    :param options: Further arguments of the models' builders.
    :param num_importance_samples: K in training; other models than those with latent variables
        take 1 in any case.
    :param uci_folder: See :func:`gpflow_dwp.data.load_uci`.
    :raises ValueError: If a sequence is empty or holds something twice, a name is unknown, a split
        is out of range, a number is not a positive integer, or a model cannot be built with the
        options.
    :raises OSError: If the data cannot be read.
    """
    for name, values in (
        ("datasets", datasets),
        ("depths", depths),
        ("models", models),
        ("splits", splits),
    ):
        if not values or len(set(values)) < len(values):
            raise ValueError(f"{name} must hold each of at least one value once, got {values}.")
    _check_choice("protocol", protocol, STUDY_PROTOCOLS)
    check_integers(num_importance_samples=num_importance_samples)
    if num_inducing is None:
        num_inducing = 128 if protocol in _DENSITY_PROTOCOLS else 100
    if num_prediction_samples is None:
        num_prediction_samples = 2_000 if protocol in _DENSITY_PROTOCOLS else 100

    def cell(dataset: str, depth: int, model: str, split: int) -> Cell:
        own = "vmg" if model == "VMG" and protocol == "papers" else protocol
        options_of_paper = _OPTIONS_OF_VMG.get(dataset, {}) if own == "vmg" else {}
        return Cell(
            dataset,
            _own_depth(model) or depth,
            model,
            split,
            _STEPS[own] if num_steps is None else num_steps,
            batch_size,
            num_inducing=num_inducing,
            num_prediction_samples=num_prediction_samples,
            dtype=dtype,
            seed=seed,
            kl_annealing_steps=kl_annealing_steps,
            protocol=own,
            options=_sorted_options({**options_of_paper, **(options or {})}),
        )

    cells = [
        cell(dataset, depth, model, split)
        for dataset in datasets
        for depth in depths
        for split in splits
        for model in models
    ]
    loaded = {
        (dataset, split): load_uci(dataset, split, folder=uci_folder).train
        for dataset in datasets
        for split in splits
    }
    if options:
        for example in {(cell.dataset, cell.depth, cell.model): cell for cell in cells}.values():
            _try_to_build(example, loaded[example.dataset, example.split])
    return [
        replace(
            cell,
            batch_size=_batch_size(cell, len(loaded[cell.dataset, cell.split][0])),
            num_samples=PROTOCOLS[cell.training_protocol].num_samples
            if num_samples is None
            else num_samples,
            num_importance_samples=num_importance_samples if cell.takes_importance_samples else 1,
        )
        for cell in dict.fromkeys(cells)
    ]


def _try_to_build(cell: Cell, data: RegressionData) -> None:
    """Build the model for a few rows, where it costs little to learn of a mistake."""
    X, Y = data
    try:
        cell.build((X[:20], Y[:20]))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"options: model {cell.model} cannot be built with them: {error}"
        ) from error


def _own_depth(model: str) -> int | None:
    """The number of layers that a model's name says, if it does."""
    builder, arguments = _BUILDERS.get(model, ("", {}))
    if builder != _LATENT_VARIABLES:
        return None
    return int(arguments["architecture"].split("-").count("GP"))


def _batch_size(cell: Cell, num_rows: int) -> int | None:
    """Return the batch size that is meant: None for a full batch, whatever was asked for."""
    batch_size = cell.batch_size
    if batch_size is None:
        name = "natural" if cell.estimates_densities else cell.training_protocol
        batch_size = PROTOCOLS[name].batch_size(num_rows)
    if batch_size is not None and batch_size >= num_rows:
        return None
    return batch_size


def _sorted_options(options: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(options.items()))


def _check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}.")
