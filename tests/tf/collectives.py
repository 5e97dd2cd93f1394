"""The collectives that TensorFlow really inserts, read from the graphs that it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow.python.eager import context  # there is no public way to the graphs that ran

from course_lib.runtime import start_tensorflow

tf = start_tensorflow()

SCOPE = "counted"


def count_collectives(function: Callable[..., Any], *arguments: Any) -> int:
    """Returns in how many collectives device 0 takes part when `function` runs, compiled anew.

    What other tests left running is recorded too; a scope of its own tells this function's graphs from them.
    """

    @tf.function
    def scoped(*arguments: Any) -> Any:
        with tf.name_scope(SCOPE):
            return function(*arguments)

    context.async_wait()
    context.enable_run_metadata()
    try:
        scoped(*arguments)
        context.async_wait()
        graphs = [each.post_optimization_graph for each in context.export_run_metadata().function_graphs]
    finally:
        context.disable_run_metadata()
    ours = [graph.node for graph in graphs if any(SCOPE in node.name for node in graph.node)]
    return sum(
        node.op.startswith("Collective") and node.device.endswith(":0") for nodes in ours for node in nodes
    )
