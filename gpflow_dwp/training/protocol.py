"""How a model is trained where nothing else is asked for: optimiser, schedules, draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from gpflow.keras import tf_keras

from gpflow_dwp.models import VariationalModel
from gpflow_dwp.training.optimizers import (
    Adam,
    NaturalGradientAdam,
    cosine_learning_rate,
    paper_learning_rate,
)

__all__ = ["PROTOCOLS", "ProtocolName", "TrainingProtocol"]

ProtocolName = Literal["fast", "natural", "networks", "papers", "vmg"]
"""What :func:`fit` takes by name."""


class TrainingProtocol(NamedTuple):
    """A way to train.

    :param optimizer: Makes the optimiser of a model from it and the number of steps.
    :param kl_annealing_steps: When the weight of the log ratios reaches 1, from the model and the
        number of steps.
    :param num_samples: Number of draws that estimate the bound, S; for whoever builds the model.
    :param batch_size: Rows of a minibatch, from the number of training rows, or None for all of
        them.
    """

    optimizer: Callable[
        [VariationalModel, int], Adam | NaturalGradientAdam | tf_keras.optimizers.Optimizer
    ]
    kl_annealing_steps: Callable[[VariationalModel, int], int]
    num_samples: int
    batch_size: Callable[[int], int | None]


def _warm_cosine_with_short_memory(model: VariationalModel, num_steps: int) -> Adam:
    # The first steps' gradients are huge. With the usual 0.999 the mean of squares remembers them
    # for a thousand steps, which keeps all later ones small. With 0.95 and the full rate from the
    # first step on, some deep models lose all signal at once and explain everything as noise.
    warmup_steps = min(200, num_steps // 20)
    return Adam(cosine_learning_rate(num_steps, warmup_steps=warmup_steps), beta_2=0.95)


def _natural_gradients(model: VariationalModel, num_steps: int) -> NaturalGradientAdam:
    if not model.natural_parameters:
        raise ValueError(
            "protocol 'natural' is for a model with natural_parameters, got a "
            f"{type(model).__name__}, which has none."
        )
    return NaturalGradientAdam(model.natural_parameters)


def _annealing_by_depth(model: VariationalModel, num_steps: int) -> int:
    return num_steps * min(max(model.num_hidden_layers, 1), 3) // 6


def _fifty_batches(num_rows: int) -> int | None:
    return None if num_rows <= 20 else max(20, num_rows // 50)


def _all_rows_up_to_2000(num_rows: int) -> int | None:
    return None if num_rows <= 2_000 else 1_000


PROTOCOLS: dict[ProtocolName, TrainingProtocol] = {
    "fast": TrainingProtocol(
        _warm_cosine_with_short_memory,
        _annealing_by_depth,
        2,
        _all_rows_up_to_2000,
    ),
    "natural": TrainingProtocol(
        _natural_gradients,
        lambda model, num_steps: 0,
        1,
        lambda num_rows: None if num_rows <= 512 else 512,
    ),
    "papers": TrainingProtocol(
        lambda model, num_steps: Adam(paper_learning_rate(num_steps), epsilon=1e-8),
        lambda model, num_steps: min(1_000, num_steps // 2),
        10,
        _all_rows_up_to_2000,
    ),
    "networks": TrainingProtocol(
        lambda model, num_steps: Adam(cosine_learning_rate(num_steps, 1e-2)),
        lambda model, num_steps: 0,
        1,
        _fifty_batches,
    ),
    "vmg": TrainingProtocol(
        lambda model, num_steps: tf_keras.optimizers.Adam(
            1e-3, epsilon=1e-8, use_ema=True, ema_momentum=0.999
        ),
        lambda model, num_steps: 0,
        1,
        _fifty_batches,
    ),
}
"""``"papers"``: Adam with 1e-2 and, from half way, 1e-3; annealing over the first 1,000 steps, or
the first half of a run of less than 2,000. ``"fast"``: a cosine from 3e-2 to 3e-4, after 200 steps
(at most a twentieth of all) in which the rate grows to that, with a shorter memory of squared
gradients; annealing over the first sixth for each hidden layer, at most the first
half (deep models fall back to the prior with less); two draws instead of ten. Both take all rows at
a step up to 2,000 rows, and 1,000 above.

``"natural"``, for a model with ``natural_parameters``: natural gradients for these and Adam for the
rest, as in :class:`NaturalGradientAdam`, no annealing, and 512 rows at a step (Salimbeni,
Dutordoir, Hensman and Deisenroth, 2019); one draw.

``"vmg"``, for networks: that of Louizos and Welling (2016, section 4), Adam with its usual 1e-3 and
temporal averaging (Kingma and Ba, 2015, section 7.2: the model ends at the iterates' exponential
average with decay 0.999), one draw and no annealing. They print neither steps nor rows of a
minibatch: here 20, or 50 minibatches in an epoch where that makes larger ones. ``"networks"`` has
the same minibatches and a cosine from 1e-2 to 1e-4 without averaging, which takes fewer steps."""
