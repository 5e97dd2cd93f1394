"""The features that are tried under strategies: programs that can run, and cures that are tried as well."""

from __future__ import annotations

from tools.cases.strategies import table

FEATURES = table.features()


def test_each_case_has_a_name_of_its_own_and_a_program_with_its_feature():
    cases = table.every_case()
    assert len({case.name for case in cases}) == len(cases)
    for case in cases:
        program = case.program
        compile(program, case.name, "exec")
        assert case.feature.code in program
        assert f'"{case.strategy}", "{case.way}", {table.PARTS[case.part]}\n' in program


def test_a_cure_is_a_feature_that_is_tried():
    names = {feature.name for feature in FEATURES}
    assert {feature.cure for feature in FEATURES if feature.cure} <= names


def test_what_became_of_a_case_is_told_without_digits_that_differ_from_run_to_run():
    feature = FEATURES[0]
    equal = {"verdict": "equal", "difference": {"loss": 1.4e-7, "weights": 0.0}, "copies": 2}
    assert table.answer_of(equal, feature) == {"verdict": "equal", "closely": 1e-6}
    nan = {"verdict": "different", "difference": {"loss": 1e-9, "weights": float("nan")}}
    assert str(table.answer_of(nan, feature)) == "{'verdict': 'different', 'difference': {'weights': nan}}"
