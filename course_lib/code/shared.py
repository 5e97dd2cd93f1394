"""What the programs of all frameworks have in common."""

from __future__ import annotations

import math

from course_lib.code.writing import call, comment, display, quoted, section
from course_lib.i18n import _
from course_lib.specs.plan import Plan
from course_lib.specs.sharding import Sharding


def requirement(packages: str, *lines: str) -> str:
    """Returns the first section: what it needs, and its imports."""
    return section(f"# pip install {packages}", *lines)


def own_tensor(numbers: str, sharding: Sharding) -> str:
    """Returns the section with the tensor: the numbers 0, 1, 2, ... in place of the reader's own.

    Args:
        numbers: what gives so many numbers, with `{count}` where their number stands.
        sharding: what has the shape.
    """
    shape = [str(length) for length in sharding.global_shape] or ["()"]
    count = math.prod(sharding.global_shape)
    return section(
        comment(_("Your own tensor of this shape goes here.")),
        call(f"value = {numbers.format(count=count)}.reshape(", shape),
    )


def splits(plan: Plan) -> str:
    """Returns the section that says which mesh dimension splits which axis."""
    entries = [f"{quoted(axis)}: {quoted(name)}" for axis, name in plan.splits.items()]
    return section(
        comment(_("The axes that are split, each with its mesh dimension.")),
        display("splits = {", entries, "}"),
    )


def function(head: str, docstring: str, *lines: str) -> str:
    """Returns a section that defines a function."""
    return section(f"def {head}:", f'    """{docstring}"""', *(f"    {line}" for line in lines))


def entries_comment() -> str:
    """Returns what stands above the layout in frameworks whose layouts have an entry for each axis."""
    return comment(_("An entry for each tensor axis."))


def layout_docstring() -> str:
    """Returns what the function `layout` of a plan says."""
    return _("Returns the layout of a tensor with these axes.")


def distributed_docstring() -> str:
    """Returns what the function `distributed` of a plan says."""
    return _("Returns a tensor with these axes as the plan splits it.")
