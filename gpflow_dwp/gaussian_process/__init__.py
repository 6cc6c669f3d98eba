"""Gaussian processes in closed form: their evidence, how they are fitted, what they predict."""

from gpflow_dwp.gaussian_process.evidence import Evidence
from gpflow_dwp.gaussian_process.fit import GaussianProcessFit, fit_gaussian_process

__all__ = ["Evidence", "GaussianProcessFit", "fit_gaussian_process"]
