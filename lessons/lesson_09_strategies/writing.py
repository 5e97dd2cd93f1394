"""Programs out of sections, as Python's style separates them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence


def comment(text: str) -> str:
    """Returns a text as a comment."""
    return f"# {text}"


def section(*lines: str) -> str:
    """Returns lines that belong together; the last one ends too."""
    return "\n".join(lines) + "\n"


def requirement(packages: str, *lines: str) -> str:
    """Returns the first section: what a program needs, and its imports."""
    return section(f"# pip install {packages}", *lines)


def function(head: str, docstring: str, *lines: str) -> str:
    """Returns a section that defines a function."""
    return section(f"def {head}:", f'    """{docstring}"""', *(f"    {line}" for line in lines))


def program(sections: Sequence[str]) -> tuple[str, ...]:
    r"""Returns the sections with the empty lines that Python's style asks for between them.

    >>> program(["import this\n", "def f(): ...\n"])
    ('import this\n\n\n', 'def f(): ...\n')
    """
    gaps = [
        2 if _is_function(one) or _is_function(other) else 1 for one, other in itertools.pairwise(sections)
    ]
    return tuple(text + gap * "\n" for text, gap in zip(sections, [*gaps, 0], strict=True))


def _is_function(text: str) -> bool:
    return text.startswith(("def ", "@"))
