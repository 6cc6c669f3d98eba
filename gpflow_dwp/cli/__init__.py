"""The command ``gpflow-dwp``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from gpflow_dwp.optional import import_optional

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, by default with the arguments of the process; return the exit code."""
    try:
        import_optional("cyclopts", "cli")
    except ImportError as error:
        print(f"gpflow-dwp: error: {error}", file=sys.stderr)
        return 2
    from gpflow_dwp.cli.program import run

    return run(sys.argv[1:] if arguments is None else list(arguments))
