"""Somebody's words in a sentence of ours are shown as they are, whatever they look like to Markdown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.text import literal
from bots.web.render import html

KINDS = [
    "__init__", "*5* stars", "**bold**", "`code`", "[a](http://b.example)", "<b>x</b>", "~~gone~~", "a | b", "&amp; &lt;",
    "# no heading", "- no list\n+ neither\n1. nor this\n2) or this", "> no quote", "===", "\\*", "snake_case_name",
    "한국어 *강조* 아님", "```\nno fence", "1.", "  - deep",
]  # fmt: skip


def shown(text: str) -> str:
    """What a reader sees of it on the page, on one line."""
    import re
    from html import unescape

    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html(f"kept: {literal(text)}"))).split())


@pytest.mark.parametrize("text", KINDS)
def test_what_looks_like_a_mark_is_shown(text: str) -> None:
    assert shown(text) == " ".join(f"kept: {text}".split())


@given(st.text(alphabet="ab *_`[]()<>#+-=.!|~&\\\n1한", max_size=40))
def test_nothing_of_it_is_lost(text: str) -> None:
    assert shown(text).replace(" ", "") == f"kept:{text}".replace(" ", "").replace("\n", "")
