"""What every explorer promises, in a notebook and in its table for pages."""

from __future__ import annotations

import functools
import json
import pkgutil
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from IPython.core.formatters import DisplayFormatter

import lessons
from course_lib import CourseError
from course_lib.explorers.observing import ObservingExplorer
from course_lib.i18n import languages, set_language
from course_lib.pictures import shapes
from course_lib.specs.sharding import numbered_tensor
from course_lib.widgets.base import Explorer, key
from course_lib.widgets.controls import Number, Text, leads_to, with_value
from course_lib.widgets.table import page_table
from tests.course import from_lesson
from tests.explored import choose, inputs, press, questions, ran_as_predicted, shown, text_of, whole
from tools.book.explorers import widgets

IterationTimes = from_lesson("custom_training.iterating_explorer", "IterationTimes")
StepTimes = from_lesson("a_run.step_times", "StepTimes")

ROOT = Path(__file__).resolve().parents[2]
WIDGET_MIME = "application/vnd.jupyter.widget-view+json"
EXPLORERS = {maker.__name__: maker for maker in widgets().values() if isinstance(maker, type)}
# What a page may ask a browser to load: most of it is drawings, of which an option more makes many.
MOST_VIEWS, MOST_BYTES = 600, 600_000
each_explorer = pytest.mark.parametrize("name", EXPLORERS)


def data_in(text: str) -> dict:
    """Returns the data that stand before the picture in an explorer's HTML."""
    (script,) = re.findall(r"^<course-explorer><script [^>]*>([^<]*)</script><svg ", text)
    return json.loads(script)


def states_on_a_page(explorer) -> dict[str, dict]:
    """Returns every state that clicks on a page lead to, by its key."""
    states, waiting = {}, [explorer.settled(explorer.state, page=True)]
    while waiting:
        state = waiting.pop()
        if key(state) not in states:
            states[key(state)] = state
            waiting += explorer.next_states(state)
    return states


@functools.cache
def table_of(name: str) -> dict:
    """Returns the table of an explorer for English pages, which takes seconds to make."""
    return page_table(EXPLORERS[name]())


@each_explorer
def test_the_table_of_a_page_has_what_python_shows_for_every_choice(name):
    explorer = EXPLORERS[name]()
    table, states = table_of(name), states_on_a_page(explorer)
    assert sorted(table["keys"]) == sorted(states)
    for place, code in list(enumerate(table["keys"]))[:: max(len(states) // 60, 1)]:
        view = whole(table, table["views"][place])
        assert view == shapes.to_json(explorer.tree(states[code], page=True))
        # The module finds the next view by the place of the input among all inputs.
        for option, after in zip(inputs(view), table["leads_to"][place], strict=True):
            path, value = json.loads(option["data-path"]), json.loads(option["data-value"])
            reached = explorer.settled(with_value(states[code], tuple(path), value), page=True)
            assert table["keys"][after] == key(reached)
    assert len(table["keys"]) <= MOST_VIEWS
    assert len(json.dumps(table, ensure_ascii=False, separators=(",", ":")).encode()) < MOST_BYTES


@each_explorer
def test_every_option_on_a_page_leads_to_another_view_but_the_one_that_is_chosen(name):
    table = table_of(name)
    for place, view in enumerate(table["views"]):
        options = inputs(whole(table, view))
        changing = ["checked" not in each and each.get("aria-disabled") != "true" for each in options]
        assert any(changing)
        assert [after != place for after in table["leads_to"][place]] == changing


@each_explorer
@given(st.data())
@settings(max_examples=12, deadline=None)
def test_no_choice_breaks_it_and_illegal_ones_say_why(name, data):
    explorer = EXPLORERS[name]()
    for _choice in range(5):
        groups = explorer.controls(explorer.state, page=False)
        control = data.draw(st.sampled_from([control for group in groups for control in group.controls]))
        values = st.sampled_from(leads_to(control) or [None])
        if isinstance(control, Number):
            values = st.integers(1, 4) | st.sampled_from([None, -1, 0, 2.5, 17, 9999, 10**30])
        if isinstance(control, Text):
            values = st.text()
        choose(explorer, *control.path, data.draw(values))
        try:
            explorer.figure()
            why = []
        except CourseError as error:
            why = [f"This choice is not possible.{error}"]
        assert shown(explorer, "refusal") == why
        json.dumps(explorer.view)


@each_explorer
def test_a_page_gets_small_plain_html_that_leads_into_the_table(name):
    explorer = EXPLORERS[name]()
    text = explorer.to_html()
    data = data_in(text)
    assert data["table"] == f"{explorer.name}.en.json"
    assert set(data["leads_to"]) <= set(table_of(name)["keys"])
    assert len(text.encode()) < 40_000


@each_explorer
def test_it_speaks_every_language(name):
    english = EXPLORERS[name]()
    for language in languages()[1:]:
        set_language(language)
        try:
            explorer = EXPLORERS[name]()
            data = data_in(explorer.to_html())
            told = [explorer.title(), repr(explorer), text_of(explorer.view), *questions(explorer)]
        finally:
            set_language("en")
        said = [english.title(), repr(english), text_of(english.view), *questions(english)]
        assert len(set(told) & set(said) - {"Keras", "Transformer"}) == 0
        assert (data["table"], data["view"][1]["lang"]) == (f"{explorer.name}.{language}.json", language)


@each_explorer
def test_jupyter_gets_widget_element_and_a_text_that_follows_from_the_arguments(name, monkeypatch):
    explorer = EXPLORERS[name]()
    data, _metadata = DisplayFormatter().format(explorer)
    assert set(data) == {"text/plain", "text/html", WIDGET_MIME}
    assert data["text/html"] == explorer.to_html()
    assert data["text/plain"] == EXPLORERS[name]().figure().text
    monkeypatch.setitem(sys.modules, "google.colab", object())
    assert set(explorer._repr_mimebundle_()[0]) == {"text/plain", WIDGET_MIME}


@each_explorer
def test_what_changes_nothing_is_answered_all_the_same(name, monkeypatch):
    explorer, answers = EXPLORERS[name](), []
    monkeypatch.setattr(explorer, "send", answers.append)
    name, value = next(iter(explorer.state.items()))
    choose(explorer, name, value)
    assert answers == [{"kind": "answered"}]


OBSERVING = [name for name, maker in EXPLORERS.items() if issubclass(maker, ObservingExplorer)]


def observing(name, observe=None):
    """Returns an explorer with a button, in which something is chosen."""
    explorer = EXPLORERS[name](observe)
    if "batch_size" in explorer.state:
        choose(explorer, "batch_size", 64)
    return explorer


@pytest.mark.parametrize("name", OBSERVING)
def test_a_press_says_that_it_works_then_what_failed_and_the_next_one_tries_again(name):
    told, failures = [], [RuntimeError("odd"), CourseError("No device.", allowed="a device", cure="Wait.")]

    def fails(*_choice):
        told.extend(shown(explorer, "verdict"))
        raise failures.pop()

    explorer = observing(name, fails)
    press(explorer)
    assert shown(explorer, "verdict")[0].startswith("✗ No device.\n  Allowed: a device")
    press(explorer)
    assert shown(explorer, "verdict") == ["✗ RuntimeError: odd"]
    assert told == [explorer.waiting()] * 2


@pytest.mark.parametrize(
    ("name", "observe", "runs"),
    [
        ("MeshLayoutExplorer", lambda each: each.split(numbered_tensor(each.global_shape)), 1),
        ("ProductExplorer", ran_as_predicted, 1),
        ("BatchSizeExplorer", lambda size: StepTimes(size, 0.001, 0.002), 2),
        ("IterationExplorer", lambda size: IterationTimes(size, 0.003, 0.002, 0.001), 2),
    ],
)
def test_what_agreed_is_not_run_again_but_times_are_measured_anew(name, observe, runs):
    calls = []
    explorer = observing(name, lambda *choice: calls.append(choice) or observe(*choice))
    for _press in range(2):
        press(explorer)
        assert "✓" in shown(explorer, "verdict")[0]
    assert len(calls) == runs


@pytest.mark.parametrize("name", OBSERVING)
def test_without_a_function_the_button_says_what_it_needs(name):
    explorer = observing(name)
    (why,) = shown(explorer, "why")
    assert why.startswith(f"The button needs a function: {name}(")


def test_no_explorer_needs_tensorflow():
    code = (
        "import sys; from tools.book.explorers import widgets;"
        "[make()._repr_mimebundle_() for make in widgets().values()];"
        "print(sorted({name.split('.')[0] for name in sys.modules} & {'tensorflow', 'matplotlib'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "[]\n"


def test_the_book_finds_the_explorers_of_every_lesson():
    for module in pkgutil.walk_packages(lessons.__path__, f"{lessons.__name__}."):
        if not module.name.endswith(".lesson"):
            import_module(module.name)
    of_lessons = {each.__name__ for each in kinds_of(Explorer) if each.__module__.startswith("lessons.")}
    assert of_lessons == set(EXPLORERS)


def kinds_of(kind):
    """Yields the classes that inherit from one, directly or not."""
    for each in kind.__subclasses__():
        yield each
        yield from kinds_of(each)
