"""How many matrix multiplications a step takes, and which collectives where gathers are gathers."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import course_lib
from course_lib import start_tensorflow
from course_lib.specs.collectives import Collective


def count_matmuls(function: Callable[..., Any], *arguments: Any) -> int:
    """Returns how many matrix multiplications one device takes when TensorFlow runs a function.

    Those that only compute where a device stands in the mesh are of whole numbers, and do not count.
    """
    tf = start_tensorflow()
    from course_lib.devices import dtensor
    from course_lib.devices import graphs as devices_graphs

    with dtensor.no_combining():
        _result, graphs = devices_graphs.result_and_graphs(function, arguments)
    nodes = [node for graph in graphs for node in graph.node if node.op in ("MatMul", "_FusedMatMul")]
    floating = [node for node in nodes if tf.as_dtype(node.attr["T"].type).is_floating]
    return sum(node.device == floating[0].device for node in floating)


def with_all_gathers(function: Callable[..., Any], *arguments: Any) -> list[Collective]:
    """Returns the `collectives` of a function where TensorFlow does not run a gather as an all-reduce."""
    with patch.dict(os.environ, {"LOWER_DTENSOR_GATHER_TO_COLLECTIVE_GATHER_V2": "1"}):
        found: list[Collective] = course_lib.collectives(function, *arguments)
    return found
