"""Long replies in parts: nothing lost, none too long, nothing cut that hurts, numbered when there are several."""

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wcwidth import iter_graphemes

from bots.whatsapp.render import render
from bots.whatsapp.split import MAX_UNITS, split, units
from tests.support.scale import SCALE

NUMBER = re.compile(r"^\(\d+/\d+\)\n\n")


def shown(parts: list[str]) -> list[str]:
    return [NUMBER.sub("", render(part)) for part in parts]


def test_what_fits_is_left_as_it_came() -> None:
    text = "# hi\n\n" + "x" * 1490
    assert split(text) == [text]


def test_an_empty_reply_is_one_part() -> None:
    assert split("") == [""]


def test_parts_are_numbered_in_order() -> None:
    parts = split("\n\n".join(f"Paragraph {n}. " + "word " * 60 for n in range(12)))
    assert [part.partition("\n")[0] for part in parts] == [f"({n}/{len(parts)})" for n in range(1, len(parts) + 1)]
    assert len(parts) > 2


def test_paragraphs_stay_whole_where_they_fit() -> None:
    paragraphs = [f"P{n} " + "word " * 100 for n in range(8)]
    for part in shown(split("\n\n".join(paragraphs))):
        assert all(paragraph.strip() in {p.strip() for p in paragraphs} for paragraph in part.split("\n\n"))


def test_a_long_line_is_cut_between_sentences() -> None:
    parts = shown(split(" ".join(f"This is sentence {n}." for n in range(200))))
    assert all(part.startswith("This is") and part.endswith(".") for part in parts)


def test_emphasis_is_not_cut_where_that_can_be_helped() -> None:
    parts = shown(split(" ".join(f"Say **this is. not to be cut. {n}** always." for n in range(100))))
    assert len(parts) > 1
    assert all(part.count("*") % 2 == 0 for part in parts)


@pytest.mark.parametrize("wrapped", ["{}", "- first\n\n{}", "intro\n\n{}\n\noutro"])
def test_code_is_closed_and_opened_again(wrapped: str) -> None:
    code = "```python\n" + "\n".join(f"line_{n} = **{n}**" for n in range(200)) + "\n```"
    parts = shown(split(wrapped.replace("{}", code)))
    assert len(parts) > 1
    assert all(part.count("```") % 2 == 0 for part in parts)
    assert re.findall(r"line_\d+ = \*\*\d+\*\*", "\n".join(parts)) == [f"line_{n} = **{n}**" for n in range(200)]


def test_code_within_a_list_is_closed_and_opened_again() -> None:
    items = "\n".join(f"- step {n}\n  ```\n  do_{n}()\n  ```" for n in range(100))
    parts = shown(split(items))
    assert all(part.count("```") % 2 == 0 for part in parts)
    assert re.findall(r"do_\d+", "\n".join(parts)) == [f"do_{n}" for n in range(100)]


def test_a_long_table_keeps_its_labels() -> None:
    parts = shown(split("| Name | Age |\n|---|---|\n" + "\n".join(f"| Ann{n} | {n} |" for n in range(200))))
    assert len(parts) > 1
    assert re.findall(r"Name: Ann\d+\nAge: \d+", "\n".join(parts)) == [f"Name: Ann{n}\nAge: {n}" for n in range(200)]


def test_a_table_that_grows_by_its_labels_fits_all_the_same() -> None:
    parts = split("|" + "Label" * 20 + "|\n|-|\n" + "|1|\n" * 60)
    assert len(parts) > 3
    assert all(units(render(part)) <= MAX_UNITS for part in parts)
    assert sum(part.count(": 1") for part in shown(parts)) == 60


def test_a_long_and_hostile_reply_does_not_take_long() -> None:
    started = time.perf_counter()
    for hostile in ("- x\n" * 2000, "[" * 3000, "- " * 3000, "`" * 9000, "| a |\n|-|\n" + "| 1 |\n" * 900):
        split(hostile)
    assert time.perf_counter() - started < 15


@pytest.mark.parametrize("length", [1501, 5000])
@pytest.mark.parametrize("sign", list("`*_~#>-+|=.]()!:"))
def test_a_long_run_of_signs_is_shown_whole(sign: str, length: int) -> None:
    run = sign * length
    for text in (run, f"see {run}", f"see {run} there"):
        parts = split(text)
        assert all(units(render(part)) <= MAX_UNITS for part in parts)
        assert re.sub(r"\s", "", "".join(shown(parts))) == re.sub(r"\s", "", text)


@pytest.mark.parametrize("gap", [" ", " " * 6, " " * 2000])
def test_a_long_run_of_signs_far_apart_is_shown_whole(gap: str) -> None:
    run = gap.join("#" * 600)
    parts = split(run)
    assert all(units(render(part)) <= MAX_UNITS for part in parts)
    assert re.sub(r"\s", "", "".join(shown(parts))) == "#" * 600


@pytest.mark.parametrize("begins", ["# ", "- ", "+ ", "* ", "> ", "~~~", "--- ", "*** ", "==="])
def test_what_stood_within_a_line_begins_nothing_where_the_line_is_cut(begins: str) -> None:
    line = f"{begins}word " * 500
    said = "".join(shown(split(f"so {line}")))
    assert said.count("word") == 500
    assert said.count(begins.strip()) >= 499


@pytest.mark.parametrize("mark", ["**", "`", "_"])
def test_a_format_that_begins_where_a_line_is_cut_stays_one(mark: str) -> None:
    parts = shown(split(" ".join(f"{mark}w{n}{mark}" for n in range(400))))
    assert len(parts) > 1
    assert "\\" not in "".join(parts)
    assert re.findall(r"w\d+", "".join(parts)) == [f"w{n}" for n in range(400)]
    assert "".join(parts).count(mark[0]) == 800


@pytest.mark.parametrize("source", ["```\n```", "~~~", "```\n\n```", "> ", "- \n- ", "**  **", "<b></b>"])
def test_where_nothing_would_be_seen_the_source_is(source: str) -> None:
    assert render(source).strip()


def test_quotes_stay_quotes() -> None:
    parts = shown(split("> " + "quoted words. " * 300))
    assert all(line.startswith("> ") for part in parts for line in part.split("\n"))


@pytest.mark.parametrize("symbol", ["👨‍👩‍👧‍👦", "🇰🇷", "👍🏽", "e\u0301", "한", "각"])
def test_no_grapheme_is_cut(symbol: str) -> None:
    parts = shown(split(symbol * 1000))
    assert "".join(parts) == symbol * 1000
    assert all(set(iter_graphemes(part)) == {symbol} for part in parts)


def test_one_grapheme_longer_than_a_message_is_cut_after_all() -> None:
    parts = split("e" + "\u0301" * 4000)
    assert all(units(render(part)) <= MAX_UNITS for part in parts)
    assert sum(part.count("\u0301") for part in parts) == 4000


WORDS = st.integers(0, 9999).map(lambda n: f"w{n}")
LINES = st.lists(WORDS, min_size=1, max_size=400).map(" ".join)
RUNS = st.builds(lambda sign, length: sign * length, st.sampled_from("*_#>-=+|[("), st.integers(1, 4000))
BLOCKS = st.one_of(
    LINES,
    LINES.map(lambda line: f"# {line}"),
    LINES.map(lambda line: f"> {line}"),
    LINES.map(lambda line: f"**{line}**"),
    st.lists(LINES, min_size=1, max_size=5).map(lambda lines: "\n".join(f"- {line}" for line in lines)),
    st.lists(LINES, min_size=1, max_size=5).map(lambda lines: "\n".join(f"{n}. {x}" for n, x in enumerate(lines, 1))),
    st.lists(LINES, min_size=1, max_size=5).map(lambda lines: "```\n" + "\n".join(lines) + "\n```"),
)


@settings(deadline=None, max_examples=40 * SCALE)
@given(st.lists(BLOCKS, min_size=1, max_size=8).map("\n\n".join))
def test_every_word_arrives_once_and_in_order(markdown: str) -> None:
    parts = split(markdown)
    assert all(units(render(part)) <= MAX_UNITS for part in parts)
    assert re.findall(r"w\d+", "\n".join(shown(parts))) == re.findall(r"w\d+", markdown)


@settings(deadline=None, max_examples=40 * SCALE)
@given(st.text(min_size=1, max_size=60), st.integers(1, 120))
def test_no_part_is_too_long_whatever_the_text(text: str, times: int) -> None:
    parts = split(text * times)
    assert all(units(render(part)) <= MAX_UNITS for part in parts)


@settings(deadline=None, max_examples=40 * SCALE)
@given(st.text(alphabet=st.sampled_from("ab가👍🏽 \n*_~#>-1.|[]()!:`\\"), min_size=1, max_size=80), st.integers(20, 80))
def test_no_letter_is_lost_whatever_the_marks(text: str, times: int) -> None:
    parts = shown(split(text * times))
    whole = [c for c in render(text * times) if c in "ab가👍"]
    assert len([c for part in parts for c in part if c in "ab가👍"]) >= len(whole)
    assert all(units(part) <= MAX_UNITS for part in parts)


@settings(max_examples=40 * SCALE)
@given(st.lists(st.one_of(WORDS, RUNS, LINES), min_size=1, max_size=6), st.sampled_from([" ", "\n", "\n\n", ""]))
def test_runs_of_signs_take_no_words_with_them(pieces: list[str], gap: str) -> None:
    source = gap.join(pieces)
    parts = split(source)
    assert all(units(render(part)) <= MAX_UNITS for part in parts)
    said = shown(parts)
    assert re.findall(r"w\d+", re.sub(r"\s", "", "".join(said))) == re.findall(r"w\d+", re.sub(r"\s", "", source))
    assert all(part.strip() for part in said)
