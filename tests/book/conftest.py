"""The built site, served on this machine, and a browser that looks at it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from tests.book import small_book
from tests.book.built_site import SITE, pages, served, watch
from tests.lab.conftest import chromium_path, missing
from tools.lesson.sources import Course

pytest.register_assert_rewrite("tests.book.bare_page")


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    if not pages():
        missing("the book is not built", "make book")
    with served(SITE) as address:
        yield address


@pytest.fixture(scope="session")
def built_once(tmp_path_factory) -> Path:
    """Returns the folder of the small course and of its book, which the first process that asks builds."""
    in_one_of_several = "PYTEST_XDIST_WORKER" in os.environ
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if in_one_of_several else own) / "small-book"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "site").exists():
            small_book.build(folder, small_book.executed_course(folder / "course"))
    return folder


@pytest.fixture(scope="session")
def small_course(built_once) -> Course:
    """Returns the small course, executed in two languages."""
    return Course(built_once / "course")


@pytest.fixture(scope="session")
def site(built_once) -> Path:
    """Returns the book of the small course, as one with a public address."""
    return built_once / "site"


@pytest.fixture(scope="session")
def small_address(site) -> Iterator[str]:
    with served(site) as address:
        yield address


@pytest.fixture(scope="session")
def chromium():
    path = chromium_path()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium):
    """Returns a fresh page of a reader who prefers light colours and has visited nothing yet."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
    yield context.new_page()
    context.close()


@pytest.fixture
def scriptless_page(chromium):
    """Returns a page of a reader whose browser runs no script."""
    context = chromium.new_context(java_script_enabled=False)
    yield context.new_page()
    context.close()


@pytest.fixture(scope="module")
def server(folder):
    """Gives the address of the test module's own `folder`, which holds bare pages with widgets."""
    with served(folder) as address:
        yield address


@pytest.fixture
def visit(page, server):
    """Returns a function that opens a page; at the end nothing may have gone wrong or left the machine."""
    trouble = watch(page, server, levels=("error", "warning"))

    def open_page(name: str, theme: str = "light"):
        page.goto(f"{server}{name}-{theme}.html", wait_until="networkidle")
        return page

    yield open_page
    assert trouble == []
