"""Choosing depth, kernel and warp by the bound, and single layers that are fitted in seconds."""

from gpflow_dwp.selection.candidates import CANDIDATE_KERNELS, Candidate, Selection
from gpflow_dwp.selection.select_model import select_model

__all__ = [
    "CANDIDATE_KERNELS",
    "Candidate",
    "Selection",
    "select_model",
]
