"""The command ``gpflow-dwp``."""

from gpflow_dwp.cli.main import main

__all__ = ["main"]
