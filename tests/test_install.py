"""What a user is told who has not all that the package needs, and optional packages."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path

import pytest
from package_source import ROOT

from gpflow_dwp.optional import check_optional, import_optional

HIDDEN = """
import importlib, sys
sys.modules["gpflow"] = None
for module in ("gpflow_dwp", "gpflow_dwp.layers", "gpflow_dwp.cli.program"):
    try:
        importlib.import_module(module)
    except ImportError as error:
        print(error)
"""


def test_without_gpflow_the_command_that_installs_it_is_named() -> None:
    """Python 3.13 gets GPflow by a command of its own; without it the first import says which."""
    program = [sys.executable, "-c", HIDDEN]
    found = subprocess.run(program, capture_output=True, text=True, check=True)
    requirement = '"gpflow>=2.11,<2.12'
    assert found.stdout.count(f"python -m pip install --no-deps {requirement}") == 3
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
        each for package in ("gpflow-dwp", "gpflow", "tf_keras") for each in requires(package)
    ]
    needed = [each for each in needed if not re.search("extra|python_version < .3.8", each)]
    missing = {name(requirement) for requirement in needed} - {name(word) for word in words}
    assert missing == {"tensorflow"}, "of which the command takes tensorflow-cpu"


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    assert import_optional("json", "cli") is json
    monkeypatch.setitem(sys.modules, "pandas", None)
    message = r'pandas is .* pip install "gpflow-dwp\[cli\]"'
    with pytest.raises(ImportError, match=message) as caught:
        import_optional("pandas", "cli")
    assert caught.value.name == "pandas"
    for find, name in ((import_optional, "no_such_package.part"), (check_optional, "pandas")):
        package = name.partition(".")[0]
        with pytest.raises(ImportError, match=rf"{package} is needed .*gpflow-dwp\[notebooks\]"):
            find(name, "notebooks")


def test_broken_packages_keep_their_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """And one of data is not imported."""
    for name, text in (("broken", "import not_here\n"), ("of_data", "raise RuntimeError\n")):
        (tmp_path / f"a_package_{name}").mkdir()
        (tmp_path / f"a_package_{name}" / "__init__.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="No module named 'not_here"):
        import_optional("a_package_broken", "cli")
    check_optional("a_package_of_data", "rivals")
