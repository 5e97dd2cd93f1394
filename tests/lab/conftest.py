"""What every test with JupyterLab needs: a browser, and assertions that explain themselves."""

from __future__ import annotations

import os
import shutil

import pytest

pytest.register_assert_rewrite("tests.lab.reading", "tests.lab.predicting", "tests.lab.training")


def missing(what: str, cure: str) -> None:
    """Skips the test, or fails it where everything is promised to be there."""
    message = f"{what}: {cure}"
    if os.environ.get("CI"):
        pytest.fail(message, pytrace=False)
    pytest.skip(message)


def chromium_path() -> str:
    """Returns where the browser is; skips or fails the test where there is none."""
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next(filter(None, map(shutil.which, names)), "")
    if not path:
        missing("there is no Chromium", "apt-get install chromium fonts-noto-cjk")
    return path


@pytest.fixture(scope="session")
def chromium() -> str:
    return chromium_path()
