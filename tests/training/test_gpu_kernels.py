"""A step of every model, held against the GPU kernels that TensorFlow registers also without a GPU.

An operation that has none runs on the host, and its operands cross over and back; a variable that
has none stops the first step with XLA. What TensorFlow leaves to the host of its own accord, such
as the integers of shapes, has a kernel for GPUs that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow import likelihoods
from gpu_steps import (
    CLASSES,
    LABELS,
    MODELS,
    REAL,
    Step,
    X,
    copies_to_host,
    find_kernel,
    make_loop,
    optimised_steps,
    trace,
    types,
    wishart,
)
from tensorflow.core.framework.attr_value_pb2 import AttrValue
from tensorflow.core.framework.graph_pb2 import GraphDef
from tensorflow.core.framework.node_def_pb2 import NodeDef

from gpflow_dwp.likelihoods import GammaGaussian
from gpflow_dwp.models import build_deep_wishart_process
from gpflow_dwp.training import _batches

pytestmark = pytest.mark.skipif(
    not tf.test.is_built_with_cuda(), reason="this TensorFlow has no kernels for GPUs"
)

TENSORFLOW = ("GPU", "DEFAULT")
XLA = ("XLA_GPU_JIT",)

# Deep processes whose numbers are float32 have all operations in float64, too: inside.
CASES = [(name, np.float32) for name in MODELS] + [
    (name, np.float64) for name in ("latent-variable deep GP", "network")
]


def heteroskedastic() -> likelihoods.Likelihood:
    return likelihoods.HeteroskedasticTFPConditional(
        distribution_class=tfp.distributions.Normal, scale_transform=tfp.bijectors.Exp()
    )


def switched() -> likelihoods.Likelihood:
    """Each likelihood of one function and one observation, for some rows."""
    return likelihoods.SwitchedLikelihood(
        [
            likelihoods.Bernoulli(),
            likelihoods.Beta(),
            likelihoods.Exponential(),
            likelihoods.Gamma(),
            likelihoods.Ordinal(np.array([0.5, 1.5])),
            likelihoods.Poisson(),
            likelihoods.StudentT(),
        ]
    )


SWITCHED = np.array([[1.0, 0], [0.2, 1], [0.5, 2], [0.5, 3], [1.0, 4], [2.0, 5], [-1.0, 6]])
LIKELIHOODS: dict[str, tuple[Callable[[], likelihoods.Likelihood], np.ndarray]] = {
    "GammaGaussian": (GammaGaussian, REAL),
    "GaussianMC": (likelihoods.GaussianMC, REAL),
    "HeteroskedasticTFPConditional": (heteroskedastic, REAL),
    "MultiClass": (lambda: likelihoods.MultiClass(CLASSES), LABELS),
    "Softmax": (lambda: likelihoods.Softmax(CLASSES), LABELS),
    "SwitchedLikelihood": (switched, SWITCHED),
}

ON_THE_HOST: dict[tuple[str, type], set[str]] = {
    # The gradient of GPflow's product over classes orders its axes: TensorFlow's own choice.
    ("MultiClass", np.float32): {"ListDiff int32 int32"},
    ("MultiClass", np.float64): {"ListDiff int32 int32"},
    # TensorFlow has that kernel for float32 only. XLA has it for both.
    ("Softmax", np.float64): {"SparseSoftmaxCrossEntropyWithLogits float64 int32"},
}


def with_likelihood(name: str) -> Step:
    make, Y = LIKELIHOODS[name]
    return Step(
        lambda: build_deep_wishart_process(
            (X, Y), 1, num_inducing=3, likelihood=make(), output="pseudo_targets"
        ),
        Y,
    )


def describe(node: NodeDef) -> str:
    """The operation and the types that it is of."""
    named = {name: types(node, name) for name in sorted(node.attr)}
    listed = [
        tf.as_dtype(number).name for numbers in named.values() for number in numbers if number
    ]
    return f"{node.op} {' '.join(listed)}"


def bodies(graph: GraphDef) -> dict[str, Any]:
    return {body.signature.name: body for body in graph.library.function}


def compiled_nodes(graph: GraphDef) -> Iterator[NodeDef]:
    """The nodes of all that XLA compiles."""
    named = bodies(graph)
    waiting = [name for name, body in named.items() if body.attr["_XlaMustCompile"].b]
    seen = set(waiting)
    while waiting:
        for node in named[waiting.pop()].node_def:
            yield node
            called = {attribute.func.name for attribute in node.attr.values()} | {node.op}
            new = (called & set(named)) - seen
            seen |= new
            waiting += new


def without_kernel(nodes: Iterable[NodeDef], devices: tuple[str, ...]) -> set[str]:
    verdicts: dict[str, bool] = {}
    for node in nodes:
        description = describe(node)
        if description not in verdicts:
            verdicts[description] = find_kernel(node, devices) is not None
    return {description for description, found in verdicts.items() if not found}


def all_nodes(graph: GraphDef, variables: Iterable[tf.Variable]) -> Iterator[NodeDef]:
    """The nodes of a graph and of all functions in it, and what holds its variables."""
    yield from graph.node
    for body in graph.library.function:
        yield from body.node_def
    for variable in variables:
        yield NodeDef(
            op="VarHandleOp", attr={"dtype": AttrValue(type=variable.dtype.as_datatype_enum)}
        )


def check_with_xla(step: Step, expected: set[str]) -> None:
    graph, variables = trace(step)
    compiled = list(compiled_nodes(graph))

    assert without_kernel(all_nodes(graph, variables), TENSORFLOW) == expected
    assert compiled
    assert without_kernel(compiled, XLA) == set()


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_every_model_has_gpu_kernels(name: str, dtype: type) -> None:
    gpflow.config.set_default_float(dtype)

    check_with_xla(MODELS[name], set())


# In single precision those alone whose functions are not all of sums, products and exponentials.
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *((name, np.float64) for name in LIKELIHOODS),
        *((name, np.float32) for name in ("MultiClass", "Softmax", "SwitchedLikelihood")),
    ],
)
def test_every_likelihood_has_gpu_kernels(name: str, dtype: type) -> None:
    numpy_2 = np.lib.NumpyVersion(np.__version__) >= "2.0.0"
    if numpy_2 and (name, dtype) == ("MultiClass", np.float32):
        pytest.skip("GPflow's MultiClass mixes precisions with numpy 2")
    gpflow.config.set_default_float(dtype)

    check_with_xla(with_likelihood(name), ON_THE_HOST.get((name, dtype), set()))


def test_steps_without_xla_have_gpu_kernels() -> None:
    graph, variables = trace(Step(wishart()), batch_size=None, dataset=True, jit_compile=False)

    assert not list(compiled_nodes(graph))
    assert without_kernel(all_nodes(graph, variables), TENSORFLOW) == set()


@pytest.mark.parametrize(
    ("name", "batches", "numbers"),
    [
        ("AB", {"batch_size": 2}, {6}),
        ("regression", {"batch_size": None}, {6}),
        ("deep inverse Wishart", {"batch_size": None}, {6, 10}),
        pytest.param(
            *("latent-variable deep GP", {"batch_size": None}, {6}), marks=pytest.mark.slow
        ),
        pytest.param("network", {"batch_size": 2}, {3}, marks=pytest.mark.slow),
    ],
)
def test_the_host_seldom_waits(
    name: str, batches: dict[str, Any], numbers: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches what has the host wait for a GPU in every step without XLA, such as shapes there.

    It has to, to see that a factorisation succeeded, that all is finite, or that an epoch is over.
    Four of the inverse Wishart's, in loops of ``igammainv``, do not show where XLA compiled such a
    model before in this process.
    """
    monkeypatch.setattr(_batches, "are_on_gpu", lambda variables: True)
    nodes = optimised_steps(make_loop(MODELS[name], **batches, jit_compile=False))

    # Of a step, and not of a factorisation that has failed.
    copies = [
        copy for copy in copies_to_host(nodes) if "while/body" in copy and "escalation" not in copy
    ]
    assert len(copies) in numbers, copies
