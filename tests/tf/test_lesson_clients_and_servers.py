"""What `clients_and_servers` says: its programs are those that it writes."""

import re
from pathlib import Path

from tools.lesson.sources import Course

PLAIN = Path(__file__).parents[2] / "notebooks" / "plain"
PIECES = {
    "coordinator": ("coordinator_head", "variables", "train_step", "run_epoch", "epochs"),
    "client": ("client_head", "mesh", "components", "model", "client_loop"),
}


def test_the_plain_programs_are_what_the_lesson_writes():
    written = {}
    for cell in Course.here().lesson("clients_and_servers").cells:
        if match := re.match(r"%%writefile clients_and_servers_programs/(\w+)\.py\n", cell.source):
            written[match[1]] = cell.source[match.end() :] + "\n"
    for name, pieces in PIECES.items():
        assert "\n\n".join(written[piece] for piece in pieces) == (PLAIN / f"{name}.py").read_text()
