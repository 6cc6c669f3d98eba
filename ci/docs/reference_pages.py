"""What the reference shows of a name: its shapes as a table, and where its types and papers are."""

from __future__ import annotations

import importlib
import re
from functools import cache
from typing import Any

import tensorflow as tf
from docutils import nodes

import gpflow_dwp

__all__ = [
    "is_derived",
    "link_elsewhere",
    "link_papers",
    "members_of_bases",
    "tabulate_shapes",
]

# ---------------------------------------------------------------------------------------- shapes

FIELD = re.compile(r":(?P<kind>param|ivar|cvar|returns?)\s*(?P<name>\*{0,2}\w+)?:\s*(?P<text>.*)")
CHECKED = re.compile(r"\s*\* \*\*(?P<name>[\w.]+)\*\* has shape (?P<shape>\[.*\])\.")
SIZE = r"(?:\.\.\.|\d+|[A-Zνrcd](?:[ _+*/-]+[\w+]+)*|batch\.\.\.)"
WRITTEN = re.compile(rf"\[(?:{SIZE}(?:, {SIZE})*)?\]")


def tabulate_shapes(
    app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]
) -> None:
    """Gather the shapes of arguments and of what is returned, checked or written, into a table."""
    del app, name, value, options
    if what not in ("class", "function", "method"):
        return
    shapes: dict[str, str] = {}
    kept: list[str] = []
    argument = ""
    for line in lines:
        field = FIELD.match(line.strip())
        if field:
            is_returned = field["kind"].startswith("return")
            argument = "returned" if is_returned else (field["name"] or "").lstrip("*")
        checked = CHECKED.match(line)
        if checked:
            array = re.sub(r"^return\b\.?", "returned ", checked["name"]).strip()
            shapes[array] = checked["shape"].replace("*", "").replace("broadcast ", "1 or ")
            continue
        written = WRITTEN.findall(line) if argument else []
        if written and argument not in shapes and not (field and field["kind"][1:] == "var"):
            shapes[argument] = " and ".join(dict.fromkeys(written))
        kept.append(line)
    if not shapes:
        return
    rows = [("array", "shape"), *shapes.items()]
    table = [".. list-table::", "   :header-rows: 1", "   :align: left", ""]
    for array, shape in rows:
        table += [f"   * - {array.replace('*', '')}", f"     - {shape}"]
    lines[:] = [*without_empty_fields(kept), "", *table, ""]


def without_empty_fields(lines: list[str]) -> list[str]:
    """Leave out fields of which nothing is left, which is all that shape checks had to say."""
    kept: list[str] = []
    for index, line in enumerate(lines):
        field = FIELD.match(line.strip())
        following = [text for text in lines[index + 1 :] if text.strip()]
        ends = not following or not following[0].startswith((" ", "\t"))
        if field and not field["text"] and ends:
            continue
        kept.append(line)
    return kept


# ------------------------------------------------------------------------------- other places

ARXIV = "https://arxiv.org/abs/"
PAPERS = {
    "Ober, Anson, Milsom and Aitchison": "2305.14454",
    "Aitchison, Yang and Ober": "2010.01590",
    "Ober and Aitchison": "2107.10125",
    "Salimbeni, Dutordoir, Hensman and Deisenroth": "1905.05435",
    "Salimbeni and Deisenroth": "1705.08933",
    "Louizos and Welling": "1603.04733",
    "Maddox et al.": "1902.02476",
    "Izmailov et al.": "1803.05407",
    "Glorot and Bengio": "https://proceedings.mlr.press/v9/glorot10a.html",
    "Salimans and Welling": "https://doi.org/10.1007/s10994-013-5363-3",
    "Srivastava": "https://doi.org/10.1214/aos/1046294461",
}
CITED = re.compile(rf"({'|'.join(map(re.escape, PAPERS))})( \(\d{{4}}\)|, \d{{4}})")


def link_papers(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Make the papers that a docstring names links."""
    del app, what, name, value, options

    def link(match: re.Match[str]) -> str:
        address = PAPERS[match[1]]
        return f"`{match[0]} <{address if '://' in address else ARXIV + address}>`__"

    lines[:] = CITED.sub(link, "\n".join(lines)).split("\n")


SITES = {
    "numpy": "https://numpy.org/doc/stable/reference/generated/{}.html",
    "pandas": "https://pandas.pydata.org/docs/reference/api/{}.html",
    "sklearn": "https://scikit-learn.org/stable/modules/generated/{}.html",
    "matplotlib": "https://matplotlib.org/stable/api/_as_gen/{}.html",
}
GPFLOW = "https://gpflow.github.io/GPflow/develop/api/{}/index.html#{}"
TENSORFLOW = "https://www.tensorflow.org/api_docs/python/tf/{}"
PROBABILITY = "https://www.tensorflow.org/probability/api_docs/python/tfp/{}"
SHORT = {
    "np": "numpy",
    "tf": "tensorflow",
    "tfp": "tensorflow_probability",
    "pd": "pandas",
    "Axes": "matplotlib.axes.Axes",
    "Kernel": "gpflow.kernels.Kernel",
    "MeanFunction": "gpflow.functions.MeanFunction",
    "Likelihood": "gpflow.likelihoods.Likelihood",
    "InducingPoints": "gpflow.inducing_variables.InducingPoints",
    "BayesianModel": "gpflow.models.BayesianModel",
    "Parameter": "gpflow.Parameter",
    "npt": "numpy.typing",
}


def public_name_of_gpflow(target: str) -> tuple[str, str]:
    """The package of GPflow that exports a name, and the name within it."""
    *modules, name = target.split(".")
    for package in dict.fromkeys((".".join(modules[:2]), *modules[:1])):
        if hasattr(importlib.import_module(package), name):
            return package, f"{package}.{name}"
    return ".".join(modules), target


def address_of(target: str) -> str | None:
    """Where another package documents a name."""
    first, _, rest = target.partition(".")
    target = SHORT.get(first, first) + (f".{rest}" if rest else "")
    first, name = target.split(".")[0], target.rpartition(".")[2]
    if first == "gpflow":
        package, full = public_name_of_gpflow(target)
        return GPFLOW.format(package.replace(".", "/"), full)
    if first == "tensorflow" and hasattr(tf, name):
        return TENSORFLOW.format(name)
    if first == "tensorflow_probability":
        kind = next((k for k in ("distributions", "bijectors") if k in target), None)
        return PROBABILITY.format(f"{kind}/{name}") if kind else None
    if first in SITES and "._" not in target:
        return SITES[first].format(target)
    return None


def link_elsewhere(app: Any, env: Any, node: Any, shown: nodes.Element) -> nodes.Element | None:
    """Lead a name that is none of ours to the documentation of the package that it is of.

    No inventories are fetched, so the site can be built without a network. A short name of ours,
    out of its module, is found where it is the only one.
    """
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"]
    address = address_of(target)
    if address is not None:
        return nodes.reference("", "", shown, internal=False, refuri=address, reftitle=target)
    ours = public_names(env.get_domain("py").objects, target)
    if len(ours) == 1:
        full, entry = ours[0]
        address = app.builder.get_relative_uri(node["refdoc"], entry.docname)
        return nodes.reference("", "", shown, refuri=f"{address}#{entry.node_id}", reftitle=full)
    return None


def public_names(objects: dict[str, Any], target: str) -> list[tuple[str, Any]]:
    """The names of ours that end so."""
    return [(full, entry) for full, entry in objects.items() if full.endswith(f".{target}")]


def is_derived(module: str, name: str) -> bool:
    """Whether a class has bases that are worth showing."""
    bases = getattr(importlib.import_module(module), name).__mro__[1:]
    shown = next(base for base in bases if not base.__name__.startswith("_"))
    return shown not in (object, tuple)


@cache
def members_of_bases(module: str, name: str) -> dict[str, str]:
    """The public members that a class has from other public classes of ours, with their owners."""
    found: dict[str, str] = {}
    bases = getattr(importlib.import_module(module), name).__mro__
    own = set(vars(bases[0]))
    for base in bases[1:]:
        owner = public_owner(base)
        if owner is None:
            continue
        for member, value in vars(base).items():
            is_method = callable(value) or isinstance(value, (property, staticmethod, classmethod))
            if is_method and not member.startswith("_") and member not in own:
                found.setdefault(member, owner)
    return found


def public_owner(base: type) -> str | None:
    """By which public name of ours a class goes."""
    parts = base.__module__.split(".")
    if parts[0] != gpflow_dwp.__name__:
        return None
    room = ".".join(parts[:2])
    is_public = base.__name__ in getattr(importlib.import_module(room), "__all__", ())
    return f"{room}.{base.__name__}" if is_public else None
