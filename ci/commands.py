"""Write the page of the command line from its help: `python ci/commands.py`.

A test holds notebooks/command_line.md to what this writes.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from unittest.mock import patch

from gpflow_dwp.cli.program import COMMANDS, app

PAGE = Path(__file__).resolve().parents[1] / "notebooks" / "command_line.md"
# What commands below commands are said to have: what turns an option off, and tuples as Python's.
_OFF = re.compile(r", --(?:no|empty)-[\w-]+(?=`)")
_TUPLE = re.compile(r" ?\*\[default: (?:False|\(\)|\(([^)]*)\))\]\*")
_HEAD = """\
# The command line

`gpflow-dwp COMMAND --help` says the same. The extra `cli` brings the command
([Install](how-to/install.md)).
"""


def page() -> str:
    """Return the text of the page."""
    with patch.object(sys, "argv", ["gpflow-dwp"]):  # of which cyclopts makes usages
        text = app.generate_docs(output_format="markdown")
    parts = dict(re.findall(r"^## gpflow-dwp ([\w-]+)\n(.*?)(?=^## |\Z)", text, re.S | re.M))
    found = [_HEAD]
    for name in COMMANDS:
        body = _TUPLE.sub(_without_quotes, _OFF.sub("", parts[name]))
        found.append(f"## gpflow-dwp {name}\n{body.rstrip()}\n")
    return "\n".join(found)


def _without_quotes(default: re.Match[str]) -> str:
    values = re.findall(r"[^\s',]+", default.group(1) or "")
    return f" *[default: {' '.join(values)}]*" if values else ""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
