"""Tables of a reply on each platform: what would grow beyond its source is text, everything else a table, nothing is lost."""

import re

import pytest

from bots.telegram.render import render as telegram
from bots.telegram.split import split as telegram_parts
from bots.web.render import html
from bots.whatsapp.render import render as whatsapp
from bots.whatsapp.split import split as whatsapp_parts


def table(columns: int, rows: int, row: str = "|x") -> str:
    return "\n".join(["|" + "a|" * columns, "|" + "-|" * columns, *([row] * rows)])


@pytest.mark.parametrize(("columns", "rows"), [(200, 200), (50, 50), (300, 300), (20, 200), (21, 1)])
def test_a_wide_table_of_short_rows_stays_as_short_as_it_was_written(columns: int, rows: int) -> None:
    source = table(columns, rows)
    assert len(html(source)) < 10 * len(source)
    assert len(telegram_parts(source)) <= 1 + len(source) // 2000
    assert len(whatsapp_parts(source)) <= 2 + len(source) // 700
    for shown in (html(source), telegram(source).text, whatsapp(source)):
        words = re.sub(r"<[^>]*>", "", shown)
        assert (words.count("a"), words.count("x")) == (columns, rows)


def test_long_labels_are_not_repeated_for_hundreds_of_short_rows() -> None:
    source = table(2, 300, "|x|y|").replace("a", "label " * 80)
    assert len(telegram_parts(source)) <= 2
    assert len(whatsapp_parts(source)) <= 5


def test_what_stands_around_such_a_table_is_drawn_as_before() -> None:
    source = f"**Look:**\n{table(100, 3)}\n\n{table(2, 1, '|x|y|')}\n"
    shown = html(source)
    assert "<strong>Look:</strong>" in shown
    assert (shown.count("<table>"), shown.count("<td>")) == (1, 2)


@pytest.mark.parametrize(
    "source",
    [
        table(20, 3, "|x" * 20),
        table(5, 2, "|x|\n|a|b|c|d|e|"),
        "Name | Age\n--- | ---\nAnn | 3",
        "| a |\n|---|\n| b |",
        "> | a | b |\n> |---|---|\n> | c | d |",
    ],
)
def test_an_ordinary_table_is_a_table(source: str) -> None:
    assert html(source).count("<table>") == 1


@pytest.mark.parametrize(
    "source", ["[Answer]: Paris", "[Answer]: Paris\n\n[1]: https://example.org 'x'", "a\n\n[b]: c"]
)
def test_what_looks_like_a_link_definition_is_shown(source: str) -> None:
    words = re.sub(r"<[^>]*>", "", html(source))
    assert [word for word in re.findall(r"\w+", source) if word not in words] == []
