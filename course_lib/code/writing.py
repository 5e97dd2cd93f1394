"""Python as a formatter writes it: quoted names, and lines under 80 columns."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from course_lib.i18n import num_columns

MOST_COLUMNS = 79
_INDENT = "    "


def quoted(text: str) -> str:
    r"""Returns the text as a Python literal, in double quotes unless single ones need fewer backslashes.

    >>> print(quoted("hidden units"), quoted("it's"), quoted('5"'), quoted("a\tb"))
    "hidden units" "it's" '5"' "a\tb"
    """
    inside = repr('"' + text)[2:-1]  # the double quote makes Python choose single ones
    plain = inside.replace("\\'", "'")
    return f"'{inside}'" if plain.count('"') > plain.count("'") else '"' + plain.replace('"', '\\"') + '"'


def call(before: str, arguments: Sequence[str], after: str = ")", *, indent: str = "") -> str:
    """Returns a call, broken where it is too long: all arguments on a line of their own, or one a line.

    >>> print(call("spec = PartitionSpec(", ['"a"', "None"]))
    spec = PartitionSpec("a", None)
    """
    inside = f"{indent}{_INDENT}{', '.join(arguments)}"
    one_line = f"{indent}{before}{', '.join(arguments)}{after}"
    if _fits(one_line):
        return one_line
    if _fits(inside) or len(arguments) == 1:
        return f"{indent}{before}\n{inside}\n{indent}{after}"
    return _one_a_line(before, arguments, after, indent)


def display(before: str, entries: Sequence[str], after: str) -> str:
    """Returns a list, a tuple or a dictionary, broken where it is too long: one entry a line.

    >>> print(display("axis_names = (", ['"x"'], ")"))
    axis_names = ("x",)
    """
    comma = "," if after == ")" and len(entries) == 1 else ""
    one_line = f"{before}{', '.join(entries)}{comma}{after}"
    return one_line if _fits(one_line) else _one_a_line(before, entries, after, "")


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


def _one_a_line(before: str, entries: Sequence[str], after: str, indent: str) -> str:
    lines = [f"{indent}{_INDENT}{entry}," for entry in entries]
    return "\n".join([indent + before, *lines, indent + after])


def _fits(line: str) -> bool:
    """Returns whether a line is short enough; a wide character, such as a Japanese one, takes two columns."""
    return num_columns(line) <= MOST_COLUMNS
