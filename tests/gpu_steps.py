"""Steps of every model as TensorFlow would hand them to a GPU, found without one.

TensorFlow's Linux wheel registers its GPU kernels, and what of their operands is on the host,
whether there is a GPU or not.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import gpflow
import numpy as np
import tensorflow as tf
from tensorflow.core.framework.graph_pb2 import GraphDef
from tensorflow.core.framework.kernel_def_pb2 import KernelDef
from tensorflow.core.framework.node_def_pb2 import NodeDef
from tensorflow.core.protobuf.config_pb2 import ConfigProto
from tensorflow.python.framework import kernels, op_def_registry
from tensorflow.python.grappler import tf_optimizer
from tensorflow.python.training.saver import export_meta_graph

from gpflow_dwp.latent_variable_deep_gp import build_latent_variable_deep_gp
from gpflow_dwp.matrix_gaussian import build_matrix_gaussian_network
from gpflow_dwp.models import (
    VariationalModel,
    build_deep_gaussian_process,
    build_deep_inverse_wishart_process,
    build_deep_wishart_process,
)
from gpflow_dwp.objectives import Estimator
from gpflow_dwp.random import as_seed
from gpflow_dwp.training import PROTOCOLS
from gpflow_dwp.training._batches import make_batches
from gpflow_dwp.training.loop import CompiledLoop
from gpflow_dwp.training.protocol import ProtocolName

ROWS, CLASSES = 7, 3
X = np.random.default_rng(0).normal(size=(ROWS, 2))
REAL, LABELS = X[:, :1], np.arange(float(ROWS))[:, None] % CLASSES


class Step(NamedTuple):
    """A step to trace.

    :param model: Makes the model, in the default precision.
    :param Y: Observations.
    :param protocol: Whose optimiser it is.
    :param settings: Of the bound.
    """

    model: Callable[[], VariationalModel]
    Y: np.ndarray = REAL
    protocol: ProtocolName = "fast"
    estimator: Estimator = Estimator()


def wishart(depth: int = 2, **arguments: Any) -> Callable[[], VariationalModel]:
    arguments = {"num_inducing": 3, "output": "pseudo_targets", **arguments}
    return lambda: build_deep_wishart_process((X, REAL), depth, **arguments)


MODELS = {
    "AB": Step(wishart(posterior="AB", kernel="Matern52")),
    "whitened, sampled log ratios": Step(
        wishart(
            posterior="GW",
            whiten=True,
            kernel="Exponential",
            expected_log_ratio=False,
            stick_the_landing=False,
        )
    ),
    "regression": Step(wishart(output="regression", kernel="RationalQuadratic")),
    "latent variables": Step(wishart(latent_dim=1), estimator=Estimator(2)),
    "deep GP": Step(
        lambda: build_deep_gaussian_process((X, REAL), 2, num_inducing=3, kernel="Matern32")
    ),
    "deep inverse Wishart": Step(
        lambda: build_deep_inverse_wishart_process((X, REAL), 2, num_inducing=3, kernel="Matern12")
    ),
    "latent-variable deep GP": Step(
        lambda: build_latent_variable_deep_gp((X, REAL), "LV-GP-GP", num_inducing=3),
        protocol="natural",
        estimator=Estimator(2, doubly_reparameterized=True),
    ),
    "network": Step(lambda: build_matrix_gaussian_network((X, REAL), width=3), protocol="vmg"),
}


def make_loop(
    step: Step,
    *,
    batch_size: int | None = ROWS - 1,
    dataset: bool = False,
    jit_compile: bool = True,
) -> CompiledLoop:
    """A loop of steps, not yet traced.

    :param batch_size: None for all rows.
    :param dataset: Whether batches are those of a TensorFlow dataset.
    """
    model, data = step.model(), (X, step.Y)
    if dataset:
        tensors = tuple(tf.constant(part, gpflow.default_float()) for part in data)
        data = tf.data.Dataset.from_tensor_slices(tensors).batch(2)
    next_batch = make_batches(model, data, batch_size, lambda num_rows: None, 0)
    optimizer = PROTOCOLS[step.protocol].optimizer(model, 10)
    return CompiledLoop(
        model, next_batch, optimizer, 5, as_seed(0), step.estimator, jit_compile=jit_compile
    )


def trace(step: Step, **settings: Any) -> tuple[GraphDef, list[tf.Variable]]:
    """Trace steps of :func:`make_loop`; return their graph, and the variables that it uses."""
    loop = make_loop(step, **settings)  # holds the variables
    graph = loop._traced().graph  # type: ignore[attr-defined]
    return graph.as_graph_def(), list(graph.variables)


@functools.cache
def _kernels_of(operation: str) -> list[KernelDef]:
    return list(kernels.get_registered_kernels_for_op(operation).kernel)


def types(node: NodeDef, name: str) -> set[int]:
    """The types that an attribute names."""
    attribute = node.attr[name]
    return set(attribute.list.type) or {attribute.type}


def find_kernel(node: NodeDef, devices: tuple[str, ...]) -> KernelDef | None:
    """The kernel that a node has on the first of these kinds of devices that there is one for."""
    return next(
        (
            kernel
            for device in devices
            for kernel in _kernels_of(node.op)
            if kernel.device_type == device
            and not kernel.label
            and all(
                types(node, constraint.name) <= set(constraint.allowed_values.list.type)
                for constraint in kernel.constraint
            )
        ),
        None,
    )


def optimised_steps(loop: CompiledLoop) -> list[NodeDef]:
    """The nodes of all steps of a run, as TensorFlow's graph optimisers leave them, in one graph.

    Calls, branches and loops are inlined, equal nodes are one, and what is constant is computed.
    """
    graph = loop._traced().graph  # type: ignore[attr-defined]
    meta_graph = export_meta_graph(graph_def=graph.as_graph_def(add_shapes=True), graph=graph)
    kept = [*(output.name for output in graph.outputs), *(o.name for o in graph.control_outputs)]
    meta_graph.collection_def["train_op"].node_list.value.extend(kept)
    settings = ConfigProto()
    settings.graph_options.rewrite_options.min_graph_nodes = -1
    optimised = tf_optimizer.OptimizeGraph(settings, meta_graph)
    return [*optimised.node]


def copies_to_host(nodes: list[NodeDef]) -> Iterator[str]:
    """Name the results on a GPU that some operation takes from the host, for which that waits."""
    made = {node.name: node for node in nodes}
    on_host = {node.name: _on_host(node) for node in nodes}
    copied = set()
    for node in nodes:
        sources = [name.split(":") for name in node.input if not name.startswith("^")]
        for (name, *index), taken_from_host in zip(sources, on_host[node.name][0], strict=True):
            result = (name, int(*index))
            if taken_from_host and not on_host[name][1][result[1]] and result not in copied:
                copied.add(result)
                yield f"{made[name].op} {name}"


def _on_host(node: NodeDef) -> tuple[list[bool], list[bool]]:
    """Whether each operand is taken from the host, and each result left there."""
    kernel, operation = find_kernel(node, ("GPU", "DEFAULT")), op_def_registry.get(node.op)
    handles = (tf.resource.as_datatype_enum, tf.variant.as_datatype_enum)

    def places(arguments: Any) -> list[bool]:
        return [
            kernel is None or argument.name in kernel.host_memory_arg or kind in handles
            for argument in arguments
            for kind in _types_of(node, argument)
        ]

    return places(operation.input_arg), places(operation.output_arg)


def _types_of(node: NodeDef, argument: Any) -> list[int]:
    if argument.type_list_attr:
        return list(node.attr[argument.type_list_attr].list.type)
    kind = node.attr[argument.type_attr].type if argument.type_attr else argument.type
    return [kind] * (node.attr[argument.number_attr].i if argument.number_attr else 1)
