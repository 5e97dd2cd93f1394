"""What tf_keras (Keras 2) distributes over eight virtual devices with DTensor's layouts.

    .venv/bin/python benchmarks/keras_support/tf_keras_layouts.py fit

It needs tensorflow and tf-keras, and nothing of the course. Each case prints whether the variables are
distributed, and how far its numbers are from those of the same layers without layouts, on one device.

Source: https://www.tensorflow.org/tutorials/distribute/dtensor_keras_tutorial
"""

from __future__ import annotations

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tf_keras
from tensorflow.experimental import dtensor

NUM_DEVICES, DIMS = 8, {"batch": 4, "model": 2}
WHOLE = dtensor.UNSHARDED
RIGHT = {
    "hidden.kernel": (WHOLE, "model"),
    "hidden.bias": ("model",),
    "logits.kernel": ("model", WHOLE),
}
MISSPELT = {"hiden.kernel": (WHOLE, "model")}
Dense = tf_keras.layers.Dense


def main() -> None:
    """Runs the case that the command line names."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * NUM_DEVICES)
    answer(CASES)


def arguments() -> Mapping[str, Any]:
    """Gives layers their layouts as arguments, and compares the logits."""
    return _compared(_logits, _with_arguments)


def patterns() -> Mapping[str, Any]:
    """Lays out a model by the names of its variables, and compares the logits."""
    return _compared(_logits)


def training_step() -> Mapping[str, Any]:
    """Trains with a step of one's own."""
    return _compared(_own_steps)


def fit() -> Mapping[str, Any]:
    """Trains with `fit`."""
    return _compared(lambda model: [_fitted(model).history["loss"], *_values(model)])


def data_parallel() -> Mapping[str, Any]:
    """Trains with `fit` where the batch alone is split: all variables are whole on each device."""
    return _compared(
        lambda model: [_fitted(model).history["loss"], *_values(model)], lambda: _mapped({}), whole=True
    )


def evaluate() -> Mapping[str, Any]:
    """Evaluates and predicts."""
    features, labels = examples()

    def measured(model: Any) -> list[Any]:
        _compiled(model)
        return [model.evaluate(features, labels, verbose=0), model.predict(features, verbose=0)]

    return _compared(measured)


def unmatched_pattern() -> Mapping[str, Any]:
    """Misspells a pattern, so that no variable has such a name."""
    model = _mapped(MISSPELT)
    return {"distributed": any(_is_split(variable) for variable in model.weights)}


def equal_seeds() -> Mapping[str, Any]:
    """Draws initial values twice from one seed, under two layouts."""
    split, whole = _mapped(RIGHT, values=None), _mapped({}, values=None)
    return {
        "distributed": _is_split(split.weights[0]),
        "difference": difference(_values(split), _values(whole)),
    }


def checkpoint() -> Mapping[str, Any]:
    """Saves the weights of a distributed model and loads them into one that is not."""
    model = _mapped(RIGHT)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.weights.h5"
        model.save_weights(path)
        other = _model(values=None)
        other.load_weights(path)
    return {
        "distributed": _is_split(model.weights[0]),
        "difference": difference(_values(other), first_values()),
    }


CASES: dict[str, Callable[[], Mapping[str, Any]]] = {
    function.__name__: function
    for function in (
        arguments,
        patterns,
        training_step,
        fit,
        data_parallel,
        evaluate,
        unmatched_pattern,
        equal_seeds,
        checkpoint,
    )
}


def _compared(
    found: Callable[[Any], list[Any]], make: Callable[[], Any] | None = None, *, whole: bool = False
) -> Mapping[str, Any]:
    """Returns how far what a distributed model gives is from what the same layers give on one device.

    Args:
        found: what is compared.
        make: makes the distributed model; by default with all its layouts by name.
        whole: whether its variables are to be whole on each device.
    """
    model = _mapped(RIGHT) if make is None else make()
    is_distributed = whole or _is_split(model.weights[0])
    return {"distributed": is_distributed, "difference": difference(found(model), found(_model()))}


def _mesh() -> Any:
    devices = [f"CPU:{device_id}" for device_id in range(NUM_DEVICES)]
    return dtensor.create_mesh(list(DIMS.items()), devices=devices)


def _mapped(layouts: Mapping[str, tuple[str, ...]], values: Any = ...) -> Any:
    """Returns the model under a LayoutMap; without values it draws its own."""
    tf_keras.utils.set_random_seed(1)
    mesh = _mesh()
    layout_map = tf_keras.dtensor.experimental.LayoutMap(mesh=mesh)
    for pattern, entries in layouts.items():
        layout_map[pattern] = dtensor.Layout(list(entries), mesh)
    with layout_map.scope():
        return _model(values)


def _model(values: Any = ..., **layouts: Any) -> Any:
    """Returns the model with the first values that every case starts from."""
    hidden = {name: layouts[f"hidden_{name}"] for name in ("kernel_layout", "bias_layout") if layouts}
    logits = {name: layouts[f"logits_{name}"] for name in ("kernel_layout", "bias_layout") if layouts}
