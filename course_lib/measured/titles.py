"""What runs, schemes, exports, rows and columns of the measurements are called in the reader's language."""

from __future__ import annotations

from course_lib.i18n import _


def title(name: str) -> str:
    """Returns what something is called; its own name where it has no other."""
    return _titles().get(name, name)


def _titles() -> dict[str, str]:
    return {
        # trainings from several seeds
        "tutorial": _("TensorFlow's tutorial"),
        "he": _("He's initial values"),
        "unit": _("unit rows"),
        "ours": _("unit rows, He's initial values"),
        "adam": _("Adam"),
        # schemes, and their meshes
        "one": _("one device"),
        "data": _("data parallel"),
        "model": _("model parallel"),
        "spatial": _("spatial parallel"),
        "data mesh": _("data parallel, mesh 8"),
        "model mesh": _("model parallel, mesh 4 × 2"),
        "spatial mesh": _("spatial parallel, mesh 2 × 2 × 2"),
        # a trained model and its exports
        "trained": _("trained, on its mesh"),
        "restored": _("restored on one device, then exported"),
        "shards": _("exported straight from its shards"),
        # what each Keras distributes
        "tf_keras": _("tf_keras with DTensor"),
        "keras_tensorflow": _("Keras 3 on TensorFlow"),
        "keras_jax": _("Keras 3 on JAX"),
        "arguments": _("layouts as arguments of layers"),
        "patterns": _("layouts by patterns of names"),
        "unmatched_pattern": _("a pattern that fits no name"),
        "equal_seeds": _("initial values from one seed"),
        "training_step": _("a step of one's own, in one function"),
        "training_step_uncombined": _("such a step, all-reduces not combined"),
        "training_step_apart": _("a step that applies the gradients outside the function"),
        "fit_arrays": _("fit, arrays"),
        "fit_dataset": _("fit, data set"),
        "fit_dataset_uncombined": _("fit, data set, all-reduces not combined"),
        "evaluate_arrays": _("evaluate, arrays"),
        "evaluate_dataset": _("evaluate, data set"),
        "predict_arrays": _("predict, arrays"),
        "predict_dataset": _("predict, data set"),
        "weights_h5": _("weights saved (.h5), loaded on one device"),
        "weights_checkpoint": _("weights saved (checkpoint), loaded on one device"),
        # which strategy works with which API
        "fit_keras_3": _("fit, Keras 3"),
        "fit_tf_keras": _("fit, tf_keras"),
        "loop_keras_3": _("custom loop, Keras 3"),
        "loop_tf_keras": _("custom loop, tf_keras"),
        "estimator": _("Estimator, TensorFlow 2.15"),
        "default": _("default strategy"),
        "one_device": "OneDeviceStrategy",
        "mirrored": "MirroredStrategy",
        "central_storage": "CentralStorageStrategy",
        "multi_worker": "MultiWorkerMirroredStrategy",
        "parameter_server": "ParameterServerStrategy",
        "tpu": "TPUStrategy",
    }
