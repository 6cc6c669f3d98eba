"""One cell of the study's tables: a model of one data set, depth and split."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

from gpflow.base import RegressionData

from gpflow_dwp.data import UCI_DATASETS
from gpflow_dwp.lab.study._models import STUDY_MODELS
from gpflow_dwp.lab.study.results import CELL_PLACE
from gpflow_dwp.lab.study.runnable import RunnableCell, check_split
from gpflow_dwp.models import VariationalModel
from gpflow_dwp.training.protocol import ProtocolName
from gpflow_dwp.validation import check_choice, check_integers

__all__ = ["RECIPE", "RECIPES", "STUDY_PROTOCOLS", "Cell", "StudyProtocol"]

RECIPES = {
    1: "as it was at first",
    2: "fast protocol: longer annealing with more hidden layers",
    3: "gradients of the bound include the jitter's",
    4: "fast protocol: the learning rate grows at first, a shorter memory of squared gradients; "
    "gradients of pseudo-target outputs keep their digits where covariances are nearly singular",
    5: "hidden layers start nearly linear",
}
"""What changed in what a cell does not say: defaults, starting values and the gradients of the code
that runs it. Whoever changes results by such a change adds a number here."""

RECIPE = max(RECIPES)
"""The recipe by which this version runs a cell."""

StudyProtocol = Literal["papers", "fast", "vmg", "cde", "cde-fast"]
"""A protocol of training, or that of conditional density estimation (Salimbeni et al., 2019), also
with "fast" training for all models."""

STUDY_PROTOCOLS: tuple[StudyProtocol, ...] = get_args(StudyProtocol)
"""What a :data:`StudyProtocol` can be."""


@dataclass(frozen=True)
class Cell(RunnableCell):
    """Everything that decides the result of one run.

    :param dataset: Name of a UCI data set.
    :param depth: Number of GP layers of the equivalent deep GP; of weight matrices for VMG; where
        the model's name says it, that.
    :param model: One of :data:`STUDY_MODELS`.
    :param split: Number of the split into training and test rows.
    :param num_steps: Gradient steps.
    :param batch_size: Rows of a minibatch; None for all rows at every step.
    :param num_inducing: M; VMG has none.
    :param num_samples: Number of draws in each training step, S.
    :param num_prediction_samples: S in predictions.
    :param dtype: "float64" or "float32".
    :param seed: For starting values, minibatches and draws.
    :param kl_annealing_steps: When the weight of the log ratios reaches 1; None for the protocol's.
    :param protocol: See :func:`gpflow_dwp.fit` and :attr:`training_protocol`.
    :param options: Further arguments of the model's builder, as sorted pairs of name and value.
    :param num_importance_samples: K in training; 1 for models without latent variables.
    :param recipe: Number in :data:`RECIPES` of what no other field says; that of this version.
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
    recipe: int = RECIPE

    runs: ClassVar[str] = "gpflow_dwp.lab.study.execution:run_cell"
    place: ClassVar[tuple[str, ...]] = CELL_PLACE

    def __post_init__(self) -> None:
        check_integers(**{name: getattr(self, name) for name in _POSITIVE})
        check_integers(batch_size=1 if self.batch_size is None else self.batch_size)
        annealing = 0 if self.kl_annealing_steps is None else self.kl_annealing_steps
        check_integers(at_least=0, seed=self.seed, kl_annealing_steps=annealing)
        check_choice(UCI_DATASETS, dataset=self.dataset)
        check_split(self.split, UCI_DATASETS[self.dataset].num_splits, self.dataset)
        check_choice(STUDY_MODELS, model=self.model)
        check_choice(("float64", "float32"), dtype=self.dtype)
        check_choice(STUDY_PROTOCOLS, protocol=self.protocol)
        if self.recipe != RECIPE:
            raise ValueError(f"recipe must be {RECIPE}, that of this version, got {self.recipe!r}.")
        model = STUDY_MODELS[self.model]
        if model.own_depth not in (None, self.depth):
            raise ValueError(
                f"depth must be {model.own_depth} for model {self.model}, got {self.depth}."
            )
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
            return "natural" if STUDY_MODELS[self.model].has_natural_parameters else "fast"
        return self.protocol

    @property
    def estimates_densities(self) -> bool:
        """Whether the protocol is one of conditional density estimation."""
        return self.protocol in ("cde", "cde-fast")

    @property
    def title(self) -> str:
        """Data set, depth, model and split in a few words."""
        return f"{self.dataset}, depth {self.depth}, {self.model}, split {self.split}"

    def build(self, data: RegressionData, *, target_scale: float = 1.0) -> VariationalModel:
        """Build the model, untrained.

        :param data: Standardised training inputs [N, D] and targets [N, 1].
        :param target_scale: Standard deviation of the targets in raw units, for which the noise of
            the matrix-Gaussian network has its prior.
        """
        model = STUDY_MODELS[self.model]
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


_POSITIVE = (
    *("depth", "num_steps", "num_inducing", "num_samples"),
    *("num_prediction_samples", "num_importance_samples"),
)
_SET_BY_CELL = frozenset(
    {
        *("architecture", "data", "depth", "num_inducing", "num_samples"),
        *("posterior", "seed", "target_scale"),
    }
)
