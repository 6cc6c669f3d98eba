"""Follow every link within a built site: `python check_links.py DIRECTORY`."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The anchors of a page and where its links lead."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep what the element is called, and where it leads."""
        for name, value in attrs:
            if value is None:
                continue
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value)
            if (tag == "a" and name == "href") or (tag in ("img", "script") and name == "src"):
                self.links.append(value)


def broken_links(site: Path) -> list[str]:
    """Every link to a file or anchor of the site that is not there."""
    pages = {path.resolve(): Page(path) for path in site.rglob("*.html")}
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            if not target.exists():
                broken.append(f"{path.relative_to(site.resolve())}: {link}")
            elif anchor and target in pages and anchor not in pages[target].anchors:
                broken.append(f"{path.relative_to(site.resolve())}: {link} (no such anchor)")
    return broken


if __name__ == "__main__":
    found = broken_links(Path(sys.argv[1]))
    sys.exit("\n".join(found) if found else 0)
