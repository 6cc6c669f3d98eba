"""Open every page of a built site in headless Chromium: `python check_browser.py DIRECTORY`.

The site is served from this machine, and nothing else may be asked for. What is refused: errors on
the console, LaTeX that was not typeset, text that is cut off in a wide or a narrow window, and
searches that do not lead to the page that answers them. Without a Chromium it says so and ends
well, unless GPFLOW_DWP_BROWSER=required.
"""

from __future__ import annotations

import functools
import os
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)
WIDTHS = (1400, 400)
# What is looked for, and a page that has to be among the first answers.
SEARCHES = {
    "fine-tune": "how-to/own_table",
    "missing": "how-to/classification",
    "GPU": "how-to/gpu",
    "TensorBoard": "how-to/tracking",
    "several outputs": "how-to/classification",
    "categorical": "command_line",
    "CSV": "how-to/own_table",
}
FIRST_ANSWERS = 10

LOOK = r"""() => {
    const width = document.documentElement.clientWidth, found = [];
    const short = text => text.trim().replace(/\s+/g, " ").slice(0, 80);
    const say = (what, text) => found.push(what + ": " + short(text));
    for (const math of document.querySelectorAll(".math:not(.highlight)"))
        if (!math.querySelector("mjx-container")) say("not typeset", math.textContent);
    for (const error of document.querySelectorAll("mjx-merror, [data-mjx-error]"))
        say("wrong LaTeX", error.closest(".math")?.textContent ?? error.textContent);
    if (document.scrollingElement.scrollWidth > width)
        say("wider than the window", String(document.scrollingElement.scrollWidth));

    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        const node = texts.currentNode, owner = node.parentElement;
        if (!node.textContent.trim()) continue;
        if (owner.closest("script, style, template, svg, mjx-container")) continue;
        if (!owner.closest("pre, code, .sig") && /\\[A-Za-z]{2,}|\$[^$]+\$/.test(node.textContent))
            say("raw LaTeX", node.textContent);
        if (!owner.checkVisibility({checkOpacity: true, checkVisibilityCSS: true})) continue;
        const range = document.createRange();
        range.selectNodeContents(node);
        const box = range.getBoundingClientRect();
        if (box.width <= 1 || box.height <= 1) continue;
        for (let around = owner; around; around = around.parentElement) {
            const style = getComputedStyle(around), frame = around.getBoundingClientRect();
            if (style.position === "fixed" || frame.right <= 0 || frame.left >= width) break;
            if (["auto", "scroll"].includes(style.overflowX)) break;  // can be scrolled to
            if (around === document.body || around === document.documentElement) {
                if (box.right > width + 1 || box.left < -1)
                    say("outside of the window", node.textContent);
                break;
            }
            if (["hidden", "clip"].includes(style.overflowX)) {
                if (frame.width > 1 && (box.right > frame.right + 1 || box.left < frame.left - 1))
                    say("cut off", node.textContent);
                break;
            }
        }
    }
    return found;
}"""


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and does not speak of it."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Leave the terminal to what was found."""


@contextmanager
def served(site: Path) -> Iterator[str]:
    """Serve a directory on this machine alone, and give its address."""
    handler = functools.partial(Quiet, directory=str(site))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()


def look_at_pages(tab: Any, site: Path, address: str) -> Iterator[str]:
    """What is wrong with each page, at each width."""
    complaints: list[str] = []
    tab.on("console", lambda said: said.type == "error" and complaints.append(said.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("requestfailed", lambda asked: complaints.append(f"not loaded: {asked.url}"))

    def only_here(route: Any) -> None:
        if route.request.url.startswith((address, "data:")):
            route.continue_()
        else:
            complaints.append(f"asks for {route.request.url}")
            route.abort()

    tab.route("**/*", only_here)
    for path in sorted(site.rglob("*.html")):
        page = path.relative_to(site)
        tab.set_viewport_size({"width": WIDTHS[0], "height": 900})
        tab.goto(f"{address}/{page.as_posix()}", wait_until="load")
        if tab.query_selector(".math:not(.highlight)"):
            tab.evaluate("() => window.MathJax?.startup?.promise")
        for width in WIDTHS:
            tab.set_viewport_size({"width": width, "height": 900})
            for found in dict.fromkeys(tab.evaluate(LOOK)):
                yield f"{page} at {width} pixels: {found}"
        yield from (f"{page}: {text}" for text in dict.fromkeys(complaints))
        complaints.clear()


def search(tab: Any, address: str) -> Iterator[str]:
    """Searches that do not find what they should."""
    for words, page in SEARCHES.items():
        tab.goto(f"{address}/search.html?q={words.replace(' ', '+')}")
        tab.wait_for_selector("#search-results .search-summary", timeout=20_000)
        tab.wait_for_timeout(500)
        links = tab.eval_on_selector_all(
            "#search-results li > a", "all => all.map(a => a.getAttribute('href'))"
        )
        if not any(page in link for link in links[:FIRST_ANSWERS]):
            yield f"searching for {words!r} finds {links[:FIRST_ANSWERS]}, not {page!r}"


def main(site: Path) -> str | None:
    """Look at all of a site; what is wrong with it, or nothing."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        missing = f"the site was not opened in a browser: none of {', '.join(BROWSERS)} is here"
        if os.environ.get("GPFLOW_DWP_BROWSER") == "required":
            return missing
        print(missing)
        return None

    from playwright.sync_api import sync_playwright

    with served(site) as address, sync_playwright() as player:
        chromium = player.chromium.launch(executable_path=browser, args=list(FLAGS))
        tab = chromium.new_page()
        found = [*look_at_pages(tab, site, address), *search(tab, address)]
        chromium.close()
    return "\n".join(found) or None


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
