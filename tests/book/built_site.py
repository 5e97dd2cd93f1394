"""Where the built site is, what serves it, and what watches a page of it, for tests and fixtures."""

from __future__ import annotations

import contextlib
import functools
import http.server
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from playwright.sync_api import Page

from tools.book.pages import MOVED

ROOT = Path(__file__).resolve().parents[2]
# BOOK_SITE lets the tests look at a site that was built elsewhere.
SITE = Path(os.environ.get("BOOK_SITE", ROOT / "build" / "book"))


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_details: object) -> None:
        """Keeps the requests out of the test's output."""


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """Gives the address of a server on this machine that shows `folder`."""
    handler = functools.partial(QuietHandler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def pages() -> list[str]:
    """Returns the path of every page below the site's root, but those that lead elsewhere."""
    found = (path for path in SITE.glob("*/*.html") if path.stem not in MOVED)
    return sorted(path.relative_to(SITE).as_posix() for path in found)


def watch(page: Page, address: str, levels: Sequence[str] = ("error",)) -> list[str]:
    """Returns a list that fills with everything that goes wrong on the page from now on.

    No request may leave the server's address; lines in the console count as wrong at these levels.
    """
    trouble: list[str] = []
    page.on("console", lambda message: message.type in levels and trouble.append(message.text))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("requestfailed", lambda request: trouble.append(f"failed: {request.url}"))
    page.on(
        "response", lambda answer: answer.status >= 400 and trouble.append(f"{answer.status}: {answer.url}")
    )
    page.on(
        "request",
        lambda request: (
            request.url.startswith((address, "data:", "blob:"))
            or trouble.append(f"leaves the machine: {request.url}")
        ),
    )
    return trouble
