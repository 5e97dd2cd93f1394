"""What `make lab` opens on a fresh clone: the first lesson, its stored pictures shown, no question asked."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from tests import small_course
from tests.lab.jupyterlab import BROWSER_OPTIONS, ROOT, START_SECONDS, environment, free_port, wait_for
from tools.lesson.build import build

LESSON = small_course.NOTEBOOK
PICTURE = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><rect width="8" height="8"/></svg>'
PICTURES = ".jp-Notebook .jp-OutputArea-output img[src^='data:image/svg']"
NOTIFICATIONS = ".jp-toastContainer .Toastify__toast, .jp-Dialog"


@pytest.fixture
def clone(tmp_path) -> Path:
    """Returns what `make lab` needs of a fresh clone, with the small course, the environment beside it."""
    folder = tmp_path / "clone"
    course = small_course.copied(folder)
    list(build(course))
    small_course.pretend_executed(course, {"image/svg+xml": PICTURE, "text/plain": "a picture"})
    shutil.copytree(ROOT / "tools" / "jupyterlab", folder / "tools" / "jupyterlab")
    shutil.copy(ROOT / "Makefile", folder)
    (folder / ".venv").symlink_to(ROOT / ".venv")
    return folder


def commands(clone: Path, language: str) -> str:
    make = ["make", "--dry-run", "--old-file=.venv/ready", "lab", f"LANGUAGE={language}"]
    alone = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(make, cwd=clone, env=alone, capture_output=True, text=True, check=True).stdout


@contextlib.contextmanager
def make_lab(clone: Path, state: Path, language: str) -> Iterator[str]:
    """Runs the commands of `make lab` and gives what it would open in a browser: a page that leads on."""
    port = free_port()
    settings = {
        "ServerApp": {"port": port, "port_retries": 0, "ip": "127.0.0.1"},
        "IdentityProvider": {"token": ""},
    }
    (state / "config").mkdir(parents=True)
    (state / "config" / "jupyter_server_config.json").write_text(json.dumps(settings))
    opened = state / "opened"
    browser = state / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}.part && mv {opened}.part {opened}\n')
    browser.chmod(0o755)
    with (state / "server.log").open("wb") as log:
        server = subprocess.Popen(
            ["sh", "-ec", commands(clone, language)],
            cwd=clone,
            env=environment(state) | {"BROWSER": f"{browser} %s"},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            wait_for(f"http://127.0.0.1:{port}", server, state / "server.log")
            yield _written(opened)
        finally:
            os.killpg(server.pid, signal.SIGTERM)
            server.wait(timeout=30)


def _written(file: Path) -> str:
    for _try in range(START_SECONDS * 5):
        if file.exists():
            return file.read_text().strip()
        time.sleep(0.2)
    raise RuntimeError("no browser was opened")


def seen(chromium: str, address: str) -> tuple[str, dict[str, int]]:
    """Returns where a reader who runs nothing comes, and how much of what stands on that page."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=BROWSER_OPTIONS)
        page = browser.new_page(viewport={"width": 1280, "height": 3000})
        page.goto(address)
        page.wait_for_selector(".jp-NotebookPanel .jp-CodeCell", timeout=START_SECONDS * 1000)
        page.locator(PICTURES).first.wait_for(timeout=START_SECONDS * 1000)
        page.wait_for_timeout(3000)  # the question about news comes late
        found = {what: page.locator(what).count() for what in (PICTURES, NOTIFICATIONS)}
        place = page.url
        browser.close()
    return place, found


@pytest.mark.parametrize("language", ["en", pytest.param("ja", marks=pytest.mark.drill_all)])
def test_make_lab_opens_a_trusted_lesson_and_asks_nothing(chromium, clone, tmp_path, language):
    before = (clone / "notebooks" / language / LESSON).read_bytes()
    with make_lab(clone, tmp_path / "state", language) as address, ThreadPoolExecutor(1) as thread:
        place, found = thread.submit(seen, chromium, address).result()
    assert place.endswith(f"/lab/tree/notebooks/{language}/{LESSON}")
    folded = before.count(b'"outputs_hidden": true')
    assert found[PICTURES] == before.count(b'"image/svg+xml"') - folded > 0
    assert found[NOTIFICATIONS] == 0
    assert (clone / "notebooks" / language / LESSON).read_bytes() == before
    assert "jupyter trust" not in commands(clone, language)
    changed = Path("notebooks", language, LESSON)
    os.utime(clone / changed)
    assert f"jupyter trust {changed} >" in commands(clone, language)  # and no other
