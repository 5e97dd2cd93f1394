"""Eight virtual CPUs for every test in this folder, as the lessons have them."""

import course_lib

course_lib.setup(devices=8)
