"""Deep GPs of other libraries, as subjects to time beside this package's models."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["PEERS", "peer_command", "peer_versions"]

PEERS = ("gpflux", "gpytorch")
"""Packages by the names of their distributions: GPflux's ``build_constant_input_dim_deep_gp`` and
GPyTorch's ``DeepGP``, both with the width of the inputs in every layer."""

_SCRIPT = Path(__file__).with_name("_peer_child.py")
_VERSIONS = """
import importlib.metadata as metadata, json, sys
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        pass
print(json.dumps(found))
"""


def peer_command(python: str | os.PathLike[str] | None = None) -> list[str]:
    """Return the command that times a peer, but for its last argument, the subject in JSON.

    :param python: The interpreter, which may be that of another environment; None for this one.
    """
    # Isolated: neither this package's folder nor PYTHONPATH are where modules are looked for.
    return [os.fspath(python or sys.executable), "-I", str(_SCRIPT)]


def peer_versions(
    peers: Sequence[str], python: str | os.PathLike[str] | None = None
) -> dict[str, str]:
    """Return versions of peers, and of what they compute with, in an environment.

    :param peers: Names in :data:`PEERS`.
    :param python: See :func:`peer_command`.
    :raises ValueError: If a name is unknown, the interpreter cannot be run, or a peer is not
        installed for it.
    """
    unknown = [peer for peer in peers if peer not in PEERS]
    if unknown:
        raise ValueError(f"peers must be some of {', '.join(PEERS)}, got {list(peers)}.")
    program = os.fspath(python or sys.executable)
    names = [*peers, "tensorflow", "torch", "numpy"]
    try:
        done = subprocess.run(
            [program, "-I", "-c", _VERSIONS, *names], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise ValueError(f"peer_python must be a Python interpreter, got {program}.") from error
    versions: dict[str, str] = json.loads(done.stdout)
    for peer in peers:
        if peer not in versions:
            raise ValueError(
                f"peers: {peer} is not installed for {program}: pip install gpflow-dwp[peers], or "
                f"pip install {peer} in an environment of its own, named by peer_python."
            )
    return versions
