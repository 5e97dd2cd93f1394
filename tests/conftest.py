"""For every test: the course speaks English, and Hypothesis does not watch the clock."""

import fcntl
import os

import pytest
from hypothesis import settings

from course_lib import i18n

settings.register_profile("course", deadline=None)  # no test asserts on time
settings.load_profile("course")


@pytest.fixture(autouse=True)
def english():
    i18n.set_language("en")
    yield
    i18n.set_language("en")  # what the next test's module sets up comes before its own turn of this


@pytest.fixture(scope="session")
def made_once(tmp_path_factory):
    """Returns a function that gives a folder, which the first process that asks fills."""
    folder = tmp_path_factory.getbasetemp()
    folder = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder

    def made(name, make):
        with (folder / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (folder / name / "whole").exists():
                (folder / name).mkdir(exist_ok=True)
                make(folder / name)
                (folder / name / "whole").touch()
        return folder / name

    return made


@pytest.fixture(params=["en", "ja"])
def language(request):
    """The reader's language."""
    i18n.set_language(request.param)
    return request.param
