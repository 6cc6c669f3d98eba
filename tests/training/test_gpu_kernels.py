"""A step of every model, held against the GPU kernels that TensorFlow registers also without a GPU.

An operation that has none runs on the host, and its operands cross over and back; a variable that
has none stops the first step with XLA. What TensorFlow leaves to the host of its own accord, such
as the integers of shapes, has a kernel for GPUs that says so.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework.attr_value_pb2 import AttrValue
from tensorflow.core.framework.graph_pb2 import GraphDef
from tensorflow.core.framework.kernel_def_pb2 import KernelDef
from tensorflow.core.framework.node_def_pb2 import NodeDef
from tensorflow.python.framework import kernels

from gpflow_dwp.latent_variable_deep_gp import build_latent_variable_deep_gp
from gpflow_dwp.matrix_gaussian import build_matrix_gaussian_network
from gpflow_dwp.models import (
    build_deep_gaussian_process,
    build_deep_inverse_wishart_process,
    build_deep_wishart_process,
)
from gpflow_dwp.random import as_seed
from gpflow_dwp.training import PROTOCOLS
from gpflow_dwp.training._batches import make_batches
from gpflow_dwp.training.loop import CompiledLoop
from gpflow_dwp.training.optimizers import ProtocolName

pytestmark = pytest.mark.skipif(
    not tf.test.is_built_with_cuda(), reason="this TensorFlow has no kernels for GPUs"
)

TENSORFLOW = ("GPU", "DEFAULT")
XLA = ("XLA_GPU_JIT",)
ROWS = 7
X = np.random.default_rng(0).normal(size=(ROWS, 2))
DATA = X, X[:, :1]


SMALL: dict[str, Any] = {"depth": 2, "num_inducing": 3}
WISHART: dict[str, Any] = {"build": build_deep_wishart_process, "output": "pseudo_targets", **SMALL}
SAMPLED = {"posterior": "GW", "whiten": True, "expected_log_ratio": False}
# The protocol, whose optimiser it is, and how a model of the default precision is made.
MODELS: dict[str, tuple[ProtocolName, dict[str, Any]]] = {
    "AB": ("fast", {**WISHART, "kernel": "Matern52"}),
    "sampled log ratios": ("fast", {**WISHART, **SAMPLED, "kernel": "Exponential"}),
    "regression": ("fast", {**WISHART, "output": "regression", "kernel": "RationalQuadratic"}),
    "deep GP": ("fast", {"build": build_deep_gaussian_process, **SMALL, "kernel": "Matern32"}),
    "deep inverse Wishart": (
        "fast",
        {"build": build_deep_inverse_wishart_process, **SMALL, "kernel": "Matern12"},
    ),
    "latent-variable deep GP": (
        "natural",
        {"build": build_latent_variable_deep_gp, "architecture": "LV-GP-GP", "num_inducing": 3},
    ),
    "network": ("vmg", {"build": build_matrix_gaussian_network, "width": 3}),
}
# Deep processes whose numbers are float32 have all operations in float64, too: inside. What a short
# run leaves out has few operations that the others have not.
SLOW = [(name, np.float32) for name in ("AB", "deep GP", "deep inverse Wishart", "network")]
SLOW += [(name, np.float64) for name in ("latent-variable deep GP", "network")]
CASES = [
    pytest.param(*case, marks=[pytest.mark.slow] if case in SLOW else [])
    for case in [*((name, np.float32) for name in MODELS), *SLOW[4:]]
]


@functools.cache
def _kernels_of(operation: str) -> list[KernelDef]:
    return list(kernels.get_registered_kernels_for_op(operation).kernel)


def types(node: NodeDef, name: str) -> set[int]:
    """The types that an attribute names."""
    attribute = node.attr[name]
    return set(attribute.list.type) or {attribute.type}


def has_kernel(node: NodeDef, devices: tuple[str, ...]) -> bool:
    """Whether an operation of these types has a kernel on one of these kinds of devices."""
    return any(
        kernel.device_type in devices
        and not kernel.label
        and all(
            types(node, constraint.name) <= set(constraint.allowed_values.list.type)
            for constraint in kernel.constraint
        )
        for kernel in _kernels_of(node.op)
    )


def without_kernel(nodes: Iterable[NodeDef], devices: tuple[str, ...]) -> set[str]:
    """The operations, with their types, that have none."""
    kinds: dict[str, NodeDef] = {}
    for node in nodes:
        numbers = [number for name in sorted(node.attr) for number in types(node, name) if number]
        kinds[" ".join([node.op, *(tf.as_dtype(number).name for number in numbers)])] = node
    return {kind for kind, node in kinds.items() if not has_kernel(node, devices)}


def compiled_nodes(graph: GraphDef) -> Iterator[NodeDef]:
    """The nodes of all that XLA compiles."""
    named = {body.signature.name: body for body in graph.library.function}
    waiting = [name for name, body in named.items() if body.attr["_XlaMustCompile"].b]
    seen = set(waiting)
    while waiting:
        for node in named[waiting.pop()].node_def:
            yield node
            called = {attribute.func.name for attribute in node.attr.values()} | {node.op}
            new = (called & set(named)) - seen
            seen |= new
            waiting += new


def all_nodes(graph: GraphDef, variables: Iterable[tf.Variable]) -> Iterator[NodeDef]:
    """The nodes of a graph and of all functions in it, and what holds its variables."""
    yield from graph.node
    for body in graph.library.function:
        yield from body.node_def
    for variable in variables:
        dtype = AttrValue(type=variable.dtype.as_datatype_enum)
        yield NodeDef(op="VarHandleOp", attr={"dtype": dtype})


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_every_model_has_gpu_kernels(name: str, dtype: type) -> None:
    gpflow.config.set_default_float(dtype)
    protocol, settings = MODELS[name]
    model = settings["build"](DATA, **{key: settings[key] for key in settings if key != "build"})
    next_batch = make_batches(model, DATA, ROWS - 1, lambda num_rows: None, 0)
    optimizer = PROTOCOLS[protocol].optimizer(model, 10)
    copies = 2 if protocol == "natural" else 1
    loop = CompiledLoop(model, next_batch, optimizer, 5, as_seed(0), copies, jit_compile=True)
    graph = loop._traced().graph
    described = graph.as_graph_def()
    compiled = list(compiled_nodes(described))

    assert not without_kernel(all_nodes(described, graph.variables), TENSORFLOW)
    assert compiled
    assert not without_kernel(compiled, XLA)
