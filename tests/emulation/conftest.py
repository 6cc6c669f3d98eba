"""What tests of emulation share with those of estimators."""

from estimator.conftest import untraced

__all__ = ["untraced"]
