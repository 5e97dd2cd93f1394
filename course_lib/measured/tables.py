"""The table of what works: a row for each thing asked, a column for each who was asked."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from course_lib.i18n import _
from course_lib.measured.files import Record
from course_lib.pictures import text

_INNER_WORD = re.compile(r"(?<=[a-z])(?=[A-Z][a-z]{3})")


@dataclass(frozen=True)
class Table:
    """A table with the titles of the reader's language. It shows itself as text and as HTML."""

    columns: tuple[str, ...]
    rows: Mapping[str, tuple[str, ...]]

    def __repr__(self) -> str:
        lines = [("", *self.columns), *((name, *texts) for name, texts in self.rows.items())]
        return "\n".join(line.removeprefix("  ") for line in text.table(lines))

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in ("", *self.columns))
        body = "".join(_html_row(name, texts) for name, texts in self.rows.items())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def table(cells: Mapping[str, Mapping[str, Record]], columns: Sequence[str] = ()) -> Table:
    """Returns the table in the reader's language, with a dash where nothing was asked.

    Args:
        cells: what became of each case, by what was asked, then by who was: the `support` that was measured.
            The first row has every column.
        columns: which of them to show, if not all.
    """
    columns = columns or list(next(iter(cells.values())))
    rows = {
        title(row): tuple(cell_text(asked[column]) if column in asked else "–" for column in columns)
        for row, asked in cells.items()
    }
    return Table(tuple(map(title, columns)), rows)


def cell_text(cell: Record) -> str:
    """Returns what became of a case in the reader's language; an error with its type.

    Its verdict is "equal" (distributed, with the numbers of one device), "different" (distributed, with other
    numbers), "no-op" (no error, and not split as was asked), "accepted" (a mistake that raised no error),
    "asynchronous" (distributed, in no fixed order, and the loss fell), "misreported" (trained as on one
    device, with another loss told), "error", "crash" or "timeout".
    """
    if cell.verdict == "error":
        return _("error: {kind}", kind=cell.message.partition(":")[0])
    texts = {
        "equal": _("equals one device") if "difference" in cell else _("works"),
        "different": _("wrong values, no error"),
        "no-op": _("not split, no error"),
        "accepted": _("accepted, no error"),
        "misreported": _("trains as one device, reports a wrong loss"),
        "asynchronous": _("asynchronous: the loss falls"),
        "crash": _("ends the process"),
        "timeout": _("does not end"),
    }
    return texts[cell.verdict]


def title(name: str) -> str:
    """Returns what a row or a column is called in the reader's language."""
    return {
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
        "training_step_apart": _("a step that applies the gradients outside that function"),
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
        "one_device": "OneDeviceStrategy",
        "mirrored": "MirroredStrategy",
        "central_storage": "CentralStorageStrategy",
        "multi_worker": "MultiWorkerMirroredStrategy",
        "parameter_server": "ParameterServerStrategy",
    }.get(name, name)


def breakable(text: str) -> str:
    """Returns a text as HTML whose long names may break between their words.

    >>> breakable("error: NotImplementedError")
    'error: Not<wbr>Implemented<wbr>Error'
    """
    return _INNER_WORD.sub("<wbr>", html.escape(text))


def _html_row(name: str, texts: tuple[str, ...]) -> str:
    cells = "".join(f"<td>{breakable(text)}</td>" for text in texts)
    return f'<tr><th scope="row">{breakable(name)}</th>{cells}</tr>'
