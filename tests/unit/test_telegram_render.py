"""What a model's Markdown looks like on Telegram: right formats, nothing lost, whatever is broken about it."""

import re
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bots.telegram.marks import MAX_ENTITIES, Mark, entities, settle
from bots.telegram.render import render, telegram_text

LETTERS = st.text(string.ascii_letters + string.digits + "가나다漢字😀é", min_size=1, max_size=8)
SYNTAX = st.sampled_from([
    "**", "*", "_", "__", "~~", "`", "```", "```python\n", "~~~", "\n", "\n\n", "  ", "# ", "- ", "1. ", "> ", ">> ", "| ",
    " |", "|---|---|\n", "[", "](", ")", "![", "](https://e.org/a_b)", "<b>", "</b>", "<i>", "<br>", "<x>", "\\", "&amp;",
    "***", "---\n", "===\n", "    ", "||", "(", "'", '"', "“", "。", "\t", "</think>", "<https://e.org>", "[a]: /u 't'\n",
])  # fmt: skip
EMPTIES = st.sampled_from([
    "", "-", "- a", "- \n  - b", "1.", "2. c", "1. -", "*", "+ d", "#", "## e", ">", "> f", "> > g", ">> ", "> - ", "> | h | |",
    "> |---|---|", "> | | i |", "| j | |", "|---|---|", "| | |", "| | k |", "||", "- | l | |", "  |---|---|", "---", "```",
])  # fmt: skip
MARKDOWN = st.lists(st.one_of(LETTERS, SYNTAX, st.just(" ")), max_size=60).map("".join)


def formats(markdown: str) -> list[tuple[str, str]]:
    shown = render(markdown)
    return [(m.kind, shown.text[m.start : m.end]) for m in shown.marks]


@pytest.mark.parametrize(
    ("markdown", "text", "marks"),
    [
        ("# Plan\nGo **now**", "Plan\nGo now", [("bold", "Plan"), ("bold", "now")]),
        ("*a* _b_ ~~c~~ `d`", "a b c d", [("italic", "a"), ("italic", "b"), ("strikethrough", "c"), ("code", "d")]),
        ("***both***", "both", [("bold", "both"), ("italic", "both")]),
        ("[docs](https://e.org/x)", "docs", [("text_link", "docs")]),
        ("[docs](/local)", "docs (/local)", []),
        ("https://e.org and <https://e.org/b>", "https://e.org and https://e.org/b", []),
        ("![chart](https://e.org/c.png)", "chart", [("text_link", "chart")]),
        ("> wise\n> words", "wise\nwords", [("blockquote", "wise\nwords")]),
        ("> outer\n>> inner", "outer\ninner", [("blockquote", "outer\ninner")]),
        ("**so `x` it**", "so x it", [("bold", "so"), ("code", "x"), ("bold", "it")]),
        ("a\n\n---\n\nb", "a\n\n———\n\nb", []),
        ("1. one\n1. two\n1. three", "1. one\n2. two\n3. three", []),
        ("5. five\n6. six", "5. five\n6. six", []),
        ("<u>under</u> <div>stays</div>", "under <div>stays</div>", [("underline", "under")]),
        ("one<br>two", "one\ntwo", []),
        ("```\n```", "```\n```", []),
        ("signs:\n- #\n- >\n- *\n- +\n- -", "signs:\n• #\n• >\n• *\n• +\n• -", []),
        ("1. >\n2. #", "1. >\n2. #", []),
        ("Write\n##\nand\n\n>\n\nfor a quote", "Write\n##\nand\n\n>\n\nfor a quote", []),
        ("> #\n>\n> a", "#\n\na", [("blockquote", "#\n\na")]),
        ("- \n- a\n-", "• \n• a\n•", []),
        ("- - a", "• • a", []),
        (
            "| sign | |\n|---|---|\n| # | |\n| | x |",
            "sign |\n-----+--\n#    |\n     | x",
            [("pre", "sign |\n-----+--\n#    |\n     | x")],
        ),
        ("", "", []),
        ("   \n\t ", "", []),
    ],
)
def test_what_markdown_becomes(markdown: str, text: str, marks: list[tuple[str, str]]) -> None:
    assert render(markdown).text == text
    assert formats(markdown) == marks


# https://github.com/n3d1117/chatgpt-telegram-bot/issues/151
def test_an_unclosed_fence_with_the_words_of_an_error_is_code() -> None:
    shown = render("Set it like this:\n```python\nsend(parse_mode='x_y')")
    assert shown.text == "Set it like this:\nsend(parse_mode='x_y')"
    assert shown.marks == (Mark("pre", 18, 40, language="python"),)


# https://github.com/rikkichy/ollama-telegram/issues/27
@pytest.mark.parametrize(
    "broken", ["**never closed", "a **b* c", "_x **y_ z**", "** spaced **", "*" * 999, "`half", "[l]("]
)
def test_unbalanced_marks_stay_readable(broken: str) -> None:
    kept = [c for c in render(broken).text if c.isalpha()]
    assert kept == [c for c in broken if c.isalpha()]


# https://github.com/skoropadas/telegramify-markdown/issues/10
def test_a_fence_inside_a_markdown_fence_does_not_end_it() -> None:
    shown = render("```markdown\nWrite:\n```python\nprint(1)\n```\nDone.\n```\nAfter.")
    assert shown.text == "Write:\n```python\nprint(1)\n```\nDone.\nAfter."
    assert [(m.kind, m.language) for m in shown.marks] == [("pre", "markdown")]


# https://github.com/skoropadas/telegramify-markdown/issues/3
def test_code_of_two_stars_in_a_list_item_beside_bold() -> None:
    assert render("- use `**` for **strong** text").text == "• use ** for strong text"
    assert formats("- use `**` for **strong** text") == [("code", "**"), ("bold", "strong")]


# https://github.com/sudoskys/telegramify-markdown/issues/99
def test_nested_items_have_a_line_each_and_paragraphs_stay_apart() -> None:
    tree = render("- lib/\n  - ui/\n    - Menu.tsx\n- end\n\n  second thought\n")
    assert tree.text == "• lib/\n  • ui/\n    • Menu.tsx\n• end\n\n  second thought"


# https://github.com/python-telegram-bot/python-telegram-bot/issues/1663
@pytest.mark.parametrize(
    "name",
    [
        "snake_case_name", "@a_b_c", "x_1 and y_2",
        "2*3*4=24", "5*4*3*2*1 = 120", "a*b + c*d", "x**2 + y**2 = z**2", "(a+b)*c*(d+e)*f", "(a+b)**2 and (c)**2",
        "f(x)=2*x, g(x)=3*x", "$5*2 and $6*3", "10~~20 and 3~~4", "src/*.py and tests/*.py", "a/**/*.py, b/**/*.py",
        "3*4*5원", "π*r*r",
    ],
)  # fmt: skip
def test_names_and_formulas_with_markup_characters_survive(name: str) -> None:
    assert f"Hello {name}!" in render(f"Hello {name}!").text


def test_a_format_beside_letters_is_still_one() -> None:
    assert formats("**W**orld re**do**ne, **a**/**b** and *un*done") == [
        ("bold", "W"), ("bold", "do"), ("bold", "a"), ("bold", "b"), ("italic", "un"),
    ]  # fmt: skip


# https://github.com/agentscope-ai/QwenPaw/issues/7590
def test_a_table_is_padded_and_what_is_no_table_is_left() -> None:
    shown = render("| 이름 | n |\n|:--|--:|\n| 사과 | 3 |\n| fig | **12** |")
    assert shown.text == "이름 | n\n-----+---\n사과 | 3\nfig  | 12"
    assert [m.kind for m in shown.marks] == ["pre"]
    assert render("this | that ||hidden||").text == "this | that ||hidden||"


def test_a_wide_table_becomes_a_list_with_its_formats() -> None:
    shown = render(f"| what | where |\n|---|---|\n| {'long ' * 12} | [map](https://e.org) |\n| b | c |")
    assert shown.text.startswith("• what: long long")
    assert shown.text.endswith("\n  where: map\n• what: b\n  where: c")
    assert [(m.kind, m.url) for m in shown.marks] == [("text_link", "https://e.org")]


def test_surplus_cells_of_a_table_are_not_lost() -> None:
    assert "surplus" in render("**b**\n\n| a |\n|---|\n| x | surplus |").text
    assert formats("**b**\n\n| a |\n|---|\n| x | surplus |") == [("bold", "b")]


@pytest.mark.parametrize("markdown", ["**'정답'**은", "은**(가)**는", "**「人」**は", "**끝.**이다"])
def test_bold_works_next_to_letters_of_languages_without_spaces(markdown: str) -> None:
    assert [kind for kind, _ in formats(markdown)] == ["bold"]


def test_definitions_titles_and_file_names_are_shown() -> None:
    shown = render('[a]: https://e.org "T"\n\n[b](https://e.org "Title")\n\n```py main.py\nx\n```').text
    assert '[a]: https://e.org "T"' in shown
    assert "b (Title)" in shown
    assert "main.py\nx" in shown


def test_depth_that_the_parser_does_not_follow_is_shown_as_it_came() -> None:
    deep = ">" * 400 + " bottom"
    assert render(deep).text == deep


@pytest.mark.parametrize(
    "hostile", ["\x00a\ud800b", "\u202edlrow", "a\r\nb\u2028c\x0bd", "[" * 5000, "*a_" * 3000, "`" * 7000]
)
def test_hostile_text_neither_raises_nor_takes_long(hostile: str) -> None:
    shown = render(hostile).text
    shown.encode()
    assert "\x00" not in shown


def test_offsets_count_utf16_units() -> None:
    text, (bold, code) = telegram_text("👨‍👩‍👧 **굵게** 😀 `x`")
    wide = text.encode("utf-16-le")
    assert wide[bold.offset * 2 : (bold.offset + bold.length) * 2].decode("utf-16-le") == "굵게"
    assert wide[code.offset * 2 : (code.offset + code.length) * 2].decode("utf-16-le") == "x"


def test_more_formats_than_telegram_shows_keep_the_links() -> None:
    text, shown = telegram_text(" ".join(f"**b{n}**" for n in range(150)) + " [l](https://e.org)")
    assert len(shown) == MAX_ENTITIES
    assert shown[-1].kind == "text_link"
    assert "b149" in text


def test_marks_that_cross_are_cut_into_nested_ones() -> None:
    marks = settle("abcdefgh", [Mark("bold", 0, 5), Mark("italic", 3, 8)])
    assert marks == (Mark("bold", 0, 5), Mark("italic", 3, 5), Mark("italic", 5, 8))


def solid(text: str) -> list[str]:
    return [c for c in text if c.isalnum()]


@settings(deadline=None)
@given(MARKDOWN)
def test_whatever_comes_is_valid_and_no_word_is_lost(markdown: str) -> None:
    shown = render(markdown)
    assert shown.text == shown.text.rstrip()
    for before, after in zip(shown.marks, shown.marks[1:], strict=False):
        assert (before.start, -before.end) <= (after.start, -after.end)
        assert after.start >= before.end or after.end <= before.end or before.kind == "blockquote"
    assert all(0 <= m.start < m.end <= len(shown.text) for m in shown.marks)
    hidden = "".join((m.url or "") + (m.language or "") for m in shown.marks)
    plain = markdown.replace("&amp;", "&")
    for tag in ("<b>", "</b>", "<i>", "<br>"):
        plain = plain.replace(tag, "")
    assert len(solid(shown.text + hidden)) >= len(solid(plain))


@settings(deadline=None)
@given(st.lists(EMPTIES, max_size=12).map("\n".join))
def test_of_empty_items_cells_and_quotes_no_word_is_lost(markdown: str) -> None:
    wide = re.sub(r"[^a-z]", "", render(markdown).text)
    # A list of rows repeats the labels of its head.
    words = iter(wide)
    assert all(word in words for word in re.sub(r"[^a-z]", "", markdown))


@given(st.lists(st.sampled_from(["#", "##", ">", "*", "+", "-"]), min_size=1, max_size=6))
def test_signs_that_are_listed_are_shown(signs: list[str]) -> None:
    shown = render("The signs:\n" + "\n".join(f"- {sign}" for sign in signs)).text
    assert shown == "The signs:\n" + "\n".join(f"• {sign}" for sign in signs)


@settings(deadline=None)
@given(st.text(max_size=300))
def test_any_text_at_all_renders(text: str) -> None:
    shown = render(text)
    at = len(shown.text.encode("utf-16-le")) // 2
    assert all(e.offset + e.length <= at for e in entities(shown))
