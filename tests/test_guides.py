"""The Python of README, guides and docstrings runs, and README's links lead somewhere."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import re
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import gpflow
import numpy as np
import pytest
from package_source import MODULES, ROOT, SourceModule

import gpflow_dwp
from gpflow_dwp import emulation
from gpflow_dwp.estimator import DeepWishartRegressor
from gpflow_dwp.selection import search
from gpflow_dwp.training import early_stopping, fit

# What TensorFlow says of data sets where nothing is compiled.
pytestmark = pytest.mark.filterwarnings("ignore:Even though the `tf.config.experimental_run_fun")
# What a guide may import and the tests' environment need not have; it runs there every night.
ELSEWHERE = ("mlflow", "optuna", "trieste")
README = ROOT / "README.md"
# `ci/docs.sh` runs all of them with every push, too.
GUIDES = [
    pytest.param(path, id=path.stem, marks=[] if path == README else pytest.mark.slow)
    for path in [README, *sorted((ROOT / "notebooks" / "how-to").glob("*.md"))]
]
FEW = 3  # steps; estimators that say nothing else take as many


def python_blocks(text: str) -> list[tuple[int, str]]:
    """The text's Python code blocks, each with the line before its first."""
    blocks = re.finditer(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [(text[: block.start(1)].count("\n"), block.group(1)) for block in blocks]


def given() -> dict[str, Any]:
    """What the guides take as given: data, a model of them, and new data."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 2)), rng.normal(size=(30, 1))
    labels, counts = rng.integers(0, 3, (30, 1)), rng.poisson(2.0, (30, 1)).astype(float)
    data = {"X": X, "Y": Y, "X_train": X, "Y_train": Y, "labels": labels, "counts": counts}
    new = {"X_new": X[:5], "Y_new": Y[:5], "labels_new": labels[:5]}
    model = gpflow_dwp.build_deep_wishart_process((X, Y), depth=1)
    return {"__name__": "guide", **data, **new, "model": model}


@pytest.mark.usefixtures("eager", "plain_single_layers")
@pytest.mark.parametrize("guide", GUIDES)
def test_python_blocks_run_one_by_one(guide: Path, tmp_path: Path, monkeypatch: Any) -> None:
    def fit_shortly(model: Any, data: Any, num_steps: int, **arguments: Any) -> Any:
        return fit(model, data, min(num_steps, FEW), **{**arguments, "batch_size": 10})

    def minimize_shortly(*arguments: Any, **others: Any) -> Any:
        return minimize(*arguments, **{**others, "options": {"maxiter": FEW}})

    minimize = gpflow.optimizers.Scipy.minimize
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(gpflow_dwp, "fit", fit_shortly, raising=False)
    monkeypatch.setattr(early_stopping, "fit", fit_shortly)  # of estimators
    monkeypatch.setattr(gpflow.optimizers.Scipy, "minimize", minimize_shortly)
    monkeypatch.setattr(search, "CANDIDATE_KERNELS", ("SquaredExponential",))
    few = {"num_points": 64, "num_functions": 4}
    monkeypatch.setattr(emulation, "sobol_indices", partial(emulation.sobol_indices, **few))
    defaults = DeepWishartRegressor.__init__.__kwdefaults__
    monkeypatch.setitem(defaults, "num_steps", FEW)
    monkeypatch.setitem(defaults, "effort", "quick")
    namespace = given()
    # The empty lines make a traceback name the guide's line.
    for line, block in python_blocks(guide.read_text(encoding="utf-8")):
        for package in ELSEWHERE:
            if f"import {package}\n" in block and find_spec(package) is None:
                pytest.skip(f"{package} is not installed; what comes before it runs")
        # The default float is set back, lest other blocks get data of another type.
        with gpflow.config.as_context(gpflow.config.config()):
            exec(compile("\n" * line + block, str(guide), "exec"), namespace)


def test_relative_links_lead_to_files() -> None:
    for link in re.findall(r"\]\(([^)#\s]+)", README.read_text(encoding="utf-8")):
        assert "://" in link or (ROOT / link).exists(), link


FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Finder(doctest.DocTestFinder):
    """Finds the examples of decorated functions, too. The standard finder takes a function for
    another module's if its wrapper is, which every function under ``check_shapes`` has."""

    def _from_module(self, module: ModuleType | None, object: Any) -> bool:  # noqa: A002
        return super()._from_module(module, inspect.unwrap(object))  # type: ignore[misc]


def written_examples(module: SourceModule) -> int:
    """How many examples the docstrings of a file hold."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = [ast.get_docstring(n) for n in ast.walk(module.tree) if isinstance(n, documented)]
    return sum(len(doctest.DocTestParser().get_examples(text)) for text in docstrings if text)


MODULES_WITH_EXAMPLES = [module for module in MODULES if written_examples(module)]


@pytest.mark.slow  # as the guides
@pytest.mark.parametrize("module", MODULES_WITH_EXAMPLES, ids=repr)
def test_examples(module: SourceModule) -> None:
    imported = importlib.import_module(module.name)
    tests = Finder(exclude_empty=True).find(imported, module.name)
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    report: list[str] = []
    for test in tests:
        runner.run(test, out=report.append)
    assert sum(len(test.examples) for test in tests) == written_examples(module)
    assert runner.summarize(verbose=False).failed == 0, "".join(report)
