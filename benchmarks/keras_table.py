"""What each Keras distributes, as a table: each case of `benchmarks/keras_support` in its own process."""

from __future__ import annotations

import platform
import sys
from typing import Any

from benchmarks.cases import Case, Outcome, run
from benchmarks.tables import BUILD, SCRIPTS, measured, required, versions

COLUMNS = ("tf_keras", "keras_tensorflow", "keras_jax")
ROWS = (
    "arguments",
    "patterns",
    "unmatched_pattern",
    "equal_seeds",
    "training_step",
    "training_step_uncombined",
    "training_step_apart",
    "fit_arrays",
    "fit_dataset",
    "fit_dataset_uncombined",
    "evaluate_arrays",
    "evaluate_dataset",
    "predict_arrays",
    "predict_dataset",
    "weights_h5",
    "weights_checkpoint",
)
ONLY_TF_KERAS = (  # what mends a fault of DTensor's, and TensorFlow's own files
    "training_step_uncombined",
    "training_step_apart",
    "fit_dataset_uncombined",
    "weights_checkpoint",
)
JAX_PYTHON = BUILD / "jax-venv" / "bin" / "python"
GROUP_SIZE = "DTENSOR_ALLREDUCE_COMBINE_OPTIMIZATION_GROUP_SIZE"
PACKAGES = ("tensorflow", "tf-keras", "keras", "jax")


def outcome(column: str, row: str) -> Outcome | None:
    """Returns what became of a case, one of `COLUMNS` and of `ROWS`; None where it is not asked."""
    if column == "tf_keras":
        name = row.removesuffix("_uncombined")
        environment = {} if name == row else {GROUP_SIZE: "1"}
        return run(Case(SCRIPTS / "tf_keras_layouts.py", (name,), environment=environment))
    if row in ONLY_TF_KERAS:
        return None
    backend = column.removeprefix("keras_")
    python = str(JAX_PYTHON) if backend == "jax" else sys.executable
    return run(Case(SCRIPTS / "keras_3.py", (row,), python, {"KERAS_BACKEND": backend}))


def measure() -> dict[str, Any]:
    """Returns what became of every case.

    Raises:
        CourseError: there is no environment with JAX and Keras.
    """
    there = versions(required(JAX_PYTHON, "jax"), PACKAGES)
    here = versions(sys.executable, PACKAGES)
    how = {
        "command": "make jax; .venv/bin/python -m benchmarks.results keras_layouts-support",
        "python": platform.python_version(),
        "devices": "8",
        **here,
        **{f"{name} beside JAX" if name in here else name: version for name, version in there.items()},
    }
    return {"how": how, "support": measured(ROWS, COLUMNS, outcome)}
