"""What a plan costs each device in a training: the bytes that it holds and sends, without TensorFlow."""

from __future__ import annotations

from dataclasses import dataclass

from course_lib.models.variables import ELEMENT_BYTES
from course_lib.specs.plan import BATCH, Plan, replicated
from course_lib.specs.step_communication import StepCommunication
from lessons.lesson_05_model_and_spatial.lab_setting import Subject

_LABEL_BYTES = 8  # int64


@dataclass(frozen=True)
class Held:
    """The bytes that one device holds.

    Attributes:
        parameters: the variables of the model, those too that the optimizer does not change.
        gradients: a gradient for each variable that it changes.
        optimizer: the optimizer's own variables.
        batch: the rows of a batch with their labels.
    """

    parameters: int
    gradients: int
    optimizer: int
    batch: int


def held(subject: Subject, plan: Plan | None, batch_size: int) -> Held:
    """Returns the bytes that one device holds under a plan; alone, if there is none.

    Raises:
        CourseError: the plan does not fit the model or the batch.
    """
    plan, spec, sizes = plan or replicated(1), subject.spec, {**subject.sizes, BATCH: batch_size}
    variables = spec.bytes_on_a_device(sizes, plan)
    trained = sum(variables[name] for name, variable in spec.variables.items() if variable.trainable)
    batch = plan.of({"inputs": spec.inputs, "labels": spec.labels}, sizes).shardings
    return Held(
        parameters=sum(variables.values()),
        gradients=trained,
        optimizer=subject.slot_bytes(trained),
        batch=batch["inputs"].bytes_per_device(ELEMENT_BYTES)
        + batch["labels"].bytes_per_device(_LABEL_BYTES),
    )


def step_communication(subject: Subject, plan: Plan | None, batch_size: int) -> StepCommunication:
    """Returns what the devices exchange in a training step: nothing where there is one.

    Raises:
        CourseError: the plan does not fit the model or the batch.
    """
    if plan is None:
        return StepCommunication(())
    return subject.spec.step_collectives(plan, {**subject.sizes, BATCH: batch_size})
