"""The fake's parsers against python-telegram-bot's writers: what the library escapes or renders must parse back."""

import datetime as dt
from collections.abc import Callable
from functools import partial
from html import escape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from telegram import Chat, Message, MessageEntity
from telegram.helpers import escape_markdown

from tests.fakes.telegram.errors import ApiError
from tests.fakes.telegram.markup_html import parse_html
from tests.fakes.telegram.markup_markdown import parse_markdown, parse_markdown_v2
from tests.fakes.telegram.text import MAX_TEXT, Entity, Formatted, finish, utf16

WORDS = st.text(st.sampled_from("ab 밥😀<>&\"'_*[]()~`#+-=|{}.!\\:/\n"), min_size=1, max_size=30)
KINDS = st.sampled_from(["bold", "italic", "underline", "strikethrough", "spoiler", "code", "pre", "text_link"])


@given(WORDS)
def test_escaped_html_is_plain_text(text: str) -> None:
    assert parse_html(escape(text)) == Formatted(text)


@given(WORDS)
def test_escaped_markdown_is_plain_text(text: str) -> None:
    assert parse_markdown_v2(escape_markdown(text, version=2)) == Formatted(text)


@given(WORDS, st.sampled_from([("`", "code"), ("```\n", "pre")]))
def test_escaped_code_is_code(text: str, mark: tuple[str, str]) -> None:
    opening, kind = mark
    escaped = escape_markdown(text, version=2, entity_type=kind)
    parsed = parse_markdown_v2(opening + escaped + opening.strip())
    assert parsed.text == text
    assert [(item.kind, item.length) for item in parsed.entities] == [(kind, utf16(text))]


@st.composite
def formatted(draw: st.DrawFn) -> Formatted:
    """Words in a row, some of them with one entity each."""
    text, entities = "", []
    for _ in range(draw(st.integers(1, 5))):
        word, kind = draw(st.text(st.sampled_from("ab밥😀<&.!*_"), min_size=1, max_size=8)), draw(KINDS | st.none())
        if kind is not None:
            extra = {"url": "https://example.org/?a=1&b=2"} if kind == "text_link" else {}
            entities.append(Entity(kind, utf16(text), utf16(word), extra))
        text += word + " | "
    return Formatted(text, tuple(entities))


def _as_message(body: Formatted) -> Message:
    entities = [MessageEntity(item.kind, item.offset, item.length, **item.extra) for item in body.entities]
    day = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    return Message(1, day, Chat(1, "private"), text=body.text, entities=entities)


@settings(max_examples=200)
@given(formatted())
def test_rendered_html_parses_back(body: Formatted) -> None:
    assert parse_html(_as_message(body).text_html) == body


@settings(max_examples=200)
@given(formatted())
def test_rendered_markdown_parses_back(body: Formatted) -> None:
    parsed = parse_markdown_v2(_as_message(body).text_markdown_v2)
    assert parsed.text == body.text
    assert parsed.entities == body.entities


def _attempt(parse: Callable[[], Formatted]) -> tuple[str, Formatted]:
    """The refusal, empty where there is none, and what was parsed."""
    try:
        return "", parse()
    except ApiError as error:
        return error.description, Formatted("")


@settings(max_examples=300)
@given(st.text(st.sampled_from("<>/b iua='\"&;lt#_*`[]()|~!.> \n밥😀"), max_size=40))
def test_any_markup_parses_or_is_refused(source: str) -> None:
    for parse in (parse_html, parse_markdown_v2, parse_markdown):
        refusal, parsed = _attempt(partial(parse, source))
        assert refusal.startswith("Bad Request: can't parse entities: ") or not refusal
        assert all(0 <= item.offset < item.end <= utf16(parsed.text) for item in parsed.entities)


@settings(max_examples=300)
@given(
    st.text(st.sampled_from("ab \n\t\r\u202e밥😀@/#"), min_size=1, max_size=20),
    st.lists(
        st.tuples(st.sampled_from(["bold", "italic", "code", "blockquote"]), st.integers(0, 10), st.integers(0, 10))
    ),
)
def test_what_is_kept_is_well_formed(text: str, ranges: list[tuple[str, int, int]]) -> None:
    draft = Formatted(text, tuple(Entity(*item) for item in ranges))
    refusal, kept = _attempt(lambda: finish(draft, MAX_TEXT))
    assert refusal.startswith("Bad Request: ") or not refusal
    assert kept.text == kept.text.strip()
    assert "\r" not in kept.text
    for first in kept.entities:
        assert 0 <= first.offset < first.end <= utf16(kept.text)
        assert kept.part(first)
        for second in kept.entities:
            apart = first.end <= second.offset or second.end <= first.offset
            nested = first.offset <= second.offset and second.end <= first.end
            nested |= second.offset <= first.offset and first.end <= second.end
            assert apart or nested


@pytest.mark.parametrize(
    ("source", "text", "kinds"),
    [
        ("**>hidden\n>more||", "", []),
        (">quote\n>more||\nrest", "quote\nmore\nrest", ["expandable_blockquote"]),
        ("||a|| _b_ __c__ ~d~", "a b c d", ["spoiler", "italic", "underline", "strikethrough"]),
        ("![👍](tg://emoji?id=53)", "👍", ["custom_emoji"]),
        ("[words](not a link)", "words", []),
    ],
)
def test_rarer_marks(source: str, text: str, kinds: list[str]) -> None:
    if not text:
        with pytest.raises(ApiError):
            parse_markdown_v2(source)
        return
    parsed = parse_markdown_v2(source)
    assert (parsed.text, [item.kind for item in parsed.entities]) == (text, kinds)
