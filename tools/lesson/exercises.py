"""Exercises: in the source with their solutions, in the notebook with `...` in their place."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from tools.lesson.sources import LessonError

_MARK = re.compile(r"#\s*solution\s*$")
_BEGIN, _END = re.compile(r"^\s*# solution begin\s*$"), re.compile(r"^\s*# solution end\s*$")


@dataclass(frozen=True)
class _Part:
    """Lines `first` to `end` (not included) of a cell are the solution; `stub` goes in their place."""

    first: int
    end: int
    stub: tuple[str, ...]


def stub(code: str) -> str:
    """Returns the cell as the reader meets it.

    >>> stub("rows = 8 // 2  # solution")
    'rows = ...'

    Raises:
        LessonError: the code has no solution, or a region that does not end.
    """
    parts = sorted([*_marked_statements(code), *_regions(code)], key=lambda part: part.first)
    if not parts:
        raise LessonError('an exercise needs a statement marked "# solution"')
    lines = code.split("\n")
    for part in reversed(parts):
        lines[part.first : part.end] = part.stub
    return "\n".join(lines)


def solution(code: str) -> str:
    """Returns the cell with its solution, without the marks.

    >>> solution("rows = 8 // 2  # solution")
    'rows = 8 // 2'
    """
    lines = [line for line in code.split("\n") if not (_BEGIN.match(line) or _END.match(line))]
    return "\n".join(_MARK.sub("", line).rstrip() if _MARK.search(line) else line for line in lines)


def answers(code: str) -> set[str]:
    r"""Returns the names that the reader is to give a value or a body.

    >>> sorted(answers("def half(n):\n    return n // 2  # solution\nrows = 4  # solution"))
    ['half', 'rows']
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


def _marked_statements(code: str) -> Iterator[_Part]:
    lines = code.split("\n")
    statements = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.stmt)]
    done: set[int] = set()
    for number, line in enumerate(lines):
        if _MARK.search(line):
            around = [node for node in statements if node.lineno - 1 <= number < (node.end_lineno or 0)]
            if not around:
                raise LessonError('"# solution" stands at the end of a statement')
            node = min(around, key=lambda node: (node.end_lineno or 0) - node.lineno)
            if node.lineno not in done:
                done.add(node.lineno)
                yield _Part(node.lineno - 1, node.end_lineno or 0, _indented([node], lines[node.lineno - 1]))


def _regions(code: str) -> Iterator[_Part]:
    lines = code.split("\n")
    begins = [number for number, line in enumerate(lines) if _BEGIN.match(line)]
    ends = [number for number, line in enumerate(lines) if _END.match(line)]
    if len(begins) != len(ends) or any(begin > end for begin, end in zip(begins, ends, strict=True)):
        raise LessonError('each "# solution begin" needs its "# solution end"')
    for begin, end in zip(begins, ends, strict=True):
        inside = "\n".join(lines[begin + 1 : end])
        # `return` is legal only in a function: parse the region as the body of one.
        body = ast.parse("def _():\n" + textwrap.indent(textwrap.dedent(inside), "    ")).body[0]
        assert isinstance(body, ast.FunctionDef)
        yield _Part(begin, end + 1, _indented(body.body, lines[begin]))


def _indented(statements: list[ast.stmt], first_line: str) -> tuple[str, ...]:
    indent = first_line[: len(first_line) - len(first_line.lstrip())]
    return tuple(indent + line for line in _stub_of(statements, in_block=bool(indent)))


def _stub_of(statements: list[ast.stmt], *, in_block: bool) -> list[str]:
    """Returns the stub of some statements: names to fill in, or a value to return."""
    if any(map(_returns, statements)):
        return ["return ..."]
    if in_block and len(statements) > 1:
        return ["..."]
    return [line for statement in statements for line in _stub_of_one(statement)] or ["..."]


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
