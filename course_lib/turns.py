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
    """Lets a training and others use the devices in turns; the training lets all others go first.

    The others, cells and buttons, do not wait for each other: a Stop button must be heard while a cell runs.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._trains = False
        self._others = 0  # how many use the devices now
        self._waiting = 0  # how many others wait for them

    def take(self) -> None:
        """Waits until no training uses the devices, and keeps it away from them."""
        with self._changed:
            self._waiting += 1
            try:
                self._changed.wait_for(lambda: not self._trains)
                self._others += 1
            finally:
                self._waiting -= 1

    def give_back(self) -> None:
        """Lets training go on, if nobody else uses the devices."""
        with self._changed:
            self._others = max(self._others - 1, 0)  # 0 before: the cell began before cells took turns
            self._changed.notify_all()

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Keeps training away from the devices for a block."""
        self.take()
        try:
            yield
        finally:
            self.give_back()

    @contextlib.contextmanager
    def left(self) -> Iterator[None]:
        """Lets training go on for a block in which a cell only waits for it."""
        was_taken = self._others > 0
        self.give_back()
        try:
            yield
        finally:
            if was_taken:
                self.take()

    @contextlib.contextmanager
    def of_training(self) -> Iterator[None]:
        """Uses the devices for a few steps, once all others have had their turn."""
        with self._changed:
            self._changed.wait_for(lambda: not (self._trains or self._others or self._waiting))
            self._trains = True
        try:
            yield
        finally:
            with self._changed:
                self._trains = False
                self._changed.notify_all()


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
