"""Optional packages: imported when asked for, named when missing."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from gpflow_dwp.optional import find_optional, import_optional


def test_imports() -> None:
    assert import_optional("json", "cli") is json


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(
        ImportError, match=r'pandas is .* pip install "gpflow-dwp\[cli\]"'
    ) as caught:
        import_optional("pandas", "cli")
    assert caught.value.name == "pandas"


def test_a_missing_submodule_names_the_package() -> None:
    with pytest.raises(ImportError, match=r"no_such_package is needed .*gpflow-dwp\[notebooks\]"):
        import_optional("no_such_package.part", "notebooks")


def test_an_installed_package_keeps_its_own_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "broken_package_here.py").write_text("import a_dependency_that_is_not_here\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="No module named 'a_dependency"):
        import_optional("broken_package_here", "cli")


def test_a_package_is_found_without_being_imported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    package = tmp_path / "a_package_of_data"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')\n")
    monkeypatch.syspath_prepend(tmp_path)

    assert find_optional("a_package_of_data", "rivals") == package
    assert "a_package_of_data" not in sys.modules


@pytest.mark.parametrize("hidden", [True, False])
def test_a_package_that_is_not_found_is_named(
    hidden: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if hidden:
        monkeypatch.setitem(sys.modules, "no_such_package", None)

    with pytest.raises(ImportError, match=r"no_such_package is .*gpflow-dwp\[rivals\]") as caught:
        find_optional("no_such_package", "rivals")

    assert caught.value.name == "no_such_package"
