"""The fault drill of lesson 11 without its processes: plans, and what a machine sees of them."""

from pathlib import Path

import pytest

from course_lib.errors import CourseError
from lessons.lesson_11_many_processes.checks_drill import BROKEN, folder_of, start


@pytest.mark.parametrize(
    "machines",
    [
        {"host0": BROKEN["host0"]},
        {**BROKEN, "host1": {"index": 1}},
        {**BROKEN, "host1": {**BROKEN["host1"], "port": 2222}},
    ],
)
def test_what_is_no_plan_starts_nothing(machines):
    with pytest.raises(CourseError, match="lacks a setting, or has one too many"):
        start(machines, "nowhere")


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/mnt/nfs/garments", "all/mnt/nfs/garments"),
        ("/mnt/nfs/garments/run", "all/mnt/nfs/garments/run"),
        ("/mnt/nfs-not/garments", "all/host1/mnt/nfs-not/garments"),
        ("/mnt/nas/garments", "all/host1/mnt/nas/garments"),
    ],
)
def test_only_the_shared_folder_is_the_same_for_all_machines(path, found):
    assert folder_of(Path("all"), "host1", path) == Path(found)
