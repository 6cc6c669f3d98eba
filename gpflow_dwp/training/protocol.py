"""How a model is trained where nothing else is asked for: optimiser, schedules, draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from gpflow_dwp.models import LatentVariableDeepGP, VariationalModel
from gpflow_dwp.training.adam import Adam
from gpflow_dwp.training.natural_gradient import NaturalGradientAdam
from gpflow_dwp.training.schedule import cosine_learning_rate, paper_learning_rate

__all__ = ["PROTOCOLS", "Protocol", "ProtocolName", "default_batch_size"]

ProtocolName = Literal["fast", "natural", "papers"]
"""What :func:`fit` takes by name."""

_LARGEST_FULL_BATCH = 2_000
_BATCH_SIZE = 1_000


def default_batch_size(num_rows: int) -> int | None:
    """Return how many rows a minibatch has, where nothing else is asked for.

    :param num_rows: Training rows.
    :return: None, for all rows at every step, up to 2,000 rows; 1,000 above.
    """
    return _BATCH_SIZE if num_rows > _LARGEST_FULL_BATCH else None


class Protocol(NamedTuple):
    """A way to train.

    :param optimizer: Makes the optimiser of a model from it and the number of steps.
    :param kl_annealing_steps: When the weight of the log ratios reaches 1, from the number of
        steps.
    :param num_samples: S, the draws that estimate the bound; for whoever builds the model.
    """

    optimizer: Callable[[VariationalModel, int], Adam | NaturalGradientAdam]
    kl_annealing_steps: Callable[[int], int]
    num_samples: int


def _natural_gradients(model: VariationalModel, num_steps: int) -> NaturalGradientAdam:
    if not isinstance(model, LatentVariableDeepGP):
        raise ValueError(
            "protocol 'natural' moves the output layer of a LatentVariableDeepGP by natural "
            f"gradients, got a {type(model).__name__}."
        )
    layer = model.output_layer
    return NaturalGradientAdam([(layer.q_mu, layer.q_sqrt)])


PROTOCOLS: dict[ProtocolName, Protocol] = {
    # The first steps' gradients are huge. With the usual 0.999 the mean of squares remembers them
    # for a thousand steps, which keeps all later ones small.
    "fast": Protocol(
        lambda model, num_steps: Adam(cosine_learning_rate(num_steps), beta_2=0.98),
        lambda num_steps: num_steps // 6,
        2,
    ),
    "natural": Protocol(_natural_gradients, lambda num_steps: 0, 1),
    "papers": Protocol(
        lambda model, num_steps: Adam(paper_learning_rate(num_steps)),
        lambda num_steps: min(1_000, num_steps // 2),
        10,
    ),
}
"""``"papers"``: Adam with 1e-2 and, from half way, 1e-3; annealing over the first 1,000 steps, or
the first half of a run of less than 2,000. ``"fast"``: a cosine from 3e-2 to 3e-4 with a shorter
memory of squared gradients; annealing over the first sixth; two draws instead of ten.
``"natural"``, for a :class:`LatentVariableDeepGP`: natural gradients for its output layer and Adam
for the rest, as in :class:`NaturalGradientAdam`, and no annealing (Salimbeni, Dutordoir, Hensman
and Deisenroth, 2019); one draw."""
