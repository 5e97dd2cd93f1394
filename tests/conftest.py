"""For every test: Hypothesis does not watch the clock, because no test asserts on time."""

from hypothesis import settings

settings.register_profile("course", deadline=None)
settings.load_profile("course")
