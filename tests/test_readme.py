"""The README's Python runs, and its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from package_source import ROOT

README = ROOT / "README.md"

pytestmark = pytest.mark.skipif(not README.is_file(), reason="there is no README yet")


def python_blocks(text: str) -> list[tuple[int, str]]:
    """The text's Python code blocks, each with the line before its first."""
    blocks = re.finditer(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [(text[: block.start(1)].count("\n"), block.group(1)) for block in blocks]


def test_python_blocks_run_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GPFLOW_DWP_FAST", "1")
    blocks = python_blocks(README.read_text(encoding="utf-8"))
    assert blocks

    namespace = {"__name__": "readme"}
    for line, block in blocks:
        # The empty lines make a traceback name the README's line.
        exec(compile("\n" * line + block, str(README), "exec"), namespace)


def test_relative_links_lead_to_files() -> None:
    links = re.findall(r"\]\(([^)#\s]+)", README.read_text(encoding="utf-8"))

    for link in links:
        assert "://" in link or (ROOT / link).exists(), link
