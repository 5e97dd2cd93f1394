"""The cases of the table of strategies: features of Keras and tf.distribute, each as a program."""

from __future__ import annotations

import ast
import itertools
import json
import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from course_lib.messages import plain
from tools.cases.keras.tables import of_any_run
from tools.cases.runner import ERROR

HERE = Path(__file__).parent
STORED = HERE / "table.json"
DATA = [tomllib.loads(file.read_text(encoding="utf-8")) for file in sorted(HERE.glob("features*.toml"))]
BLOCKS: dict[str, str] = DATA[0]["blocks"]
EQUAL, UNEQUAL, DIFFERENT, DOCUMENTED, REFUSED, NO_CASE = (
    "equal",
    "unequal parts",
    "different",
    "documented",
    "refused",
    "no case",  # one device refuses it too
)
ASYNCHRONOUS = "asynchronous"  # in no fixed order, and the loss fell
PROGRAM = (HERE / "program.py").read_text(encoding="utf-8")
ALL_WAYS = ("fit", "train_step", "loop")
FULL, UNEVEN, EMPTY = PARTS = {"full": 24, "uneven": 19, "empty": 13}  # examples, in batches of 12
MIRRORED = "mirrored_2"
OTHERS = ("mirrored_3", "workers_2", "servers_2", "central_2", "one_device")
SEVERAL = ("workers_2", "servers_2")
KERASES = ("keras", "tf_keras")
ROWS = {  # of the lesson's table
    "one_device": "one_device",
    "mirrored": MIRRORED,
    "central_storage": "central_2",
    "multi_worker": "workers_2",
    "parameter_server": "servers_2",
}
FIRST = 'strategy_name, way, num_examples = "mirrored_2", "fit", 24'  # the program's line that says the case
RUNS = "# What this case runs.\n"
# The program in three parts, of which a feature replaces functions in the first and the last.
HEAD, COMMON, REST = re.split("^(?=# The same for every case|# -- strategies)", PROGRAM, flags=re.MULTILINE)


Answer = dict[str, Any]
Answers = dict[str, Answer]  # by the names of cases


class Feature(NamedTuple):
    """What is tried: a part of the program that is written otherwise."""

    group: str
    label: str  # in English, with code between backticks
    code: str  # functions that take the place of the program's, or come after them
    ways: tuple[str, ...]
    parts: tuple[str, ...]
    where: str  # "" under two replicas alone; "everywhere", in one way each; "fully" in `fit` and a loop
    documented: str  # what TensorFlow or Keras say of a difference, if they do
    cure: str  # the name of the feature to take instead
    strategies: tuple[str, ...]  # where it makes sense under these alone

    @property
    def name(self) -> str:
        """What no other feature is called."""
        return self.label.replace("`", "")

    def cases(self) -> Iterator[Case]:
        """Yields its cases."""
        for strategy, way, part in itertools.product(self.strategies or (MIRRORED,), self.ways, self.parts):
            yield Case(self, strategy, "keras", way, part)
        if self.where == "fully":
            for strategy, keras, way in itertools.product((MIRRORED, *OTHERS), KERASES, ("fit", "loop")):
                if (strategy, keras) != (MIRRORED, "keras"):
                    yield Case(self, strategy, keras, way, "full")
        elif self.where:
            for strategy in OTHERS:
                several = strategy in SEVERAL and "loop" in self.ways
                yield Case(self, strategy, "keras", "loop" if several else self.ways[0], "full")
            yield Case(self, MIRRORED, "tf_keras", self.ways[0], "full")


class Case(NamedTuple):
    """A feature under a strategy."""

    feature: Feature
    strategy: str
    keras: str  # "keras" or "tf_keras"
    way: str
    part: str  # whether every replica has as many examples, some fewer or none: a key of `PARTS`

    @property
    def name(self) -> str:
        """What no other case is called."""
        return " | ".join([self.feature.name, self.strategy, self.keras, self.way, self.part])

    @property
    def program(self) -> str:
        """The program that runs it."""
        return program_of(self.feature, self.strategy, self.keras, self.way, PARTS[self.part])


def program_of(feature: Feature, strategy: str, keras: str, way: str, num_examples: int) -> str:
    """Returns the program that tries a feature.

    The functions that the feature has take the place of those of the same name.
    """
    own = own_functions(feature)
    head, strategies = (
        "".join(text for name, text in pieces(part) if name not in own) for part in (HEAD, REST)
    )
    if keras == "tf_keras":
        head = head.replace("import keras\n", "import tf_keras as keras\n")
    head = head.replace(FIRST, f'strategy_name, way, num_examples = "{strategy}", "{way}", {num_examples}')
    code = f"{feature.code}\n\n\n"
    return (
        f"{head}{COMMON}{RUNS}{code}{strategies}" if is_late(feature) else f"{head}{code}{COMMON}{strategies}"
    )


def pieces(code: str) -> list[tuple[str, str]]:
    """Returns a code in parts: its functions by their names, and what stands before them."""
    lines = code.splitlines(keepends=True)
    functions = [node for node in ast.parse(code).body if isinstance(node, ast.FunctionDef)]
    starts = [node.lineno - 1 for node in functions] + [len(lines)]
    texts = ["".join(lines[begin:end]) for begin, end in itertools.pairwise([0, *starts])]
    return list(zip(["", *(node.name for node in functions)], texts, strict=True))


def own_functions(feature: Feature) -> set[str]:
    """Returns the names of the functions that a feature has."""
    return {node.name for node in ast.parse(feature.code).body if isinstance(node, ast.FunctionDef)}


def is_late(feature: Feature) -> bool:
    """Returns whether a feature says itself what is run, and so comes after what is the same for all."""
    return bool(own_functions(feature) & {"run", "promised"})


def features() -> list[Feature]:
    """Returns every feature, those of one group one after the other."""
    found = []
    for data in DATA:
        for group in data["group"]:
            for given in group["features"]:
                found.append(_feature(group, given if isinstance(given, dict) else {"of": given}))
    return found


def _with_blocks(code: str) -> str:
    """Returns a code in which the names of blocks are replaced by their lines."""
    return re.sub(r"^<(.+)>$", lambda match: BLOCKS[match[1]].rstrip("\n"), code, flags=re.MULTILINE)


def _feature(group: dict[str, Any], given: dict[str, Any]) -> Feature:
    code = given.get("code", "")
    if not code:
        form = group["form"].replace("{}", given["of"], 1)
        code = f"{group['head']}\n    return {form}"
    code = _with_blocks(code.strip("\n"))
    ways = tuple(given.get("ways", group.get("ways", ALL_WAYS)))
    parts = tuple(given.get("parts", group.get("parts", PARTS)))
    return Feature(
        group["name"],
        given.get("name", f"`{given.get('of')}`"),
        code,
        ways,
        parts,
        given.get("where", ""),
        given.get("documented", ""),
        given.get("cure", ""),
        tuple(given.get("strategies", group.get("strategies", ()))),
    )


def every_case() -> list[Case]:
    """Returns each case."""
    return [case for feature in features() for case in feature.cases()]


def answer_of(record: Answer, feature: Feature) -> Answer:
    """Returns what the table says of what became of a case: a verdict, and by how much or in which words."""
    if record["verdict"] == ERROR:
        return {"verdict": NO_CASE}
    if "difference" not in record:
        message = of_any_run(record["message"])
        return {"verdict": record["verdict"], "message": plain(message)}
    differences = {name: _rounded(value) for name, value in record["difference"].items()}
    if record["verdict"] == EQUAL:
        return {"verdict": EQUAL, "closely": _power(max(differences.values(), default=0.0))}
    if record["verdict"] == ASYNCHRONOUS:
        return {"verdict": ASYNCHRONOUS}
    is_documented = record["verdict"] == DIFFERENT and feature.documented
    apart = {name: value for name, value in differences.items() if not value <= 1e-4}  # nan is not
    return {"verdict": DOCUMENTED if is_documented else record["verdict"], "difference": apart}


def view(answers: Answers) -> dict[str, dict[str, Answer]]:
    """Returns the first feature's answers as the lesson's table: by strategy, and by way and Keras."""
    names = {"keras": "keras_3", "tf_keras": "tf_keras"}
    base = {
        (case.strategy, case.keras, case.way): answers[case.name]
        for case in features()[0].cases()
        if case.part == "full"
    }
    return {
        row: {
            f"{way}_{names[keras]}": _cell(base[strategy, keras, way])
            for way in ("fit", "loop")
            for keras in KERASES
        }
        for row, strategy in ROWS.items()
    }


def _cell(answer: Answer) -> Answer:
    if answer["verdict"] == EQUAL:
        return {"verdict": EQUAL, "difference": answer["closely"]}
    if answer["verdict"] == ASYNCHRONOUS:
        return answer
    if answer["verdict"] == DIFFERENT:
        return {"verdict": "misreported" if "weights" not in answer["difference"] else DIFFERENT}
    return {"verdict": "error", "message": answer["message"]}


def _rounded(value: float) -> float:
    return float(f"{value:.2g}")


def _power(value: float) -> float:
    """Returns the power of ten that a difference does not exceed: its digits differ from run to run."""
    return 0.0 if value == 0 else 10.0 ** math.ceil(math.log10(value))


def load() -> dict[str, Answers]:
    """Returns what became of each case by its name, for each version of TensorFlow, the newest first.

    The file has each answer once, and for each feature the places of its cases' answers.
    """
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    return {
        version: {
            case.name: stored["answers"][place]
            for feature in features()
            if feature.name in places
            for case, place in zip(feature.cases(), places[feature.name], strict=True)
        }
        for version, places in stored["versions"].items()
    }


def save(tables: Mapping[str, Answers]) -> None:
    """Writes what became of the cases, so that `load` returns it."""
    answers: dict[str, int] = {}
    versions = {
        version: {
            feature.name: [
                answers.setdefault(json.dumps(found[case.name], ensure_ascii=False), len(answers))
                for case in feature.cases()
            ]
            for feature in features()
            if all(case.name in found for case in feature.cases())
        }
        for version, found in sorted(tables.items(), reverse=True)
    }
    lines = ",\n".join(answers)
    rows = ",\n".join(
        f"{json.dumps(version)}: {{\n"
        + ",\n".join(f"{json.dumps(name)}: {json.dumps(places)}" for name, places in found.items())
        + "\n}"
        for version, found in versions.items()
    )
    STORED.write_text(f'{{"answers": [\n{lines}\n], "versions": {{\n{rows}\n}}}}\n', encoding="utf-8")
