"""Exercises: in the source with their solutions, in the notebook with `...` in their place."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator

from tools.lesson.sources import LessonError

_REGION = re.compile(r"^( *)# solution begin\n(.*?)\n *# solution end$", re.M | re.S)


def stub(code: str) -> str:
    r"""Returns the cell as the reader meets it.

    >>> stub("# solution begin\nrows, columns = 8 // 2, 4\n# solution end")
    'rows = ...\ncolumns = ...'
    >>> stub("def half(rows):\n    # solution begin\n    n = 2\n    return rows // n\n    # solution end")
    'def half(rows):\n    return ...'

    Raises:
        LessonError: the code has no solution, or one that does not end.
    """
    left, num_regions = _REGION.subn(_stub_of_region, code)
    if not num_regions or "# solution" in left:
        raise LessonError('an exercise needs lines between "# solution begin" and "# solution end"')
    return left


def solution(code: str) -> str:
    r"""Returns the cell with its solution, without the marks.

    >>> solution("# solution begin\nrows = 8 // 2\n# solution end")
    'rows = 8 // 2'
    """
    return _REGION.sub(lambda region: region[2], code)


def _stub_of_region(region: re.Match[str]) -> str:
    indent, inside = region.groups()
    # `return` is legal only in a function: parse the region as the body of one.
    body = ast.parse("def _():\n" + textwrap.indent(textwrap.dedent(inside), "    ")).body[0]
    assert isinstance(body, ast.FunctionDef)
    lines = ["return ..."] if any(map(_returns, body.body)) else _to_fill_in(body.body)
    return "\n".join(indent + line for line in lines)


def _returns(node: ast.AST) -> bool:
    """Returns whether a statement returns from the function around it: not from one that it defines."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return False
    return isinstance(node, ast.Return) or any(map(_returns, ast.iter_child_nodes(node)))


def _to_fill_in(statements: list[ast.stmt]) -> Iterator[str]:
    """Yields a line for each name to which the statements give a value, else `...`."""
    for statement in statements:
        match statement:
            case ast.Assign(targets=[ast.Tuple(elts=names)]) | ast.Assign(targets=names):
                yield from (f"{ast.unparse(name)} = ..." for name in names)
            case ast.FunctionDef(name=name):
                yield f"{name} = ..."
            case _:
                yield "..."
