"""Sphinx's settings; ci/docs.sh runs it."""

from __future__ import annotations

import functools
import os
import pkgutil
import re
import shutil
import sys
from importlib import import_module
from importlib.metadata import version as version_of
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sphinx.pycode import ModuleAnalyzer
from sphinx.util.inspect import TypeAliasForwardRef

import gpflow_dwp

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "ci" / "docs"))

from reference_pages import (  # noqa: E402
    is_derived,
    link_elsewhere,
    link_papers,
    members_of_bases,
    tabulate_shapes,
)

project = "gpflow_dwp"
author = "The gpflow-dwp contributors"
copyright = author  # noqa: A001
release = version_of("gpflow-dwp")

extensions = [
    *("sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.mathjax", "sphinx.ext.viewcode"),
    "myst_nb",
]
exclude_patterns = ["**.ipynb_checkpoints"]
html_theme = "furo"
html_title = "gpflow_dwp"

# Formulas are typeset without a network, and as pictures, which need no fonts.
mathjax_path = "tex-svg.js"
mathjax = find_spec("sphinx-mathjax-offline")
assert mathjax is not None and mathjax.origin is not None
html_static_path = [
    str(Path(mathjax.origin).parent / "static" / "mathjax" / mathjax_path),
    "tables.css",
]
html_css_files = ["tables.css"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

nb_custom_formats = {".pct.py": ["jupytext.reads", {"fmt": "py:percent"}]}
nb_execution_mode = os.environ.get("GPFLOW_DWP_DOCS_EXECUTION", "off")
nb_execution_timeout = 3_600
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True
nb_output_stderr = "remove"

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_class_signature = "mixed"
autodoc_type_aliases = {
    "npt.ArrayLike": "~numpy.typing.ArrayLike",
    "TrainingData": "~gpflow_dwp.base.TrainingData",
    "Array": "~gpflow_dwp.base.Array",
    "Seed": "~gpflow_dwp.base.Seed",
}
# What is shown of an alias within a union.
TypeAliasForwardRef.__repr__ = lambda alias: alias.name
add_module_names = False

# What the parts of the package ask of each other.
INTERNAL = {"draws_per_row", "kept_as"}

# The pages of reference/ list the names; each gets a page of its own, which is not in git.
templates_path = [str(ROOT / "ci" / "docs" / "templates")]
suppress_warnings = ["config.cache"]  # functions in what follows
autosummary_context = {
    "internal": INTERNAL,
    "is_derived": is_derived,
    "members_of_bases": members_of_bases,
}
shutil.rmtree(ROOT / "notebooks" / "reference" / "names", ignore_errors=True)

# What the rooms share, and programs: not of the interface.
PRIVATE_ROOMS = (
    "cli",
    "files",
    "gaussian_process",
    "neighbours",
    "optional",
    "parameter_checks",
    "pareto_smoothing",
    "random",
    "validation",
)
# What a link to a file at the top of the checkout leads to within the site.
PAGES = {"README.md": "start.md", "CHANGELOG.md": "changelog.md", "notebooks": "index.md"}
# The last cell of a notebook's page.
DOWNLOAD = """
# %% [markdown]
# {{download}}`This page as a script <{file}>`, of which `jupytext --to notebook` makes a notebook.
"""


def lead_links_to_pages(app: Any, path: Path, name: str, text: list[str]) -> None:
    """Make links of an included file lead to the site's pages; one to no page becomes code."""
    del app, path, name

    def replace(match: re.Match[str]) -> str:
        label, link = match.groups()
        if "://" in link or link.startswith("#"):
            return match.group(0)
        file, mark, anchor = link.removeprefix("../").partition("#")
        page = PAGES.get(file, file.removeprefix("notebooks/"))
        is_page = (ROOT / "notebooks" / page).exists()
        if is_page:
            return f"[{label}](/{page}{mark}{anchor})"
        return f"`{link}`" if label == link else f"{label} (`{link}`)"

    text[0] = re.sub(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)", replace, text[0])


def offer_notebook(app: Any, name: str, text: list[str]) -> None:
    """Let each notebook be downloaded, at its end."""
    file = f"{name}.pct.py"
    if (Path(app.srcdir) / file).exists():
        text[0] += DOWNLOAD.format(file=file)


def skip_internals(
    app: Any, what: str, name: str, value: Any, skip: bool, options: Any
) -> bool | None:
    """Leave out fields of tuples, internals, and methods that another package puts on a class."""
    del app, skip, options
    foreign = (getattr(value, "__module__", None) or "").startswith(("sklearn", "tensorflow"))
    is_field = (getattr(value, "__doc__", None) or "").startswith("Alias for field number")
    is_left_out = name in INTERNAL or is_field or (foreign and callable(value))
    return True if what == "class" and is_left_out else None


def show_public_bases(app: Any, name: str, value: Any, options: Any, bases: list[Any]) -> None:
    """Name the public classes that a class derives from, by way of private ones."""
    del app, name, options
    bases[:] = [next(base for base in value.__mro__[1:] if not base.__name__.startswith("_"))]


@functools.cache
def documented_constants() -> dict[str, list[str]]:
    """What stands below each constant of the package, by the constant's name."""
    found: dict[str, list[str]] = {}
    for module in pkgutil.walk_packages(gpflow_dwp.__path__, "gpflow_dwp."):
        if not module.name.rpartition(".")[2].startswith("_"):
            texts = ModuleAnalyzer.for_module(module.name).find_attr_docs()
            found.update({name: lines for (owner, name), lines in texts.items() if not owner})
    return found


def document_constant(
    app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]
) -> None:
    """Show what stands below a constant where a package exports it, not what its type is."""
    del app, value, options
    if what == "data":
        lines[:] = documented_constants().get(name.rpartition(".")[2], [])


def check_public_names(app: Any, env: Any) -> None:
    """Refuse to build a reference that lacks public names."""
    del app
    known = set(env.get_domain("py").objects)
    missing: set[str] = set()
    for module in pkgutil.iter_modules(gpflow_dwp.__path__):
        if module.name.startswith("_") or module.name in PRIVATE_ROOMS:
            continue
        name = f"gpflow_dwp.{module.name}"
        missing |= {f"{name}.{public}" for public in import_module(name).__all__} - known
    if missing:
        raise ValueError(f"The reference lacks {', '.join(sorted(missing))}.")


def setup(app: Any) -> None:
    """Connect the functions above."""
    app.connect("include-read", lead_links_to_pages)
    app.connect("source-read", offer_notebook)
    app.connect("autodoc-skip-member", skip_internals)
    app.connect("autodoc-process-bases", show_public_bases)
    app.connect("autodoc-process-docstring", document_constant)
    app.connect("autodoc-process-docstring", tabulate_shapes)
    app.connect("autodoc-process-docstring", link_papers)
    app.connect("missing-reference", link_elsewhere)
    app.connect("env-check-consistency", check_public_names)
