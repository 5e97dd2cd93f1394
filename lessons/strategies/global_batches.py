"""Who got which example: how global batches are split over replicas, and the picture of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, islice
from typing import Any

import numpy as np

from course_lib.i18n import _, ngettext
from course_lib.pictures import arranging, shapes
from course_lib.pictures.arranging import Drawing, text_width
from course_lib.pictures.cells import Line, cell
from course_lib.pictures.figures import Figure, headed
from course_lib.pictures.text import table
from course_lib.specs.drawing import DrawsItself

Part = tuple[int, ...]
Batch = tuple[Part, ...]

_WIDTH, _SIZE, _HEIGHT, _GAP, _PADDING = 500.0, 12.0, 22.0, 8.0, 16.0
_LEAST_RUN = 3
_NOTHING = "–"


@dataclass(frozen=True, init=False)
class ReceivedExamples(DrawsItself):
    """Which examples each replica received of each global batch, without padding. It draws itself.

    >>> ReceivedExamples([[[0, 1], [2, 3]], [[4], []]]).picture()
    Who got which example: 2 batches on 2 replicas
    <BLANKLINE>
               replica 0  replica 1
      batch 0  0 1        2 3
      batch 1  4          –
    <BLANKLINE>
    Batch 1 is split unevenly: 1, 0.
    Replica 1 got nothing of batch 1.

    Attributes:
        batches: for each global batch and each replica the indices of the examples that it received.
    """

    batches: tuple[Batch, ...]

    def __init__(self, batches: Iterable[Iterable[Iterable[int]]]) -> None:
        """Takes any lists of indices."""
        read = tuple(tuple(tuple(map(int, part)) for part in batch) for batch in batches)
        object.__setattr__(self, "batches", read)

    @property
    def repeated(self) -> Part:
        """The examples that were received more than once, in order.

        >>> ReceivedExamples([[[0, 1], [0, 1]], [[2], [3]]]).repeated
        (0, 1)
        """
        times = Counter(chain.from_iterable(chain.from_iterable(self.batches)))
        return tuple(sorted(example for example, count in times.items() if count > 1))

    def picture(self) -> Figure:
        """Returns a row for each global batch with a column for each replica, and what is odd about them."""
        replicas = range(max(map(len, self.batches), default=0))
        rows = [["", *(_("replica {number}", number=at) for at in replicas)]]
        for number, batch in enumerate(self.batches):
            rows.append([_("batch {number}", number=number), *map(_runs, batch)])
        title = _(
            "Who got which example: {batches} on {replicas}",
            batches=ngettext("{count} batch", "{count} batches", len(self.batches)),
            replicas=ngettext("{count} replica", "{count} replicas", len(replicas)),
        )
        remarks = self._remarks()
        drawings = [self._drawing(rows), arranging.lines_of_text(remarks, size=_SIZE, max_width=_WIDTH)]
        return headed(title, drawings, ["", *table(rows), "", *remarks], width=_WIDTH)

    def _remarks(self) -> list[str]:
        """Returns the sizes of the parts where they differ, who got nothing, and what came more than once."""
        uneven, empty = [], []
        for number, batch in enumerate(self.batches):
            sizes = list(map(len, batch))
            if len(set(sizes)) > 1:
                told = _(", ").join(map(str, sizes))
                uneven.append(_("Batch {batch} is split unevenly: {sizes}.", batch=number, sizes=told))
            empty += [
                _("Replica {replica} got nothing of batch {batch}.", replica=replica, batch=number)
                for replica, size in enumerate(sizes)
                if not size
            ]
        found = [*uneven, *empty]
        if self.repeated:
            found.append(_("Received more than once: {examples}.", examples=_runs(self.repeated)))
        return found or [_("All replicas got equally many examples of each batch, and none came twice.")]

    def _drawing(self, rows: Sequence[Sequence[str]]) -> Drawing:
        """Returns the rows with a box for each part: the colour is that of its batch."""
        widths = [
            max(text_width(text, _SIZE) for text in each) + _PADDING for each in zip(*rows, strict=True)
        ]
        headings = [_words(text, width) for text, width in zip(rows[0], widths, strict=True)]
        drawn = [arranging.beside(headings, _GAP)]
        for number, (batch, (name, *texts)) in enumerate(zip(self.batches, rows[1:], strict=True)):
            places = zip(texts, batch, widths[1:], strict=True)
            boxes = [self._box(text, part, width, number) for text, part, width in places]
            drawn.append(arranging.beside([_words(name, widths[0]), *boxes], _GAP))
        return arranging.stacked(drawn, _GAP)

    def _box(self, text: str, part: Part, width: float, batch: int) -> Drawing:
        """Returns a box: dashed where a part is empty, with a thick frame where something came twice."""
        twice = not set(part).isdisjoint(self.repeated)
        nodes = cell(
            (0.5, 0.5, width - 1, _HEIGHT - 1),
            Line(text, size=_SIZE),
            fill=batch if part else None,
            stroke=shapes.ALARM if twice else shapes.LINE,
            stroke_width=3 if twice else 1,
            radius=3,
            dashes=None if part else "3 3",
            class_="part",
        )
        return Drawing(width, _HEIGHT, nodes)


def received_examples(strategy: Any, data: Any, *, most_batches: int = 8) -> ReceivedExamples:
    """Returns who got which example, as the replicas really receive a data set of indices. It draws itself.

    Args:
        strategy: a `tf.distribute.Strategy`.
        data: a `tf.data.Dataset` of *global* batches of indices, such as `tf.data.Dataset.range(5).batch(4)`.
        most_batches: after so many batches the rest is left out.

    Source: https://www.tensorflow.org/tutorials/distribute/input
    """
    batches = islice(strategy.experimental_distribute_dataset(data), most_batches)
    return ReceivedExamples(
        [np.asarray(part).tolist() for part in strategy.experimental_local_results(batch)]
        for batch in batches
    )


def split(values: Sequence[float], num_replicas: int) -> tuple[tuple[float, ...], ...]:
    """Returns the examples of a global batch as a distributed dataset gives them to the replicas.

    Each replica takes the number of examples divided by that of the replicas, rounded up, until none is left.

    >>> split([1, 2, 3, 4, 5], 4)
    ((1, 2), (3, 4), (5,), ())

    Source: https://www.tensorflow.org/tutorials/distribute/input (Batching), and a test that compares.
    """
    size = -(-len(values) // num_replicas)
    return tuple(tuple(values[at * size : (at + 1) * size]) for at in range(num_replicas))


def _runs(part: Sequence[int]) -> str:
    """Returns indices as text, three or more that follow each other as the first and the last.

    >>> _runs((0, 1, 5, 6, 7, 8)), _runs(())
    ('0 1 5–8', '–')
    """
    texts: list[str] = []
    for _start, run in groupby(enumerate(part), lambda pair: pair[1] - pair[0]):
        found = [index for _place, index in run]
        texts += [f"{found[0]}–{found[-1]}"] if len(found) >= _LEAST_RUN else map(str, found)
    return " ".join(texts) or _NOTHING


def _words(text: str, width: float) -> Drawing:
    down = _HEIGHT / 2 + _SIZE / 3
    nodes = (shapes.text(0, down, text, size=_SIZE, fill=shapes.SOFT_INK),) if text else ()
    return Drawing(width, _HEIGHT, nodes)
