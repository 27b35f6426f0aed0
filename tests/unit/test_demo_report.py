"""The verdict of a demonstration: nothing passes that skipped a stage, was too small, not better, or not identical."""

import io
import json
from dataclasses import replace

import pytest

from app.demo.installation import COOLDOWN
from app.demo.report import CELLS, STAGES, Cell, Report, Stage, compare, comparisons, problems
from app.demo.show import FOLDER, Show
from app.embedded.messages import catalogue

N = 24


def _cell(name: str, right: int, n: int = N) -> Cell:
    return Cell(name, tuple(i < right for i in range(n)), tuple((i, 1, 2) for i in range(n)))


def _proof() -> Report:
    report = Report(seed=1, wish="Please end every answer with a word", seconds=1300.0)
    report.stages = {name: Stage(name, 1.0, 3, ok=True) for name in STAGES}
    rights = {"base": 0, "memory": 23, "adapter": 22, "other": 0}
    report.cells = {name: _cell(name, right) for name, right in rights.items()}
    return report


def test_a_whole_road_with_a_better_adapter_is_a_proof() -> None:
    assert problems(_proof()) == []
    assert _proof().document()["passed"] is True


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_that_was_skipped_or_broke_off_is_named(name: str) -> None:
    skipped, broken = _proof(), _proof()
    del skipped.stages[name]
    broken.stages[name].ok = False
    assert problems(skipped) == problems(broken) == [f"stage:{name}"]


@pytest.mark.parametrize("name", CELLS)
def test_a_cell_that_is_missing_or_too_small_is_named(name: str) -> None:
    report = _proof()
    del report.cells[name]
    assert f"cell:{name}" in problems(report)
    small = _proof()
    small.cells = {key: _cell(key, sum(cell.held[:15]), 15) for key, cell in small.cells.items()}
    assert f"cell:{name}" in problems(small)


@pytest.mark.parametrize(("base", "adapter", "proven"), [(0, 5, True), (0, 4, False), (4, 24, True), (3, 3, False)])
def test_better_means_significantly_better(base: int, adapter: int, proven: bool) -> None:
    report = _proof()
    report.cells |= {"base": _cell("base", base), "adapter": _cell("adapter", adapter)}
    assert ("not_better" not in problems(report)) is proven


def test_a_base_that_meets_the_wish_by_itself_proves_nothing() -> None:
    report = _proof()
    report.cells["base"] = _cell("base", 5)
    assert "base_rate" in problems(report)


def test_one_other_token_of_the_other_person_is_seen() -> None:
    report = _proof()
    other = report.cells["other"]
    report.cells["other"] = replace(other, tokens=(*other.tokens[:-1], (9, 9, 9)))
    assert problems(report) == ["not_identical"]
    report.cells["other"] = replace(other, tokens=())
    assert problems(report) == ["not_identical"]


def test_comparisons_are_paired_by_prompt() -> None:
    found = compare(Cell("a", (True, True, False, True)), Cell("b", (False, True, True, False)))
    assert (found.wins, found.losses) == (2, 1)
    assert found.p == pytest.approx(0.5)
    assert next((c.first, c.second) for c in comparisons(_proof().cells)) == ("adapter", "base")


def test_the_report_is_json_and_prints_every_problem_in_both_languages() -> None:
    report = Report(seed=1, error="nothing answers")
    assert json.loads(json.dumps(report.document()))["passed"] is False
    for language in ("en", "ko"):
        out = io.StringIO()
        Show(language, out).report(report)
        assert "nothing answers" in out.getvalue()
        assert out.getvalue().count("✗") == len(problems(report)) + 1
        proof = io.StringIO()
        Show(language, proof).report(_proof())
        assert "✗" not in proof.getvalue()
        assert {f"stage.{name}" for name in STAGES} <= catalogue(language, FOLDER).keys()


@pytest.mark.parametrize("language", ["en", "ko"])
def test_the_table_says_what_is_not_as_installed(language: str) -> None:
    report, out = _proof(), io.StringIO()
    report.changed = dict(COOLDOWN)
    Show(language, out).report(report)
    assert "LADDER_TRAIN_COOLDOWN_S=0" in out.getvalue()
    assert report.document()["changed"] == {"LADDER_TRAIN_COOLDOWN_S": "0"}
