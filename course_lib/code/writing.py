"""Python as a formatter writes it: quoted names, and lines under 80 columns."""

from __future__ import annotations

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


def _one_a_line(before: str, entries: Sequence[str], after: str, indent: str) -> str:
    lines = [f"{indent}{_INDENT}{entry}," for entry in entries]
    return "\n".join([indent + before, *lines, indent + after])


def _fits(line: str) -> bool:
    """Returns whether a line is short enough; a wide character, such as a Japanese one, takes two columns."""
    return num_columns(line) <= MOST_COLUMNS
