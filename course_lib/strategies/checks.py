"""Checks before a training: what was made outside the scope, is counted twice, or scaled twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any

from course_lib.errors import CourseError, one_of
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow

tf = start_tensorflow()

_resources = import_module("tensorflow.python.framework.auto_control_deps_utils")


def require_in_scope(strategy: Any, *owners: Any) -> None:
    """Checks that models, optimizers, metrics or variables were made in the scope of a strategy.

    Raises:
        CourseError: one of them has a variable that was made elsewhere.
    """
    for owner in owners:
        for variable in _variables(owner):
            if not strategy.extended.variable_created_in_scope(variable):
                raise CourseError(
                    _(
                        "The variable {name!r} of {owner} was made outside the scope of this {strategy}.",
                        name=variable.name,
                        owner=f"{type(owner).__name__} {getattr(owner, 'name', '')!r}",
                        strategy=type(strategy).__name__,
                    ),
                    allowed=_("models, optimizers and metrics made in the scope of the strategy"),
                    cure=_("Make it again, below `with strategy.scope():`."),
                )


def require_no_plain_updates(strategy: Any, step: Callable[..., Any], args: Sequence[Any] = ()) -> None:
    """Checks that a step, before its first run, changes no variable that all replicas share.

    The step is traced, not run. A plain variable, made outside the scope, is one for all replicas: each of
    them would change it, so that a count of steps grows by the number of replicas.

    Args:
        strategy: what runs the step.
        step: what each replica does; as `fn` in `strategy.run(fn, args)`.
        args: what it is given.

    Raises:
        CourseError: it changes such a variable.
    """
    if strategy.num_replicas_in_sync == 1:
        return

    def all_replicas(*given: Any) -> None:
        strategy.run(step, args=given)

    graph = tf.function(all_replicas).get_concrete_function(*args).graph
    for variable in _written(graph):
        if not _has_copies(strategy, variable):
            raise CourseError(
                _(
                    "The step changes {name!r}, one variable for all {count} replicas: each of them would"
                    " change it.",
                    name=variable.name,
                    count=strategy.num_replicas_in_sync,
                ),
                allowed=_("variables that were made in the scope of the strategy"),
                cure=_(
                    "Change it outside strategy.run, once a step, or make it in the scope with"
                    " aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA."
                ),
            )


def require_per_example(loss: Any) -> None:
    """Checks that a Keras loss leaves the division by the global batch to the training step.

    Raises:
        CourseError: the loss divides by itself. Keras 3 then accepts it, and a step that divides by the
            global batch as well trains with gradients that are too small.
    """
    reduction = "none" if loss.reduction is None else loss.reduction
    problem = _(
        "{loss} has the reduction {reduction!r}: it divides by the size of a replica's batch already.",
        loss=type(loss).__name__,
        reduction=reduction,
    )
    cure = _("Write for example {example}.", example='tf.keras.losses.MeanSquaredError(reduction="none")')
    one_of(reduction, ("none", "sum"), problem, cure=cure)


def _variables(owner: Any) -> Iterator[Any]:
    """Yields TensorFlow's variables; those of Keras 3 hold one each."""
    variables = owner.variables if hasattr(owner, "variables") else [owner]
    for variable in variables() if callable(variables) else variables:
        yield variable.value if isinstance(variable, tf.keras.Variable) else variable


def _has_copies(strategy: Any, variable: Any) -> bool:
    """Whether a strategy keeps the variable for its replicas, or it is a part of one that it keeps."""
    return (
        isinstance(variable, tf.distribute.DistributedValues)
        or strategy.extended.variable_created_in_scope(variable)
        or hasattr(variable, "_aggregating_container")
        or hasattr(variable.handle, "_distributed_container")
    )


def _written(graph: Any) -> Iterator[Any]:
    """Yields the variables that a graph changes, also inside loops and functions that it calls."""
    outside = {id(inside): captured for captured, inside in graph.captures}
    handles = {
        id(outside[id(resource)])
        for operation in graph.get_operations()
        for resource in _resources.get_read_write_resource_inputs(operation)[1]
        if id(resource) in outside
    }
    for variable in graph.variables:
        if id(variable.handle) in handles:
            yield variable
