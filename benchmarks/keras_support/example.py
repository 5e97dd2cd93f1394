"""What every case trains: two dense layers, their first values, the batches, and the answer of a case.

`Subject` holds the cases that both Keras have; the script of each adds its own.
"""

from __future__ import annotations

import json
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

BATCH_SIZE, FEATURES, HIDDEN, CLASSES, STEPS = 16, 20, 48, 2, 20
LEARNING_RATE = 1e-2
NUM_DEVICES, DIMS = 8, {"batch": 4, "model": 2}
SHAPES = ((FEATURES, HIDDEN), (HIDDEN,), (HIDDEN, CLASSES), (CLASSES,))
SHARDS = {  # what a device holds of each shape, where `model` splits the hidden units in two
    (FEATURES, HIDDEN): (FEATURES, HIDDEN // 2),
    (HIDDEN,): (HIDDEN // 2,),
    (HIDDEN, CLASSES): (HIDDEN // 2, CLASSES),
    (CLASSES,): (CLASSES,),
}
Finding = Mapping[str, Any]
Held = list[tuple[tuple[int, ...], tuple[int, ...]]]  # the shape of each variable, and that of its first part
Layouts = Mapping[str, tuple[str | None, ...]]


def first_values() -> list[np.ndarray]:
    """Returns equal values for equal shapes, whichever Keras they go to."""
    random = np.random.default_rng(3)
    return [random.normal(0, 0.3, shape).astype(np.float32) for shape in SHAPES]


def examples() -> tuple[np.ndarray, np.ndarray]:
    """Returns `[examples, features]` and `[examples]`: a batch for each step, none like another."""
    random = np.random.default_rng(5)
    features = random.random((STEPS * BATCH_SIZE, FEATURES), np.float32)
    return features, (features.sum(axis=1) > FEATURES / 2).astype(np.int64)


def batches() -> list[tuple[np.ndarray, np.ndarray]]:
    """Returns the examples batch by batch."""
    features, labels = (np.split(array, STEPS) for array in examples())
    return list(zip(features, labels, strict=True))


def layers(keras: Any, **options: Mapping[str, Any]) -> list[Any]:
    """Returns the layers of the model, of either Keras; options by the name of their layer."""
    dense = keras.layers.Dense
    return [
        keras.Input((FEATURES,)),
        dense(HIDDEN, activation="relu", name="hidden", **options.get("hidden", {})),
        dense(CLASSES, name="logits", **options.get("logits", {})),
    ]


def difference(ours: Any, theirs: Any) -> float:
    """Returns the largest difference between numbers in the same place."""
    pairs = zip(ours, theirs, strict=True)
    return max(float(np.max(np.abs(np.asarray(one) - np.asarray(other)))) for one, other in pairs)


def is_as_asked(held: Held) -> bool:
    """Returns whether a device holds of each variable, and of each slot, what the layouts say."""
    return all(local_shape == SHARDS[shape] for shape, local_shape in held if shape)


def answer(cases: Mapping[str, Callable[[], Finding]]) -> None:
    """Runs the case that the command line names, in one word or more, and prints what it found."""
    name = " ".join(sys.argv[1:])
    if name not in cases:
        sys.exit(f"Name one of these cases: {', '.join(cases)}")
    print(json.dumps(cases[name]()))


class Subject(ABC):
    """A Keras, and the cases of which each says what it distributes.

    A case finds whether the variables, and the slots of their optimizer, are split as was asked, and how far
    its numbers are from those of the same layers on one device.

    Args:
        keras: the package.
        right: layouts by patterns of names, which split the hidden units.
        misspelt: the same with a name that no variable has.
    """

    steps: Mapping[str, int] = {}  # how many batches of a data set to take, where Keras must be told

    def __init__(self, keras: Any, right: Layouts, misspelt: Layouts) -> None:
        self.keras, self.right, self.misspelt = keras, right, misspelt

    def answer(self) -> None:
        """Runs the case that the command line names, one of the methods, and prints what it found."""
        print(json.dumps(getattr(self, sys.argv[1])()))

    @abstractmethod
    def model(self, layouts: Layouts | None = None, *, drawn: bool = False) -> Any:
        """Returns the model with `first_values`, or with those that Keras draws from seed 1.

        Args:
            layouts: by patterns of names; None for one device.
            drawn: whether Keras draws the values.
        """

    @abstractmethod
    def dataset(self, model: Any) -> Any:
        """Returns the examples batch by batch, as a model like this one takes them."""

    @abstractmethod
    def local_shape(self, variable: Any) -> tuple[int, ...]:
        """Returns the shape of what the first device holds of a variable."""

    def values(self, model: Any) -> list[np.ndarray]:
        """Returns the variables of a model, `[...] global` each."""
        values: list[np.ndarray] = model.get_weights()
        return values

    def compiled(self, model: Any, **options: Any) -> Any:
        """Returns the model with Adam and a loss; options for the optimizer."""
        loss = self.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        adam = self.keras.optimizers.Adam(LEARNING_RATE, **options)
        model.compile(adam, loss, metrics=["accuracy"])
        return model

    def held(self, model: Any) -> Held:
        """Returns what the first device holds of each variable of a model and of its optimizer."""
        optimizer = getattr(model, "optimizer", None)
        variables = [*model.weights, *(optimizer.variables if optimizer else ())]
        return [(tuple(variable.shape), self.local_shape(variable)) for variable in variables]

    def compared(self, work: Callable[[Any], list[Any]], model: Any = None) -> Finding:
        """Returns how far what a distributed model gives is from what the same layers give on one device."""
        model = self.model(self.right) if model is None else model
        ours = work(model)
        return {
            "distributed": is_as_asked(self.held(model)),
            "difference": difference(ours, work(self.model())),
        }

    def unmatched_pattern(self) -> Finding:
        """Misspells a pattern, so that no variable has such a name."""
        self.model(self.misspelt)
        return {"mistaken": True}

    def equal_seeds(self) -> Finding:
        """Draws initial values from one seed: split, whole on a mesh, and on one device."""
        split, whole, alone = (self.model(each, drawn=True) for each in (self.right, self.misspelt, None))
        differences = [difference(self.values(model), self.values(alone)) for model in (split, whole)]
        return {"distributed": is_as_asked(self.held(split)), "difference": max(differences)}

    def fit_arrays(self) -> Finding:
        """Trains with `fit` on NumPy arrays."""
        features, labels = examples()
        return self.compared(lambda model: self._fitted(model, features, labels, batch_size=BATCH_SIZE))

    def fit_dataset(self) -> Finding:
        """Trains with `fit` on a data set."""
        steps = {"steps_per_epoch": STEPS} if self.steps else {}
        return self.compared(lambda model: self._fitted(model, self.dataset(model), **steps))

    def evaluate_arrays(self) -> Finding:
        """Evaluates on NumPy arrays."""
        options = {"batch_size": BATCH_SIZE, "verbose": 0}
        return self.compared(lambda model: [self.compiled(model).evaluate(*examples(), **options)])

    def evaluate_dataset(self) -> Finding:
        """Evaluates on a data set."""
        return self.compared(
            lambda model: [self.compiled(model).evaluate(self.dataset(model), verbose=0, **self.steps)]
        )

    def predict_arrays(self) -> Finding:
        """Predicts on NumPy arrays."""
        features, _labels = examples()
        return self.compared(lambda model: [model.predict(features, batch_size=BATCH_SIZE, verbose=0)])

    def predict_dataset(self) -> Finding:
        """Predicts on a data set."""
        return self.compared(lambda model: [model.predict(self.dataset(model), verbose=0, **self.steps)])

    def weights_h5(self) -> Finding:
        """Saves the weights of a distributed model as HDF5 and loads them into one that is not."""
        return self.saved_and_loaded("model.weights.h5")

    def saved_and_loaded(self, name: str) -> Finding:
        """Saves the weights of a distributed model, and returns how far they are in one that loads them."""
        model, other = self.model(self.right), self.model(drawn=True)
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / name)
            model.save_weights(path)
            other.load_weights(path)
        return {
            "distributed": is_as_asked(self.held(model)),
            "difference": difference(self.values(other), first_values()),
        }

    def _fitted(self, model: Any, *data: Any, **options: Any) -> list[Any]:
        history = self.compiled(model).fit(*data, shuffle=False, verbose=0, **options)
        return [history.history["loss"], *self.values(model)]
