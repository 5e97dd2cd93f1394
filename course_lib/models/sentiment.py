"""The sentiment MLP: a hidden layer, normalisation over the global batch, and one logit for each class."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.dtensor import create_mesh, pack
from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow
from course_lib.specs.plan import Plan

tf = start_tensorflow()
from tensorflow.experimental import dtensor  # noqa: E402

Values = dict[str, npt.NDArray[np.float32]]
Dims = tuple[int, int, int]

DEFAULT_DIMS: Dims = (1200, 48, 2)  # features, hidden units, classes
SCHEMES = ("he", "normal")
EPSILON = 1e-5  # keeps the square root of a variance of zero away from zero
MOMENTUM = (
    0.9  # how much of a moving moment stays at each step: short trainings need few batches to forget 0 and 1
)


def initial_values(seed: int = 0, scheme: str = "he", dims: Dims = DEFAULT_DIMS) -> Values:
    """Returns the first value of each variable, made on the host: the same whatever the layout.

    TensorFlow's own sharded initialisation gives other numbers under another layout, so that schemes
    could not be compared.

    Args:
        seed: of the random numbers.
        scheme: "he" draws weights from N(0, 2 / inputs of the unit), "normal" from N(0, 1).
        dims: the numbers of features, hidden units and classes.

    Returns:
        For each variable its value, `[...] global`, float32.

    Raises:
        CourseError: an unknown scheme, a seed below 0, or dims that are not three positive numbers.

    Source: He et al. 2015, https://arxiv.org/abs/1502.01852 (equation 10).
    """
    _check_initialisation(seed, scheme, dims)
    random = np.random.Generator(np.random.Philox(seed))
    values = {name: np.zeros(shape, np.float32) for name, shape in _shapes(dims).items()}
    values["moving_variance"] += 1.0
    for name in ("hidden_weight", "logits_weight"):
        num_inputs = values[name].shape[0]
        scale = np.sqrt(2.0 / num_inputs) if scheme == "he" else 1.0
        values[name] += (scale * random.standard_normal(values[name].shape)).astype(np.float32)
    return values


class MLP(tf.Module):  # type: ignore[misc, name-defined]
    """Two dense layers with batch normalisation between them, each variable laid out as a plan says.

    Training normalises with the moments of the whole global batch, on however many devices it lies.
    Evaluation normalises with moving moments, so that an example's answer does not depend on the others.

    Attributes:
        plan: the mesh and the layouts.
        dims: the numbers of features, hidden units and classes.
        origin: a digest of the values that the model was made with; it tells two models apart.
    """

    def __init__(self, values: Mapping[str, npt.NDArray[np.float32]], plan: Plan) -> None:
        """Makes the variables.

        Args:
            values: as from `initial_values`.
            plan: the layout of each of them.

        Raises:
            CourseError: a value is missing or unknown, shapes do not fit each other, or a layout does not
                fit its value.
        """
        super().__init__(name="mlp")
        self.dims = _check_values(values)
        self.plan = plan
        self.origin = _digest(values)
        self._mesh = create_mesh(plan.mesh)
        self.hidden_weight = self._variable(values, "hidden_weight")
        self.hidden_bias = self._variable(values, "hidden_bias")
        self.logits_weight = self._variable(values, "logits_weight")
        self.logits_bias = self._variable(values, "logits_bias")
        self.moving_mean = self._variable(values, "moving_mean", trainable=False)
        self.moving_variance = self._variable(values, "moving_variance", trainable=False)

    def __call__(self, inputs: Any) -> Any:
        """Returns the logits as training computes them, `[batch, classes] global`.

        Args:
            inputs: `[batch, features] global`.
        """
        logits, _moments = self.logits_and_moments(inputs)
        return logits

    def logits_and_moments(self, inputs: Any) -> tuple[Any, Any]:
        """Returns training's logits, and the mean and variance of the hidden units over the batch.

        Args:
            inputs: `[batch, features] global`.

        Returns:
            `[batch, classes] global`, and a pair of `[hidden] global`.
        """
        hidden = self._hidden(inputs)
        moments = tf.nn.moments(hidden, axes=[0])
        return self._logits(hidden, *moments), moments

    def evaluate_logits(self, inputs: Any) -> Any:
        """Returns the logits with the moving moments, `[batch, classes] global`: each row for itself.

        Args:
            inputs: `[batch, features] global`.
        """
        return self._logits(self._hidden(inputs), self.moving_mean, self.moving_variance)

    def track(self, moments: tuple[Any, Any]) -> None:
        """Moves the moving moments a little towards those of a batch.

        Args:
            moments: mean and variance, `[hidden] global` each, as from `logits_and_moments`.

        Source: https://www.tensorflow.org/api_docs/python/tf/keras/layers/BatchNormalization
        """
        for moving, batch in zip((self.moving_mean, self.moving_variance), moments, strict=True):
            moving.assign_sub((1.0 - MOMENTUM) * (moving - batch))

    def _hidden(self, inputs: Any) -> Any:
        return tf.nn.relu(tf.matmul(inputs, self.hidden_weight) + self.hidden_bias)

    def _logits(self, hidden: Any, mean: Any, variance: Any) -> Any:
        normal = tf.nn.batch_normalization(hidden, mean, variance, None, None, EPSILON)
        return tf.matmul(normal, self.logits_weight) + self.logits_bias

    def _variable(
        self, values: Mapping[str, npt.NDArray[np.float32]], name: str, trainable: bool = True
    ) -> Any:
        layout = self.plan.layouts["hidden_bias" if name.startswith("moving") else name]
        return dtensor.DVariable(pack(values[name], layout, self._mesh), trainable=trainable, name=name)


def _digest(values: Mapping[str, npt.NDArray[np.float32]]) -> str:
    digest = hashlib.sha256()
    for name in sorted(values):
        digest.update(f"{name}{values[name].shape}".encode())
        digest.update(np.ascontiguousarray(values[name]).tobytes())
    return digest.hexdigest()[:16]


def _check_initialisation(seed: int, scheme: str, dims: Dims) -> None:
    if scheme not in SCHEMES:
        raise CourseError(
            _("There are no initial values called {scheme!r}.", scheme=scheme),
            allowed=", ".join(SCHEMES),
            cure=_("Choose one of these."),
        )
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise CourseError(
            _("{seed!r} cannot be a seed.", seed=seed),
            allowed=_("whole numbers from 0"),
            cure=_("Give for example seed=0."),
        )
    if len(dims) != len(DEFAULT_DIMS) or any(not isinstance(size, int) or size < 1 for size in dims):
        raise CourseError(
            _("{dims} cannot be the sizes of the model.", dims=dims),
            allowed=_("three whole numbers from 1: features, hidden units, classes"),
            cure=_("The lessons use (1200, 48, 2)."),
        )


def _check_values(values: Mapping[str, npt.NDArray[np.float32]]) -> Dims:
    given = {name: np.shape(value) for name, value in values.items()}
    sizes = (*given.get("hidden_weight", ()), *given.get("logits_bias", ()))
    dims: Dims = sizes if len(sizes) == len(DEFAULT_DIMS) else DEFAULT_DIMS
    wanted = _shapes(dims)
    for name in sorted({*wanted, *given}):
        if given.get(name) != wanted.get(name):
            raise CourseError(
                _(
                    "The value of {name!r} has the shape {given}; the model wants {wanted}.",
                    name=name,
                    given=given.get(name),
                    wanted=wanted.get(name),
                ),
                allowed=", ".join(f"{name} {shape}" for name, shape in wanted.items()),
                cure=_("Take the values from initial_values(...)."),
            )
    return dims


def _shapes(dims: Dims) -> dict[str, tuple[int, ...]]:
    num_features, num_hidden, num_classes = dims
    return {
        "hidden_weight": (num_features, num_hidden),
        "hidden_bias": (num_hidden,),
        "logits_weight": (num_hidden, num_classes),
        "logits_bias": (num_classes,),
        "moving_mean": (num_hidden,),
        "moving_variance": (num_hidden,),
    }
