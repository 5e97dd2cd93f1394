"""Which collectives a relayout or a matrix product takes, step by step, by the rules that DTensor follows.

Found by running TensorFlow 2.21 and tested against it: tests/tf/test_communication.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.specs.collectives import Collective, Kind
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED
from course_lib.specs.sharding import Sharding

FACTORS, PRODUCT = ("x", "W"), "x @ W"
_MATRIX_AXES = 2
_Stage = tuple["Rule", tuple[str, ...], Kind | None, list[str]]  # why, the layout after it, how, over what


class Rule(StrEnum):
    """Why a tensor changes its layout, or why devices add."""

    # A relayout of a matrix
    MOVE = "move"  # only one mesh dimension changes, from one axis to the other
    CUT = "cut"  # what is to be split is unsharded: each device keeps its part
    GATHER = "gather"  # what does not stay split is joined
    # A product x @ W
    ROWS_LIKE_COLUMNS = "rows like columns"  # one mesh dimension splits x's rows and W's columns: gather one
    ROWS_LIKE_ROWS = "rows like rows"  # one mesh dimension splits the rows of both: gather W's
    COLUMNS_LIKE_COLUMNS = "columns like columns"  # one splits the columns of both: gather x's
    INNER = "inner"  # only one factor's inner axis is split: the other's is cut likewise
    PARTIAL_SUM = "partial sum"  # the inner axis is split: each device has a part of every sum
    OUTPUT = "output"  # what would split both axes of the product splits neither
    # A product with one reader
    WANTED = "wanted"  # an unsharded axis is cut beforehand as the reader wants it
    ROWS_WANTED = "rows wanted"  # as ROWS_LIKE_COLUMNS, and the reader wants the rows: gather W's columns


@dataclass(frozen=True)
class Step:
    """One change of the layout of a tensor, or one sum over devices.

    Attributes:
        tensor: what the tensor is called: `x`, `W` or `x @ W`.
        rule: why.
        source: what the tensor is before; where devices add, the parts have this layout.
        sharding: what the tensor is afterwards.
        collective: the exchange that it takes, or None where every device has what it needs.
    """

    tensor: str
    rule: Rule
    source: Sharding
    sharding: Sharding
    collective: Collective | None


@dataclass(frozen=True)
class Communication:
    """What the devices exchange for one operation, in order, and the layout of its result.

    Attributes:
        operands: what goes in: one tensor that gets another layout, or two factors.
        steps: what happens, in order.
        result: the sharding of the result.
    """

    operands: tuple[Sharding, ...]
    steps: tuple[Step, ...]
    result: Sharding

    @property
    def collectives(self) -> tuple[Collective, ...]:
        """The exchanges, in order."""
        return tuple(step.collective for step in self.steps if step.collective is not None)

    @property
    def bytes_sent(self) -> float:
        """How many bytes a device sends in all of them, each as a ring."""
        return float(sum(collective.bytes_sent for collective in self.collectives))


def relayout(source: Sharding, target: LayoutSpec, tensor: str = "x") -> Communication:
    """Returns what devices exchange to give a matrix another layout.

    A mesh dimension that only moves from one axis to the other takes an all-to-all. Else what can be cut
    without data of others is cut first, one all-gather joins all that does not stay, and the rest is cut.

    >>> from course_lib import MeshSpec
    >>> mesh = MeshSpec([("x", 4), ("y", 2)])
    >>> rows = LayoutSpec(["x", UNSHARDED], mesh).of((8, 8))
    >>> for entries in ([UNSHARDED, "x"], ["x", "y"], [UNSHARDED, "y"]):
    ...     print(*relayout(rows, LayoutSpec(entries, mesh)).collectives)
    all-to-all over x, 64 bytes
    <BLANKLINE>
    all-gather over x, 128 bytes

    Raises:
        CourseError: the layout does not fit the tensor.
    """
    target.of(source.global_shape)
    before, after = source.layout.sharding_specs, target.sharding_specs
    name = _moving_dim(before, after)
    if name is not None:
        stages: list[_Stage] = [(Rule.MOVE, after, Kind.ALL_TO_ALL, [name])]
    else:
        cut = tuple(
            new if old == UNSHARDED and new not in before else old
            for old, new in zip(before, after, strict=True)
        )
        joined = tuple(old if old == new else UNSHARDED for old, new in zip(cut, after, strict=True))
        gone = [name for name in cut if name not in joined]
        stages = [
            (Rule.CUT, cut, None, []),
            (Rule.GATHER, joined, Kind.ALL_GATHER, gone),
            (Rule.CUT, after, None, []),
        ]
    steps: list[Step] = []
    now = source
    for rule, entries, kind, names in stages:
        if entries != now.layout.sharding_specs:
            held = LayoutSpec(entries, source.mesh).of(
                source.global_shape, element_bytes=source.element_bytes
            )
            steps.append(Step(tensor, rule, now, held, _collective(kind, held, names)))
            now = held
    return Communication((source,), tuple(steps), now)


def product(left: Sharding, right: Sharding, wanted: LayoutSpec | None = None) -> Communication:
    """Returns what devices exchange to multiply two matrices that are laid out: `x @ W`.

    >>> from course_lib import MeshSpec
    >>> mesh = MeshSpec([("x", 4), ("y", 2)])
    >>> columns, rows = LayoutSpec([UNSHARDED, "x"], mesh), LayoutSpec(["x", UNSHARDED], mesh)
    >>> contracted = product(columns.of((8, 8)), rows.of((8, 8)))
    >>> print(*contracted.collectives, contracted.result.layout)
    all-reduce over x, 256 bytes [unsharded, unsharded]
    >>> print(*map(str, product(rows.of((8, 8)), columns.of((8, 8))).collectives), sep="; ")
    all-gather over x, 256 bytes; all-gather over x, 256 bytes

    Args:
        left: `x`, of the shape `[rows, inner] global`.
        right: `W`, of the shape `[inner, columns] global`, on the same mesh.
        wanted: the layout that the one reader of the product gives it; DTensor plans the product for it.

    Raises:
        CourseError: they are no matrices that can be multiplied, two mesh dimensions split the inner axis, or
            the wanted layout collides with the factors.
    """
    _require_factors(left, right)
    if wanted is not None:
        _require_wanted(left, right, wanted)
    wishes = (UNSHARDED, UNSHARDED) if wanted is None else wanted.sharding_specs
    here, there = _outer(left.layout, right.layout, wishes)
    inner, twice = _inner(left.layout, right.layout), _split_twice(left.layout, right.layout)
    first = _ready("x", left, [here, inner], Rule.ROWS_LIKE_COLUMNS if twice else Rule.COLUMNS_LIKE_COLUMNS)
    second = _ready("W", right, [inner, there], Rule.ROWS_WANTED if twice else Rule.ROWS_LIKE_ROWS)
    shape = left.global_shape[0], right.global_shape[1]
    whole = LayoutSpec([here, there], left.mesh).of(shape, element_bytes=left.element_bytes)
    sums = []
    if inner != UNSHARDED:
        sums = [Step(PRODUCT, Rule.PARTIAL_SUM, whole, whole, _collective(Kind.ALL_REDUCE, whole, [inner]))]
    output = relayout(whole, _output(left.layout, right.layout, wishes), PRODUCT)
    steps = (*first, *second, *sums, *_because(output, {Rule.CUT: Rule.WANTED, Rule.GATHER: Rule.OUTPUT}))
    if wanted is None:
        return Communication((left, right), steps, output.result)
    read = relayout(output.result, wanted, PRODUCT)
    return Communication((left, right), (*steps, *read.steps), read.result)


def _ready(tensor: str, factor: Sharding, entries: Sequence[str], why_gathered: Rule) -> list[Step]:
    """Returns the steps after which a factor can be multiplied: what the reader wants is cut first."""
    before = factor.layout.sharding_specs
    outer = FACTORS.index(tensor)
    wished = list(before)
    wished[outer] = entries[outer] if before[outer] == UNSHARDED else before[outer]
    cut = relayout(factor, LayoutSpec(wished, factor.mesh), tensor)
    rest = relayout(cut.result, LayoutSpec(entries, factor.mesh), tensor)
    return [
        *_because(cut, {Rule.CUT: Rule.WANTED}),
        *_because(rest, {Rule.CUT: Rule.INNER, Rule.GATHER: why_gathered}),
    ]


def _outer(left: LayoutSpec, right: LayoutSpec, wishes: Sequence[str]) -> tuple[str, str]:
    """Returns what splits the rows of x and the columns of W while they are multiplied.

    One mesh dimension cannot split both: the rows are gathered, or the columns if the rows are wished split.
    An unsharded axis is cut for nothing where the wish names a mesh dimension that neither factor uses.
    """
    rows, columns = left.sharding_specs[0], right.sharding_specs[1]
    if _split_twice(left, right):
        return (rows, UNSHARDED) if wishes[0] == rows else (UNSHARDED, columns)
    used = {*left.sharding_specs, *right.sharding_specs}
    cuts = [
        wish if entry == UNSHARDED and wish not in used else entry
        for entry, wish in zip((rows, columns), wishes, strict=True)
    ]
    return cuts[0], cuts[1]


def _output(left: LayoutSpec, right: LayoutSpec, wishes: Sequence[str]) -> LayoutSpec:
    """Returns the layout of a product: x's rows and W's columns, and where these are unsharded the wish."""
    entries = [left.sharding_specs[0], right.sharding_specs[1]]
    if _split_twice(left, right):
        entries = [UNSHARDED, UNSHARDED]
    for axis, wish in enumerate(wishes):
        if entries[axis] == UNSHARDED and wish not in entries:
            entries[axis] = wish
    return LayoutSpec(entries, left.mesh)


def _inner(left: LayoutSpec, right: LayoutSpec) -> str:
    """Returns the mesh dimension over which the inner axis of a product is split when it is summed."""
    (rows, inner_left), (inner_right, columns) = left.sharding_specs, right.sharding_specs
    if inner_left not in (columns, UNSHARDED):
        return inner_left
    return inner_right if inner_right != rows else UNSHARDED


def _split_twice(left: LayoutSpec, right: LayoutSpec) -> bool:
    """Returns whether one mesh dimension splits the rows of x and the columns of W."""
    return left.sharding_specs[0] == right.sharding_specs[1] != UNSHARDED


def _because(changed: Communication, reasons: Mapping[Rule, Rule]) -> list[Step]:
    """Returns the steps of a relayout, each with the reason that the product has for it."""
    return [replace(step, rule=reasons.get(step.rule, step.rule)) for step in changed.steps]


def _moving_dim(before: tuple[str, ...], after: tuple[str, ...]) -> str | None:
    """Returns the mesh dimension that leaves one axis for another, where nothing else changes."""
    changes = sorted((old, new) for old, new in zip(before, after, strict=True) if old != new)
    moves = (name for name in before if changes == sorted([(name, UNSHARDED), (UNSHARDED, name)]))
    return next(moves, None)


def _collective(kind: Kind | None, held: Sharding, mesh_dims: Iterable[str]) -> Collective | None:
    """Returns the exchange after which the devices hold `held`; none where a group has one device."""
    over = tuple(name for name in mesh_dims if held.mesh.dim_size(name) > 1)
    if kind is None or not over:
        return None
    return Collective(kind, held.mesh, over, held.bytes_per_device())


def _require_factors(left: Sharding, right: Sharding) -> None:
    """Checks that two laid-out matrices can be multiplied: `x @ W`."""
    shapes = left.global_shape, right.global_shape
    matrices = all(each.layout.num_axes == _MATRIX_AXES for each in (left, right))
    if not matrices or shapes[0][1] != shapes[1][0]:
        raise CourseError(
            _(
                "A matrix of shape {left} cannot be multiplied by one of shape {right}.",
                left=shapes[0],
                right=shapes[1],
            ),
            allowed=_("as many columns in the first matrix as rows in the second"),
            cure=_("Make the inner lengths equal."),
        )
    inner = left.layout.sharding_specs[1], right.layout.sharding_specs[0]
    if UNSHARDED not in inner and inner[0] != inner[1]:
        raise CourseError(
            _(
                "The inner axis is split over {first} in one factor and over {second} in the other.",
                first=inner[0],
                second=inner[1],
            ),
            allowed=_("one mesh dimension for the axis that is summed over"),
            cure=_("Split it over the same mesh dimension in both, or leave it unsharded in one."),
        )


def _require_wanted(left: Sharding, right: Sharding, wanted: LayoutSpec) -> None:
    """Checks that DTensor can give a product the layout that its one reader wants.

    Where one mesh dimension splits the rows of x and the columns of W, it plans the product in the wanted
    layout, but looks for the split of the factors in it ("Non-contracting dimension").
    """
    rows, columns = left.layout.sharding_specs[0], right.layout.sharding_specs[1]
    others = {*wanted.sharding_specs} - {rows, UNSHARDED}
    if rows == columns != UNSHARDED and others:
        raise CourseError(
            _(
                "{name!r} splits the rows of the first matrix and the columns of the second; the product is"
                " wanted as {wanted}, split over {others}.",
                name=rows,
                wanted=wanted,
                others=_(", ").join(sorted(map(repr, others))),
            ),
            allowed=f"[unsharded, unsharded], [{rows}, unsharded], [unsharded, {rows}]",
            cure=_("Relayout the product to one of these first, and then to the layout that you want."),
        )
