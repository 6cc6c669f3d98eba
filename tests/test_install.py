"""What a user is told who has not all that the package needs."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import requires

import pytest
from package_source import ROOT

HIDDEN = "import sys; sys.modules['gpflow'] = None; import {}"


@pytest.mark.parametrize("module", ["gpflow_dwp", "gpflow_dwp.layers", "gpflow_dwp.cli.program"])
def test_without_gpflow_the_command_that_installs_it_is_named(module: str) -> None:
    """Python 3.13 gets GPflow by a command of its own; without it the first import says which."""
    found = subprocess.run(
        [sys.executable, "-c", HIDDEN.format(module)], capture_output=True, text=True, check=False
    )
    assert found.returncode == 1
    requirement = '"gpflow>=2.11,<2.12'
    assert f"python -m pip install --no-deps {requirement}" in found.stderr.splitlines()[-1]
    assert requirement in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_the_guide_installs_all_that_is_needed_where_nothing_is_asked_for() -> None:
    """`--no-deps` hides a requirement that is new: of ours, of GPflow's or of tf_keras'."""

    def name(requirement: str) -> str:
        return re.match(r"[\w-]+", requirement)[0].lower().replace("_", "-")

    guide = (ROOT / "notebooks" / "how-to" / "install.md").read_text(encoding="utf-8")
    section = guide[guide.index("## numpy 2 or") :]
    command = re.search(r"```bash\n(.*?)```", section, re.S)[1]
    words = re.findall(r"(?<=[ \"])[a-z][\w-]*", command)
    needed = [
        requirement
        for package in ("gpflow-dwp", "gpflow", "tf_keras")
        for requirement in requires(package)
        if not re.search("extra|python_version < .3.8", requirement)
    ]

    missing = {name(requirement) for requirement in needed} - {name(word) for word in words}
    assert missing == {"tensorflow"}, "of which the command takes tensorflow-cpu"
