"""Measuring the package, and what others printed: experiments, studies, rivals and benchmarks.

The command line runs it. Nothing in it is part of the public interface.
"""

from __future__ import annotations

__all__ = []
