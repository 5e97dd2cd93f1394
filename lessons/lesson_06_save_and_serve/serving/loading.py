"""Exports that were loaded: asked for a list of texts, they give probabilities."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow
from lessons.lesson_06_save_and_serve.serving.exporting import SIGNATURE
from lessons.lesson_06_save_and_serve.serving.module import PROBABILITIES, ROWS, TEXTS

tf = start_tensorflow()

_TEXTS_AT_A_TIME = 2_048  # their rows are dense


class Served:
    """A loaded export; calling it with texts gives probabilities.

    Attributes:
        path: where it was loaded from.
        module: what TensorFlow made of it: plain variables and functions, none of this library's classes.
        signature: the function that a server calls, `signature(texts=...)`.
        of_rows: the same for rows, `of_rows(rows=...)`; a DTensor is answered by the devices of its mesh.
    """

    def __init__(self, path: Path, module: Any) -> None:
        self.path, self.module = path, module
        self.signature, self.of_rows = module.signatures[SIGNATURE], module.signatures.get(ROWS)

    def __call__(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Returns the probability of each class for each text, `[texts, classes] global`.

        Raises:
            CourseError: the texts are not a list with at least one text, all of them strings.
        """
        asked = require_texts(texts)
        parts = [
            self.signature(**{TEXTS: tf.constant(asked[at : at + _TEXTS_AT_A_TIME])})[PROBABILITIES]
            for at in range(0, len(asked), _TEXTS_AT_A_TIME)
        ]
        return np.concatenate([np.asarray(part) for part in parts])


def load(path: str | os.PathLike[str]) -> Served:
    """Returns the export in a folder.

    Raises:
        CourseError: there is none, it is damaged, or it takes something else than texts.
    """
    folder = Path(path)
    try:
        module = tf.saved_model.load(str(folder))
        signature = module.signatures[SIGNATURE]
    except (OSError, ValueError, LookupError, tf.errors.OpError) as error:
        raise _no_export(folder, type(error).__name__) from error
    _given, named = signature.structured_input_signature
    if set(named) != {TEXTS} or set(signature.structured_outputs) != {PROBABILITIES}:
        raise _no_export(folder, _("its signature takes {names}", names=", ".join(named)))
    return Served(folder, module)


def require_texts(texts: Sequence[str]) -> list[str]:
    """Returns the texts as a list.

    Raises:
        CourseError: they are not a list with at least one text, or one of them is no string that UTF-8 can
            hold.
    """
    asked = list(texts) if isinstance(texts, (Sequence, np.ndarray)) and not isinstance(texts, str) else []
    if not asked:
        raise _no_texts(_("{texts!r} is not a list of texts.", texts=texts))
    for at, text in enumerate(asked):
        if not isinstance(text, str) or not _encodable(text):
            raise _no_texts(
                _("In place {at} of the list stands {text!r}, which is no text.", at=at, text=text)
            )
    return asked


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a pair of surrogates
        return False
    return True


def _no_texts(problem: str) -> CourseError:
    return CourseError(
        problem,
        allowed=_("a list with at least one string"),
        cure=_('Put even a single text into a list: served(["A fine film."]).'),
    )


def _no_export(folder: Path, reason: str) -> CourseError:
    return CourseError(
        _("There is no export of a text classifier in {path} ({reason}).", path=folder, reason=reason),
        allowed=_("a folder that serving.export has written"),
        cure=_("Export the model again, to a new folder."),
    )
