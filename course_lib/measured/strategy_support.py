"""Which strategy of tf.distribute works with which API, as `make results` found it."""

from __future__ import annotations

from course_lib.i18n import _
from course_lib.measured import support
from course_lib.measured.support import Support, Table

NAME = "09_strategies"
COLUMNS = ("fit_keras_3", "fit_tf_keras", "loop_keras_3", "loop_tf_keras", "estimator")
ROWS = (
    "default",
    "one_device",
    "mirrored",
    "central_storage",
    "multi_worker",
    "parameter_server",
    "tpu",
)
WITH_ESTIMATOR = ("default", "one_device", "mirrored", "central_storage")  # in one process


def recorded() -> Support | None:
    """Returns what was recorded; None where nothing was."""
    return support.recorded(NAME)


def is_asked(column: str, row: str) -> bool:
    """Returns whether this API was tried under this strategy."""
    return column != "estimator" or row in WITH_ESTIMATOR


def table(found: Support) -> Table:
    """Returns the table in the reader's language."""
    rows = {row: row_title(row) for row in ROWS}
    return support.table(found, rows, {column: column_title(column) for column in COLUMNS})


def errors(found: Support) -> list[tuple[str, str, str]]:
    """Returns each error in the reader's language: strategy, API and TensorFlow's own message."""
    return [
        (row_title(row), column_title(column), cell.message)
        for row, cells in found.cells.items()
        for column, cell in cells.items()
        if cell.verdict == support.ERROR
    ]


def column_title(column: str) -> str:
    """Returns the title of a column in the reader's language."""
    titles = {
        "fit_keras_3": _("fit, Keras 3"),
        "fit_tf_keras": _("fit, tf_keras"),
        "loop_keras_3": _("custom loop, Keras 3"),
        "loop_tf_keras": _("custom loop, tf_keras"),
        "estimator": _("Estimator, TensorFlow 2.15"),
    }
    return titles[column]


def row_title(row: str) -> str:
    """Returns the title of a row: the strategy's class, or what the reader's language calls it."""
    titles = {
        "default": _("default strategy"),
        "one_device": "OneDeviceStrategy",
        "mirrored": "MirroredStrategy",
        "central_storage": "CentralStorageStrategy",
        "multi_worker": "MultiWorkerMirroredStrategy",
        "parameter_server": "ParameterServerStrategy",
        "tpu": "TPUStrategy",
    }
    return titles[row]
