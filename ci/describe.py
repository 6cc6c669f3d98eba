"""Say in a copy of the checkout where the project is: `python ci/describe.py FOLDER URL REF`.

A package index shows the README without the files beside it. Its links become absolute ones into
URL at REF, which also become the URLs of the package; without URL they become their words, and
pictures go.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:)([^)\s]+)\)")


def describe(folder: Path, url: str, ref: str) -> None:
    """Write README.md and pyproject.toml of a copy anew.

    :param folder: The copy.
    :param url: Of the repository, without a slash at its end; may be empty.
    :param ref: Tag or commit.
    """
    readme, settings = folder / "README.md", folder / "pyproject.toml"

    def absolute(found: re.Match[str]) -> str:
        is_picture, words, target = found.groups()
        if not url:
            return "" if is_picture else words
        return f"{is_picture}[{words}]({url}/{'raw' if is_picture else 'blob'}/{ref}/{target})"

    readme.write_text(_LINK.sub(absolute, readme.read_text(encoding="utf-8")), encoding="utf-8")
    if url:
        places = {
            "Source": url,
            "Documentation": f"{url}/blob/{ref}/notebooks/index.md",
            "Changelog": f"{url}/blob/{ref}/CHANGELOG.md",
            "Issues": f"{url}/issues",
        }
        lines = [f'{name} = "{place}"\n' for name, place in places.items()]
        text = settings.read_text(encoding="utf-8")
        urls = "".join(["[project.urls]\n", *lines, "\n"])
        settings.write_text(text.replace("[project.scripts]\n", urls + "[project.scripts]\n"))


if __name__ == "__main__":
    describe(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
