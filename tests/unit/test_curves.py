"""Pictures by matplotlib: the numbers behind each curve, and what they tell to those who cannot see them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from course_lib.measured import trainings
from course_lib.pictures.curves import Curve, Panels
from course_lib.pictures.images import image_grid
from course_lib.watch.curves import curves, smoothed, summary
from course_lib.watch.records import History
from tests.records import history, step_record


def test_a_loss_that_overflows_spoils_only_the_means_it_is_part_of():
    means = smoothed([1.0, math.inf, 1.0, 1.0, 1.0], num_steps=2)
    assert means == (1.0, math.inf, math.inf, 1.0, 1.0)


def test_there_is_a_train_value_a_step_and_a_test_value_an_epoch():
    seen = {(curve.quantity, curve.split): curve for curve in curves(history(85))}
    assert seen["loss", "train"].steps == tuple(range(1, 86))
    assert seen["loss", "test"] == Curve("loss", "test", (40, 80), (0.9 + 0.05, 0.45 + 0.05))
    assert seen["accuracy", "test"].values == (0.8, 0.8)
    expected = sum(step_record(step)["accuracy"] for step in range(66, 86)) / 20
    assert seen["accuracy", "train"].values[-1] == pytest.approx(expected, rel=1e-12)


def test_the_lines_of_a_picture_carry_exactly_these_numbers():
    short, long = history(50), history(120)
    panels = Panels(["one", "other"], 120)
    panels.show([curves(short), curves(long)])
    for name, shown in (("one", short), ("other", long)):
        for curve in curves(shown):
            line = panels.lines[name, curve.quantity, curve.split]
            assert tuple(line.get_xdata()) == curve.steps
            assert tuple(line.get_ydata()) == curve.values


@pytest.mark.parametrize("loss", [math.nan, math.inf, 0.0])
def test_a_run_that_diverged_is_still_drawn(loss):
    broken = History([{**step_record(1), "loss": loss}])
    panels = Panels([""], 10)
    panels.show([curves(broken)])
    assert panels.png()


def test_the_picture_tells_its_figures_to_those_who_cannot_see_it(monkeypatch):
    monkeypatch.setattr(trainings, "history", history)
    picture = trainings.picture({"raw rows": 50, "unit rows": 120})
    data, metadata = picture._repr_mimebundle_()
    assert data == {"image/png": picture.png, "text/plain": repr(picture)}
    assert metadata["image/png"]["alt"] == (
        "Curves of loss and accuracy of several runs. "
        f"raw rows: {summary(history(50))}; unit rows: {summary(history(120))}."
    )
    assert "0." not in repr(picture)  # nbval compares this text, so it holds no measured figure


def test_images_tell_their_labels():
    picture = image_grid(np.zeros((3, 28, 28), np.uint8), ["coat", "bag", "ankle boot"])
    assert picture.text == picture.alt == "3 images with their labels: coat, bag, ankle boot."
