"""What a model says of its variables, once: their axes by name, their initial values, who changes them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from course_lib.specs.plan import BATCH, Axes, Plan
from course_lib.specs.step_communication import StepCommunication, step_collectives

Values = dict[str, npt.NDArray[np.float32]]
Shape = tuple[int, ...]
Draw = Callable[[np.random.Generator, Shape], npt.NDArray[np.float64]]

ZEROS, ONES, RANDOM = "zeros", "ones", "random"
ELEMENT_BYTES = 4  # every variable is float32


def _he(random: np.random.Generator, shape: Shape) -> npt.NDArray[np.float64]:
    return math.sqrt(2.0 / shape[0]) * random.standard_normal(shape)


def _normal(random: np.random.Generator, shape: Shape) -> npt.NDArray[np.float64]:
    return random.standard_normal(shape)


# Source: He et al. 2015, https://arxiv.org/abs/1502.01852 (equation 10).
SCHEMES: Mapping[str, Draw] = MappingProxyType({"he": _he, "normal": _normal})


@dataclass(frozen=True)
class VariableSpec:
    """One variable of a model.

    Attributes:
        axes: the names of its axes, such as `("features", "hidden")`.
        initial: "zeros", "ones", or "random": drawn by the scheme that the reader chooses.
        trainable: whether the optimizer changes it; the others are changed by the model.
    """

    axes: Axes
    initial: str = ZEROS
    trainable: bool = True


@dataclass(frozen=True)
class ModelSpec:
    """The tensors of a model by their named axes; layouts, shapes, bytes and checks follow from them.

    Attributes:
        variables: the variables by name, in the order in which random ones are drawn.
        inputs: the axes of a batch of inputs, the batch first.
        layers: the axes that dense layers join, the inputs' first and the classes last.
        normalised: the axes with batch normalisation behind them.
        labels: the axes of a batch of labels.
    """

    variables: Mapping[str, VariableSpec]
    inputs: Axes
    layers: Axes
    normalised: Axes = ()
    labels: Axes = (BATCH,)

    @property
    def tensors(self) -> dict[str, Axes]:
        """The axes of everything that a plan lays out."""
        variables = {name: variable.axes for name, variable in self.variables.items()}
        return {"inputs": self.inputs, "labels": self.labels, **variables}

    @property
    def axes(self) -> Axes:
        """The axes of the variables, in the order in which they are declared."""
        return tuple(dict.fromkeys(axis for variable in self.variables.values() for axis in variable.axes))

    def step_collectives(self, plan: Plan, sizes: Mapping[str, int]) -> StepCommunication:
        """Returns what the devices exchange to train on one batch.

        Args:
            plan: any plan that the model can be trained with.
            sizes: the size of each axis, the batch's too.

        Raises:
            CourseError: as `specs.step_communication.step_collectives`.
        """
        return step_collectives(plan, sizes, self.layers, self.normalised)

    def shapes(self, sizes: Mapping[str, int]) -> dict[str, Shape]:
        """Returns the global shape of each variable, given the size of each axis."""
        return {
            name: tuple(sizes[axis] for axis in variable.axes) for name, variable in self.variables.items()
        }

    def bytes_on_a_device(self, sizes: Mapping[str, int], plan: Plan | None = None) -> dict[str, int]:
        """Returns how many bytes of each variable one device holds, under a plan or alone.

        Raises:
            CourseError: an axis does not divide among the places of its mesh dimension.
        """
        shapes = self.shapes(sizes)
        if plan is not None:
            shapes = {
                name: plan.layout(variable.axes).local_shape(shapes[name])
                for name, variable in self.variables.items()
            }
        return {name: ELEMENT_BYTES * math.prod(shape) for name, shape in shapes.items()}

    def initial_values(self, sizes: Mapping[str, int], seed: int, scheme: str) -> Values:
        """Returns the first value of each variable, made on the host: the same whatever the layout.

        TensorFlow's own sharded initialisation gives other numbers under another layout, so that plans
        could not be compared.

        Args:
            sizes: the size of each axis.
            seed: of the random numbers.
            scheme: one of `SCHEMES`, for the variables that are drawn at random.
        """
        random = np.random.Generator(np.random.Philox(seed))
        draws: dict[str, Draw] = {
            ZEROS: lambda _random, shape: np.zeros(shape),
            ONES: lambda _random, shape: np.ones(shape),
            RANDOM: SCHEMES[scheme],
        }
        return {
            name: draws[self.variables[name].initial](random, shape).astype(np.float32)
            for name, shape in self.shapes(sizes).items()
        }

    def sizes(self, values: Mapping[str, npt.ArrayLike]) -> dict[str, int]:
        """Returns the size of each axis, taken from the shapes of the variables' values."""
        return {
            axis: size
            for name, variable in self.variables.items()
            for axis, size in zip(variable.axes, np.shape(values[name]), strict=True)
        }
