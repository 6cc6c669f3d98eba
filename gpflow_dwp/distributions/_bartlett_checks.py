"""What the parameters of a generalised Bartlett factor must fulfil."""

from __future__ import annotations

from typing import Any

from gpflow_dwp import parameter_checks as checks
from gpflow_dwp.distributions import _parameters

__all__ = ["bartlett_requirements", "check_bartlett_shapes"]


def check_bartlett_shapes(concentration: Any, rate: Any, loc: Any, scale: Any) -> tuple[int, int]:
    """Check that the parameters fit each other.

    :return: M and R.
    :raises ValueError: If they do not.
    """
    size, rank = checks.matrix_shape("loc", loc)
    if size < rank:
        raise ValueError(
            f"loc must have shape [..., M, R] with M >= R (R = min(df, M)), got shape {loc.shape}."
        )
    why = "R, the number of columns of loc"
    checks.check_event("concentration", concentration, [rank], why)
    checks.check_event("rate", rate, [rank], why)
    checks.check_event("scale", scale, [size, rank], "as loc")
    checks.check_batch_shapes(
        _parameters.BARTLETT_EVENT_NDIMS,
        {"concentration": concentration, "rate": rate, "loc": loc, "scale": scale},
    )
    return size, rank


def bartlett_requirements(
    concentration: Any, rate: Any, loc: Any, scale: Any
) -> list[checks.Requirement]:
    """Say what their values must fulfil."""
    make = checks.Requirement
    positive, below = "positive and finite entries", "entries below its diagonal"
    return [
        make("concentration", concentration, checks.positive, positive),
        make("rate", rate, checks.positive, positive),
        make("loc", loc, checks.finite_below_diagonal, f"finite {below}"),
        make("scale", scale, checks.positive_below_diagonal, f"positive and finite {below}"),
    ]
