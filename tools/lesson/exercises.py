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

    >>> stub("# solution begin\nrows = 8 // 2\n# solution end")
    'rows = ...'

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


def answers(code: str) -> set[str]:
    r"""Returns the names that the reader is to give a value or a body.

    >>> sorted(answers("print(8)\n# solution begin\nhalf = 4\nrows, columns = 4, 2\n# solution end"))
    ['columns', 'half', 'rows']
    """
    left = ast.parse(stub(code))
    open_ends = [node for node in left.body if any(_is_ellipsis(part) for part in ast.walk(node))]
    return {name for node in open_ends for name in _names(node)}


def _is_ellipsis(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is Ellipsis


def _names(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, ast.Assign):
        yield from (name.id for name in ast.walk(node) if isinstance(name, ast.Name))


def _stub_of_region(region: re.Match[str]) -> str:
    indent, inside = region.groups()
    # `return` is legal only in a function: parse the region as the body of one.
    body = ast.parse("def _():\n" + textwrap.indent(textwrap.dedent(inside), "    ")).body[0]
    assert isinstance(body, ast.FunctionDef)
    return "\n".join(indent + line for line in _stub_of(body.body, in_block=bool(indent)))


def _stub_of(statements: list[ast.stmt], *, in_block: bool) -> list[str]:
    """Returns the stub of some statements: names to fill in, or a value to return."""
    if any(map(_returns, statements)):
        return ["return ..."]
    if in_block and len(statements) > 1:
        return ["..."]
    return [line for statement in statements for line in _stub_of_one(statement)]


def _returns(node: ast.AST) -> bool:
    """Returns whether a statement returns from the function around it: not from one that it defines."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return False
    return isinstance(node, ast.Return) or any(map(_returns, ast.iter_child_nodes(node)))


def _stub_of_one(statement: ast.stmt) -> list[str]:
    match statement:
        case ast.Assign(targets=[ast.Name() | ast.Attribute() | ast.Subscript() as target]):
            return [f"{ast.unparse(target)} = ..."]
        case ast.Assign(targets=[ast.Tuple(elts=names)]):
            return [f"{ast.unparse(name)} = ..." for name in names]
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return [f"{name} = ..."]
    return ["..."]
