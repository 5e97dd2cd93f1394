"""For every test: the course speaks English, and Hypothesis does not watch the clock."""

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


@pytest.fixture(params=["en", "ja"])
def language(request):
    """The reader's language."""
    i18n.set_language(request.param)
    return request.param
