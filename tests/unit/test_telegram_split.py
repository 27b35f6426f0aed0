"""Long replies in parts: each within the limits once rendered, cut where it hurts least, nothing lost."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wcwidth import iter_graphemes

from bots.telegram.marks import MAX_ENTITIES, MAX_UNITS, Rendered, clip
from bots.telegram.render import render
from bots.telegram.source import escape, to_markdown
from bots.telegram.split import cut, split
from tests.support.scale import SCALE
from tests.unit.test_telegram_render import MARKDOWN

FAMILY = "👨‍👩‍👧‍👦"


def parts_of(markdown: str) -> list[Rendered]:
    """Return the rendered parts, having checked what holds for all."""
    parts = [render(part) for part in split(markdown)]
    for part in parts:
        assert part.units <= MAX_UNITS
        assert len(part.marks) <= MAX_ENTITIES
        part.text.encode()
    assert "".join("".join(p.text.split()) for p in parts) == "".join(render(markdown).text.split())
    return parts


def test_what_fits_is_returned_as_it_came() -> None:
    assert split("**short** _reply_") == ["**short** _reply_"]
    assert split("") == [""]
    assert split("x" * 4096) == ["x" * 4096]


# https://github.com/openclaw/openclaw/issues/67396
def test_an_endless_word_is_cut_hard_and_whole() -> None:
    parts = parts_of("x" * 100_000)
    assert len(parts) == 25


# https://github.com/openclaw/openclaw/issues/93921
@pytest.mark.parametrize("symbol", ["😀", FAMILY, "🇰🇷", "e\u0301", "\u1112\u1161\u11ab", "👍🏽"])
def test_no_cut_goes_through_a_character_as_people_see_it(symbol: str) -> None:
    for part in parts_of(symbol * 5000):
        assert set(iter_graphemes(part.text)) == {symbol}


def test_a_character_longer_than_a_message_is_cut_all_the_same() -> None:
    assert len(parts_of("a" + "\u0301" * 9000)) == 3


# https://github.com/openclaw/openclaw/issues/31194 https://github.com/openclaw/openclaw/issues/57924
def test_the_rendered_length_counts() -> None:
    rows = "\n".join(f"| **{n}** | a & b < c > d {'x' * (n % 30)} |" for n in range(200))
    assert len(parts_of(f"| n | text |\n|---|---|\n{rows}")) > 1
    assert split("&amp;" * 4000) == ["&amp;" * 4000]


# https://github.com/openclaw/openclaw/issues/102910
def test_a_link_that_leaves_no_room_is_still_sent() -> None:
    assert [p.text for p in parts_of(f"[here](https://e.org/{'a' * 9000})")] == ["here"]
    long_label = parts_of(f"[{'label ' * 1500}](https://e.org)")
    assert {m.url for part in long_label for m in part.marks} == {"https://e.org"}


# https://github.com/openclaw/openclaw/issues/104473
def test_a_long_paragraph_is_cut_between_words() -> None:
    words = [f"word{n}" for n in range(2000)]
    assert " ".join(p.text for p in parts_of(" ".join(words))).split() == words


def test_cuts_prefer_paragraph_then_line_then_sentence() -> None:
    paragraphs = "\n\n".join("One line here.\nAnother line there." for _ in range(300))
    assert all(p.text.endswith("Another line there.") for p in parts_of(paragraphs))
    lines = "\n".join("Some words. More words" for _ in range(400))
    assert all(p.text.endswith("More words") for p in parts_of(lines))
    sentences = "It is so. " * 900
    assert all(p.text.endswith("so.") for p in parts_of(sentences))
    assert all(p.text.endswith("다。") for p in parts_of("한국어 문장이다。" * 900))


def test_code_is_closed_and_opened_again_with_its_language() -> None:
    code = "\n".join(f"value_{n} = `{n}`  # ```" for n in range(500))
    parts = parts_of(f"Before\n````python\n{code}\n````\nAfter")
    assert len(parts) > 2
    pres = [m for p in parts for m in p.marks]
    assert {(m.kind, m.language) for m in pres} == {("pre", "python")}
    assert all(
        line.startswith("value_") for p in parts for line in p.text.splitlines() if line not in {"Before", "After"}
    )


def test_indented_code_keeps_its_indent_after_a_cut() -> None:
    parts = parts_of("```\n" + "\n".join("    deep = 1" for _ in range(900)) + "\n```")
    assert all(line == "    deep = 1" for p in parts for line in p.text.splitlines())


def test_bold_and_links_are_not_cut_where_they_need_not_be() -> None:
    parts = parts_of("plain words " * 335 + "**bold and whole to its end** " + "tail " * 300)
    assert [p.text[m.start : m.end] for p in parts for m in p.marks] == ["bold and whole to its end"]


def test_bold_longer_than_a_message_is_bold_in_every_part() -> None:
    parts = parts_of(f"**{'bold words ' * 900}end**")
    assert all([m.kind for m in p.marks] == ["bold"] for p in parts)


def test_a_quote_longer_than_a_message_is_a_quote_in_every_part() -> None:
    parts = parts_of("> quoted line\n" * 900)
    assert all([m.kind for m in p.marks] == ["blockquote"] for p in parts)


def test_many_formats_make_more_parts_instead_of_fewer_formats() -> None:
    parts = parts_of(" ".join(f"`c{n}`" for n in range(250)))
    assert sum(len(p.marks) for p in parts) == 250


@settings(deadline=None)
@given(MARKDOWN, st.integers(0, 400), st.integers(1, 400))
def test_a_part_written_as_markdown_reads_as_itself(markdown: str, start: int, length: int) -> None:
    part = clip(render(markdown), start, start + length)
    again = render(to_markdown(part))
    assert again.text == part.text


@settings(deadline=None)
@given(st.text(max_size=200))
def test_escaped_text_reads_as_itself(text: str) -> None:
    plain = render(text).text.strip()
    assert render(escape(plain)).text == plain


@settings(max_examples=60 * SCALE, deadline=None)
@given(st.lists(MARKDOWN, min_size=1, max_size=6), st.integers(1, 40))
def test_any_long_reply_arrives_whole(pieces: list[str], times: int) -> None:
    whole = "\n".join(pieces * times)
    assert all(part.text.strip() for part in parts_of(whole)) or not render(whole).text.strip()


@settings(max_examples=60 * SCALE, deadline=None)
@given(st.text(st.sampled_from("a b.\n😀가é\u0301\u200d👩*`"), min_size=1, max_size=60), st.integers(50, 300))
def test_cuts_conserve_and_advance(piece: str, times: int) -> None:
    whole = render(piece * times)
    parts = list(cut(whole))
    assert "".join("".join(p.text.split()) for p in parts) == "".join(whole.text.split())
    assert len(parts) <= 2 * (whole.units // (MAX_UNITS // 4) + 1) + len(whole.marks)
