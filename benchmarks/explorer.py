"""How fast the explorers are: each redraw in a real browser, and the start of one in a fresh process.

A redraw is timed from the click on an option to the finished layout of the page, and to the end of the frame
that shows the picture; up to 17 ms of this are waiting for the frame. Every choice is made at least once.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.rows import Row, table
from course_lib.widgets.base import MODULE
from lessons.lesson_01_mesh_and_layout.explorer import MeshLayoutExplorer
from lessons.lesson_02_communication.product_explorer import ProductExplorer
from lessons.lesson_02_communication.ring_explorer import RingExplorer
from tools.book.explorers import write_explorer_tables

PAGE = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>Explorer</title>'
    '<link rel="icon" href="data:,">'
    "<body>{explorer}<script type='module' src='{module}'></script></body></html>"
)
EXPLORERS = (MeshLayoutExplorer, RingExplorer, ProductExplorer)
REDRAW_LIMIT_SECONDS, FRAME_SECONDS = 0.050, 1 / 60
START_LIMIT_SECONDS = 1.0

# Walks through all choices with clicks, and times each click that changes something.
WALK = """async () => {
  const root = document.querySelector("course-explorer").shadowRoot;
  const { port1, port2 } = new MessageChannel();
  const painted = () => new Promise((done) => requestAnimationFrame(() => {
    port1.onmessage = done; // a message that is sent inside a frame arrives after its picture
    port2.postMessage(null);
  }));
  const options = (group) => root.querySelectorAll("fieldset")[group]?.querySelectorAll("input") ?? [];
  const layouts = [], pictures = [];
  const explorer = root.querySelector(".explorer");
  async function click(group, at) {
    const option = options(group)[at];
    if (option.checked) return;
    const start = performance.now();
    option.click();
    while (explorer.classList.contains("busy")) await null; // the table is here: the answer needs no timer
    root.querySelector(".explorer").getBoundingClientRect();
    layouts.push(performance.now() - start);
    await painted();
    pictures.push(performance.now() - start);
  }
  async function walk(group) {
    for (let at = 0; at < options(group).length; at++) {
      await click(group, at);
      if (options(group + 1).length) await walk(group + 1);
    }
  }
  await walk(0);
  return { layouts, pictures };
}"""
START = """
import time
start = time.perf_counter()
import course_lib
from lessons.lesson_01_mesh_and_layout.explorer import MeshLayoutExplorer
MeshLayoutExplorer()._repr_mimebundle_()
print(time.perf_counter() - start)
import sys
assert "tensorflow" not in sys.modules
"""


def measure(repeats: int = 5) -> list[Row]:
    """Returns the rows for redraws, if there is a Chromium, and for the start."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    rows = [] if chromium is None else _measure_redraws(chromium)
    starts = [_start_seconds() for _repeat in range(repeats)]
    return [*rows, *_rows("import course_lib, first explorer", starts, START_LIMIT_SECONDS)]


def _rows(what: str, seconds: list[float], limit_seconds: float, longest_seconds: float = 0) -> list[Row]:
    """Returns the median and the longest, which may last `longest_seconds`, or as long as the median."""
    limits = limit_seconds, longest_seconds or limit_seconds
    goals = [f"at most {1000 * limit:,.0f} ms" for limit in limits]
    return [
        Row(f"{what}: median of {len(seconds)}", statistics.median(seconds), goal=goals[0]),
        Row(f"{what}: longest", max(seconds), goal=goals[1]),
    ]


def _measure_redraws(chromium: str) -> list[Row]:
    from playwright.sync_api import sync_playwright

    with _served_pages() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium)
        page = browser.new_page()
        rows = [row for made in EXPLORERS for row in _walked(page, address, made.name)]
        browser.close()
    return rows


def _walked(page: Any, address: str, name: str) -> list[Row]:
    """Returns the rows of one explorer, all of whose choices are clicked on."""
    page.goto(f"{address}{name}.html")
    page.locator("course-explorer .controls").wait_for()
    page.wait_for_load_state("networkidle")
    taken: dict[str, list[Any]] = page.evaluate(WALK)
    layouts, pictures = ([value / 1000 for value in taken[key]] for key in ("layouts", "pictures"))
    longest = REDRAW_LIMIT_SECONDS + 2 * FRAME_SECONDS
    return [
        *_rows(f"{name}, click to layout", layouts, REDRAW_LIMIT_SECONDS, longest),
        *_rows(f"{name}, click to picture", pictures, REDRAW_LIMIT_SECONDS, longest),
    ]


@contextmanager
def _served_pages() -> Iterator[str]:
    """Gives the address of a folder with a page for each explorer, named after it."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(MODULE, folder)
        write_explorer_tables(["en"], Path(folder), EXPLORERS)
        for explorer in (make() for make in EXPLORERS):
            text = PAGE.format(explorer=explorer.to_html(), module=MODULE.name)
            (Path(folder) / f"{explorer.name}.html").write_text(text, encoding="utf-8")
        handler = functools.partial(_QuietHandler, directory=folder)
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            yield f"http://127.0.0.1:{server.server_port}/"
            server.shutdown()


class _QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_details: object) -> None:
        """Keeps the requests out of the table."""


def _start_seconds() -> float:
    done = subprocess.run([sys.executable, "-c", START], capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    print(table(measure(parser.parse_args().repeats)))


if __name__ == "__main__":
    main()
