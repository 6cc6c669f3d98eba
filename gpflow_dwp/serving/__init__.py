"""Trained models for other programs: those without this package, those with their own interface.

:func:`export_model` writes a model for TensorFlow alone.
"""

from gpflow_dwp.serving.export import export_model

__all__ = ["export_model"]
