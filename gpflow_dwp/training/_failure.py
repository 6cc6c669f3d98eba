"""Which part of a model a failed step broke."""

from __future__ import annotations

from gpflow.utilities import parameter_dict

from gpflow_dwp.exceptions import NonFiniteBoundError
from gpflow_dwp.models import VariationalModel
from gpflow_dwp.models.variational import describe_non_finite
from gpflow_dwp.objectives import BoundTerms
from gpflow_dwp.training.loop import CompiledLoop, StepRecords

__all__ = ["describe_failure"]


def describe_failure(
    model: VariationalModel, loop: CompiledLoop, record: StepRecords, steps_before: int
) -> NonFiniteBoundError:
    step = steps_before + len(record.terms.data) - 1
    last = BoundTerms(record.terms.data[-1], record.terms.log_ratios[-1])
    where = describe_non_finite(model, last)
    if where is None:
        paths = {
            id(parameter.unconstrained_variable): path
            for path, parameter in parameter_dict(model).items()
        }
        names = [
            paths.get(id(variable), variable.name)
            for variable, finite in zip(loop.variables, record.finite_gradients, strict=True)
            if not finite
        ]
        where = f"the gradient of {', '.join(names)} is" if names else "the log prior density is"
    return NonFiniteBoundError(
        f"Training stopped at step {step}: {where} not finite. The model holds the last state "
        "whose bound was finite. Try a smaller learning rate, a larger jitter or float64.",
        step=step,
    )
