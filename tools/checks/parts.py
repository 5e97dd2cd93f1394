"""The parts that the cells of a lesson play, and the calls in which its code cells end."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.lesson.cells import Cell
from tools.lesson.sources import Lesson


def tagged(lesson: Lesson, tag: str) -> list[Cell]:
    """Returns the cells that play a part."""
    return [cell for cell in lesson.cells if tag in cell.tags]


def unpaired(lesson: Lesson, tag: str, partner: str) -> Iterator[str]:
    """Yields the cells of two parts that do not follow each other."""
    before: Cell | None = None
    for cell, after in lesson.following():
        if tag in cell.tags and (after is None or partner not in after.tags):
            yield f"cell {cell.cell_id!r} (`{tag}`) is not followed by a cell tagged `{partner}`"
        if partner in cell.tags and (before is None or tag not in before.tags):
            yield f"cell {cell.cell_id!r} (`{partner}`) does not follow a cell tagged `{tag}`"
        before = cell


def parsed(cell: Cell) -> ast.Module:
    """Returns the code of a cell as a tree, empty where it is no Python."""
    try:
        return ast.parse(cell.source)
    except SyntaxError:
        return ast.Module([], [])


def bound_names(tree: ast.AST) -> set[str]:
    """Returns the names that some code assigns, imports, or defines, within functions too.

    >>> sorted(bound_names(ast.parse("import os.path as at, sys; a = [b for b in c]")))
    ['a', 'at', 'b', 'sys']
    """
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.alias(name=name, asname=other):
                found.add(other or name.partition(".")[0])
            case ast.arg(arg=name):
                found.add(name)
    return found


def calls(node: ast.AST, *names: str) -> list[ast.Call]:
    """Returns the calls of functions of these names in some code."""
    return [
        part
        for part in ast.walk(node)
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id in names
    ]


def last_call(cell: Cell, name: str) -> tuple[str, list[ast.expr]] | None:
    r"""Returns the text and the further arguments of the call in which a cell ends, as in `check("a-b", c)`.

    >>> last_call(Cell("code", 'x = 1\nscore("a_run")', "score"), "score")
    ('a_run', [])
    """
    match parsed(cell).body[-1:]:
        case [ast.Expr(ast.Call(func=ast.Name(called), args=[ast.Constant(str() as text), *rest]))]:
            return (text, rest) if called == name else None
    return None
