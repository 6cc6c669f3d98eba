"""Write the pages of the command line from its help: `python ci/commands.py`.

A test holds notebooks/command_line to what this writes.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from unittest.mock import patch

from gpflow_dwp.cli.program import COMMANDS, app

FOLDER = Path(__file__).resolve().parents[1] / "notebooks" / "command_line"
# What commands below commands are said to have: what turns an option off, and tuples as Python's.
_OFF = re.compile(r", --(?:no|empty)-[\w-]+(?=`)")
_TUPLE = re.compile(r" ?\*\[default: (?:False|\(\)|\(([^)]*)\))\]\*")
_INDEX = """\
# The command line

`gpflow-dwp COMMAND --help` says the same. The extra `cli` brings the command
([Install](../how-to/install.md)).

```{{toctree}}
:maxdepth: 1

{names}
```
"""


def pages() -> dict[str, str]:
    """Return the text of each page, by the name of its file."""
    with patch.object(sys, "argv", ["gpflow-dwp"]):  # of which cyclopts makes usages
        text = app.generate_docs(output_format="markdown")
    parts = dict(re.findall(r"^## gpflow-dwp ([\w-]+)\n(.*?)(?=^## |\Z)", text, re.S | re.M))
    found = {"index.md": _INDEX.format(names="\n".join(COMMANDS))}
    for name in COMMANDS:
        body = re.sub(r"^#(#+ )", r"\1", parts[name], flags=re.M)
        body = _TUPLE.sub(_without_quotes, _OFF.sub("", body))
        found[f"{name}.md"] = f"# gpflow-dwp {name}\n{body.rstrip()}\n"
    return found


def _without_quotes(default: re.Match[str]) -> str:
    values = re.findall(r"[^\s',]+", default.group(1) or "")
    return f" *[default: {' '.join(values)}]*" if values else ""


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
