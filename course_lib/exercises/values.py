"""Values as readers see them: the same text and the same number on every machine."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np

_MOST_ITEMS = 12
_EXACT_BELOW = 2**53  # from here on every float is whole
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def settled(value: Any) -> Any:
    """Returns a value as plain Python, its broken numbers rounded to three significant digits.

    NumPy's numbers become Python's; arrays, tensors and TensorShapes become lists. The digits after the
    third differ from one processor to the next.

    >>> settled((np.float32(0.14814815), np.array([2, 4])))
    (0.148, [2, 4])
    """
    if isinstance(value, float) and not isinstance(value, np.generic):
        return _rounded(value)
    if isinstance(value, (np.generic, np.ndarray)):
        return settled(value.tolist())
    if isinstance(value, (list, tuple, set, frozenset)):
        kind = next(kind for kind in (list, tuple, frozenset, set) if isinstance(value, kind))
        return kind(map(settled, value))
    if isinstance(value, dict):
        return {key: settled(part) for key, part in value.items()}
    for method in ("numpy", "as_list"):  # of a tensor or a TensorShape, without importing TensorFlow
        if callable(getattr(type(value), method, None)):
            return settled(getattr(value, method)())
    return value


def shown(value: object) -> str:
    """Returns a value as text; it never raises, and holds no address.

    >>> shown((2, 4)), shown(np.float32(0.14814815)), shown(np.eye(2)), shown("equal")
    ('(2, 4)', '0.148', '[[1.0, 0.0], [0.0, 1.0]]', 'equal')
    """
    try:
        return str(value) if isinstance(value, str) else _text(settled(value))
    except Exception:
        return f"<{type(value).__name__}>"


def _text(value: object) -> str:
    if isinstance(value, list):
        return f"[{_items(map(_text, value))}]"
    if isinstance(value, tuple):
        return f"({_text(value[0])},)" if len(value) == 1 else f"({_items(map(_text, value))})"
    if isinstance(value, (set, frozenset)) and value:
        return f"{{{_items(sorted(map(_text, value)))}}}"
    if isinstance(value, dict):
        return f"{{{_items(f'{key!r}: {_text(part)}' for key, part in value.items())}}}"
    return _ADDRESS.sub("", repr(value))


def _items(texts: Iterable[str]) -> str:
    texts = list(texts)
    return ", ".join([*texts[:_MOST_ITEMS], *(["..."] if len(texts) > _MOST_ITEMS else [])])


def _rounded(value: float) -> float:
    """Returns a number with a fraction, or one too large to have any, with three significant digits.

    >>> _rounded(0.14814815), _rounded(999.96), _rounded(57746.0), _rounded(1e300 / 3)
    (0.148, 1000.0, 57746.0, 3.33e+299)
    """
    return value if value.is_integer() and abs(value) < _EXACT_BELOW else float(f"{value:.3g}")
