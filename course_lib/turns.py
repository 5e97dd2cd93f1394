"""Turns: who may use the devices now, where a training runs in a thread beside the cells of a notebook.

Two programs that exchange data over the same devices at the same time can wait for each other for ever, or
make TensorFlow refuse every later exchange. So a training that goes on after its cell has ended takes a turn
for each few steps, and each cell that runs meanwhile takes one for as long as it runs.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from importlib import import_module
from typing import Any


class Turns:
    """Gives one thread at a time its turn; whoever trains lets all others go first."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._owner: int | None = None  # the thread whose turn it is
        self._depth = 0  # how often it took its turn: a widget may be pressed while its cell awaits
        self._waiting = 0

    def take(self, *, patient: bool = False) -> None:
        """Waits until the devices are free, and takes them.

        Args:
            patient: whether to let every other thread that waits go first.
        """
        me = threading.get_ident()
        with self._changed:
            if self._owner != me:
                self._waiting += not patient
                try:
                    self._changed.wait_for(lambda: self._owner is None and not (patient and self._waiting))
                finally:
                    self._waiting -= not patient
                self._owner = me
            self._depth += 1

    def give_back(self) -> None:
        """Lets the next one take the devices; does nothing in a thread whose turn it is not."""
        with self._changed:
            if self._owner == threading.get_ident():
                self._depth -= 1
                if not self._depth:
                    self._owner = None
                    self._changed.notify_all()

    @contextlib.contextmanager
    def turn(self, *, patient: bool = False) -> Iterator[None]:
        """Takes the devices for a block."""
        self.take(patient=patient)
        try:
            yield
        finally:
            self.give_back()

    @contextlib.contextmanager
    def left_to_others(self) -> Iterator[None]:
        """Leaves the devices to others for a block in which this thread only waits."""
        with self._changed:
            mine, depth = self._owner == threading.get_ident(), self._depth
            if mine:
                self._owner, self._depth = None, 0
                self._changed.notify_all()
        try:
            yield
        finally:
            if mine:
                self.take()
                self._depth = depth


turns = Turns()
_in_cells: list[Any] = []  # the shells whose cells take turns


def let_cells_take_turns() -> None:
    """Makes every cell of this notebook take a turn, the present one too; outside a notebook does nothing."""
    shell = import_module("IPython").get_ipython() if "IPython" in sys.modules else None
    if shell is None or shell in _in_cells:
        return
    _in_cells.append(shell)
    shell.events.register("pre_run_cell", _cell_begins)
    shell.events.register("post_run_cell", _cell_ends)
    turns.take()


def _cell_begins(_info: Any) -> None:
    turns.take()


def _cell_ends(_result: Any) -> None:
    turns.give_back()
