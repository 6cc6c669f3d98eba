"""Choosing depth, kernel and warp by the bound, and single layers that are fitted in seconds."""

from gpflow_dwp.selection.candidates import CANDIDATE_KERNELS, Auto, Candidate, Selection
from gpflow_dwp.selection.gaussian_process import GaussianProcessFit, fit_gaussian_process
from gpflow_dwp.selection.select_model import select_model

__all__ = [
    "CANDIDATE_KERNELS",
    "Auto",
    "Candidate",
    "GaussianProcessFit",
    "Selection",
    "fit_gaussian_process",
    "select_model",
]
