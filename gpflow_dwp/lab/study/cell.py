"""One cell of the study's tables: a model of one data set, depth and split."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Literal, get_args

from gpflow.base import RegressionData

from gpflow_dwp.data import UCI_DATASETS
from gpflow_dwp.lab.study._models import MODELS
from gpflow_dwp.lab.study.results import CELL_PLACE
from gpflow_dwp.models import VariationalModel
from gpflow_dwp.training import ProtocolName
from gpflow_dwp.validation import check_choice, check_integers

__all__ = ["STUDY_PROTOCOLS", "Cell", "StudyProtocol"]

StudyProtocol = Literal["papers", "fast", "vmg", "cde", "cde-fast"]
"""A protocol of training, or that of conditional density estimation (Salimbeni et al., 2019), also
with "fast" training for all models."""

STUDY_PROTOCOLS: tuple[StudyProtocol, ...] = get_args(StudyProtocol)
"""What a :data:`StudyProtocol` can be."""


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

    runs: ClassVar[str] = "gpflow_dwp.lab.study.execution:run_cell"
    place: ClassVar[tuple[str, ...]] = CELL_PLACE
    packages: ClassVar[tuple[str, ...]] = ()

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
        check_choice(UCI_DATASETS, dataset=self.dataset)
        last_split = UCI_DATASETS[self.dataset].num_splits - 1
        if self.split > last_split:
            raise ValueError(
                f"split must be an integer from 0 to {last_split} for {self.dataset}, "
                f"got {self.split}."
            )
        check_choice(MODELS, model=self.model)
        check_choice(("float64", "float32"), dtype=self.dtype)
        check_choice(STUDY_PROTOCOLS, protocol=self.protocol)
        model = MODELS[self.model]
        own_depth = model.own_depth
        if own_depth not in (None, self.depth):
            raise ValueError(f"depth must be {own_depth} for model {self.model}, got {self.depth}.")
        for name, _ in self.options:
            if name in _SET_BY_CELL or not model.accepts(name):
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
            return "natural" if MODELS[self.model].has_natural_parameters else "fast"
        return self.protocol

    @property
    def estimates_densities(self) -> bool:
        """Whether the protocol is one of conditional density estimation."""
        return self.protocol in ("cde", "cde-fast")

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
        missing = sorted(set(CELL_PLACE) - set(values))
        if unknown or missing:
            raise ValueError(f"a cell has unknown fields {unknown}, missing fields {missing}.")
        return cls(**{**values, "options": tuple(sorted(values.get("options", {}).items()))})

    def build(self, data: RegressionData, *, target_scale: float = 1.0) -> VariationalModel:
        """Build the model, untrained.

        :param data: Standardised training inputs [N, D] and targets [N, 1].
        :param target_scale: Standard deviation of the targets in raw units, for which the noise of
            the matrix-Gaussian network has its prior.
        """
        model = MODELS[self.model]
        own: dict[str, Any] = {} if model.own_depth else {"depth": self.depth}
        if self.model == "VMG":
            own["target_scale"] = target_scale
        else:
            own["num_inducing"] = self.num_inducing
        if model.accepts("output"):
            own["output"] = "pseudo_targets"  # as in the papers, whatever suits the data
        return model.builder(
            data,
            num_samples=self.num_samples,
            seed=self.seed,
            **model.arguments,
            **{**own, **dict(self.options)},
        )


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
