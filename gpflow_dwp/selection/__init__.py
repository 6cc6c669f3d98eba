"""Choosing depth, kernel and likelihood by what models predict of rows they have not seen."""

from gpflow_dwp.selection.candidates import Candidate, Selection
from gpflow_dwp.selection.choice import Choice
from gpflow_dwp.selection.leave_one_out import leave_one_out
from gpflow_dwp.selection.observations import recorded_steps
from gpflow_dwp.selection.select_model import select_model

__all__ = ["Candidate", "Choice", "Selection", "leave_one_out", "recorded_steps", "select_model"]
