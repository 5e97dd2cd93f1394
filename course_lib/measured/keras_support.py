"""What each Keras distributes over eight virtual devices, as `make results` found it."""

from __future__ import annotations

from course_lib.i18n import _
from course_lib.measured import support
from course_lib.measured.support import Support, Table

NAME = "08_keras"
COLUMNS = ("tf_keras", "tf_keras_uncombined", "keras_tensorflow", "keras_jax")
ROWS = (
    "arguments",
    "patterns",
    "unmatched_pattern",
    "equal_seeds",
    "training_step",
    "fit_arrays",
    "fit_dataset",
    "evaluate",
    "predict",
    "weights",
)


def recorded() -> Support | None:
    """Returns what was recorded; None where nothing was."""
    return support.recorded(NAME)


def table(found: Support) -> Table:
    """Returns the table in the reader's language."""
    rows = {row: row_title(row) for row in ROWS}
    return support.table(found, rows, {column: column_title(column) for column in COLUMNS})


def column_title(column: str) -> str:
    """Returns the title of a column in the reader's language."""
    titles = {
        "tf_keras": _("tf_keras with DTensor"),
        "tf_keras_uncombined": _("the same, all-reduces not combined"),
        "keras_tensorflow": _("Keras 3 on TensorFlow"),
        "keras_jax": _("Keras 3 on JAX"),
    }
    return titles[column]


def row_title(row: str) -> str:
    """Returns the title of a row in the reader's language."""
    titles = {
        "arguments": _("layouts as arguments of layers"),
        "patterns": _("layouts by patterns of names"),
        "unmatched_pattern": _("a pattern that fits no name"),
        "equal_seeds": _("initial values from one seed, in any layout"),
        "training_step": _("a compiled training step of one's own"),
        "fit_arrays": _("fit, arrays"),
        "fit_dataset": _("fit, data set (DTensorDataset)"),
        "evaluate": _("evaluate, data set (DTensorDataset)"),
        "predict": _("predict, arrays"),
        "weights": _("weights saved, and loaded on one device"),
    }
    return titles[row]
