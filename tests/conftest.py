"""What all tests share: fixed seeds, checked shapes, and GPflow as it is when it is imported."""

from __future__ import annotations

import functools
import gc
import math
import os
import sys
import typing

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # read when TensorFlow is imported
os.environ["MPLBACKEND"] = "Agg"  # read when matplotlib is imported; not every run has matplotlib

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import gpflow
import hypothesis
import numpy as np
import pytest
import tensorflow as tf
from check_shapes import ShapeCheckingState, set_enable_check_shapes
from tensorflow_probability.python.bijectors import bijector as bijectors
from tensorflow_probability.python.internal import cache_util

WITH_SHAPES = {"distributions", "kernels", "layers", "likelihoods"}
WITH_SHAPES |= {"test_linalg", "test_objectives", "test_random"}
WITH_SHAPES |= {"test_function_draws", "test_predictive"}
"""Folders and modules of what declares its shapes. Elsewhere the same functions run once more."""

# What has been imported is never garbage, and looking through it took a tenth of the time.
gc.freeze()
gc.set_threshold(100_000, 20, 50)
# TensorFlow asks of most arguments whether they follow a protocol, whose members Python 3.11 looks
# up anew each time: a fifth of the time where nothing is compiled.
typing._get_protocol_attrs = functools.cache(typing._get_protocol_attrs)  # type: ignore[attr-defined]


# TFP looks up each value of a parameter by a key whose nested parts it hashes: another third. As
# good a key has a bijector's class for its hash, and does not flatten what is a single tensor.
_refer, _key = cache_util.WeakStructRef.__init__, cache_util.hashable_structure


def _refer_to(self: Any, struct: Any, subkey: Any = None, callback: Any = None) -> None:
    if not isinstance(struct, tf.Tensor) or subkey[-1]:
        return _refer(self, struct, subkey, callback)
    self._struct, self._subkey = cache_util.HashableWeakRef(struct, self._cleanup), subkey
    self._hash, self._callback, self._alive = hash((self._struct, *subkey[:-1])), callback, True


bijectors.Bijector.__hash__ = lambda self: hash(type(self))
cache_util.hashable_structure = lambda it: id(it) if isinstance(it, tf.Tensor) else _key(it)
cache_util.WeakStructRef.__init__ = _refer_to

hypothesis.settings.register_profile(
    "gpflow_dwp",
    derandomize=True,
    deadline=None,
    database=None,
    print_blob=False,
    # The fixtures below reset state that is the same for every example of one test.
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
hypothesis.settings.load_profile("gpflow_dwp")


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--runslow``: run the tests that are marked slow, too."""
    parser.addoption("--runslow", action="store_true", help="run the tests that are marked slow")


LONGEST = ("test_distribution", "test_export")
"""Modules that one worker is busy with for a minute: at the end, the other would wait for it."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with what takes longest; skip what is slow, and most of matrices, if not asked for."""
    items.sort(key=lambda item: item.path.stem not in LONGEST)
    if config.getoption("--runslow"):
        return
    skip = pytest.mark.skip(reason="slow: runs with --runslow")
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(skip)
    left_out = off_diagonal(items)
    config.hook.pytest_deselected(items=[*left_out])
    items[:] = [item for item in items if item not in left_out]


def off_diagonal(items: list[pytest.Item]) -> set[pytest.Item]:
    """Cases of matrices but as few as have each value of each of their parameters."""
    tests, left_out = defaultdict[str, list[pytest.Item]](list), set[pytest.Item]()
    for item in items:
        tests[item.nodeid.partition("[")[0]].append(item)
    for cases in tests.values():
        sizes = [len([*mark.args[1]]) for mark in cases[0].iter_markers("parametrize")]
        if len(sizes) > 1 and len(cases) == math.prod(sizes):
            places = ([number % size for size in sizes] for number in range(max(sizes)))
            kept = {int(np.ravel_multi_index(place, sizes)) for place in places}
            left_out |= {case for number, case in enumerate(cases) if number not in kept}
    return left_out


@pytest.fixture(autouse=True)
def _fixed_seeds() -> None:
    """Start every test from the same global random state, whatever ran before it."""
    np.random.seed(0)  # noqa: NPY002 (this is the global state that is to be fixed)
    tf.random.set_seed(0)


@pytest.fixture(autouse=True, scope="module")
def _checked_shapes(request: pytest.FixtureRequest) -> None:
    """Check shapes where they are declared, in eager code: it takes a third more."""
    checked = {request.path.parent.name, request.path.stem} & WITH_SHAPES
    state = ShapeCheckingState
    set_enable_check_shapes(state.EAGER_MODE_ONLY if checked else state.DISABLED)


@pytest.fixture(autouse=True, scope="module")
def _graphs_as_they_are(request: pytest.FixtureRequest) -> None:
    """Make graphs fast where numbers are recorded: it takes longer than to run them a few times."""
    as_they_are = request.path.stem != "test_golden"
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": as_they_are})


def _forget_steps() -> None:
    if "gpflow_dwp.training" in sys.modules:
        sys.modules["gpflow_dwp.training.loop"].forget_steps()


@pytest.fixture(autouse=True, scope="module")
def _no_kept_functions() -> None:
    """Let tests find what those of the same module have compiled, and no others."""
    _forget_steps()


@pytest.fixture(autouse=True)
def _no_replaced_functions(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let a test that replaces parts compile them, and no other test find what it compiled."""
    replaces = "monkeypatch" in request.fixturenames
    if replaces:
        _forget_steps()
    yield
    if replaces:
        _forget_steps()


@pytest.fixture
def eager() -> Iterator[None]:
    """Compile nothing: where few steps are taken, that takes far longer than the steps."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@pytest.fixture(scope="module")
def eagerly() -> Iterator[None]:
    """Compile nothing, in fixtures of the module neither."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


def _comparison(variables: Sequence[tf.Variable]) -> Callable[[], bool]:
    values = [tf.convert_to_tensor(each) for each in variables]
    return lambda: all(map(np.array_equal, variables, values))


@pytest.fixture(scope="module")
def untraced() -> Iterator[None]:
    """Trace no predictions: that takes as long as to compute them three times."""
    models = "gpflow_dwp.models"
    with pytest.MonkeyPatch.context() as patch:
        never = property(lambda _: False, lambda *_: None)
        patch.setattr(f"{models}.mixture_posterior.MixturePosterior.is_kept", never)
        patch.setattr(f"{models}.kept_posterior._comparison", _comparison)
        yield


@pytest.fixture(scope="module")
def plain_single_layers() -> Iterator[None]:
    """Try no sums and no draws of the kernel, which take half of the time of a single layer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpflow_dwp.selection.policy.FEWEST_ITERATIONS", 1_000)
        yield


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are written without being drawn."""

    def save(figure: Any, path: Path, **_: Any) -> None:
        path.write_bytes(b"a figure")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", save)


@pytest.fixture(autouse=True)
def _default_gpflow_config() -> Iterator[None]:
    """Give every test GPflow's default configuration and undo what the test sets."""
    with gpflow.config.as_context(gpflow.config.Config()):
        yield
