"""A sign that stands alone is shown on each platform; what only looks empty inside a quote is not."""

import re

import pytest

from bots.telegram.render import render as telegram
from bots.web.render import html
from bots.whatsapp.render import render as whatsapp


def words(source: str) -> list[str]:
    """Return what is read of a source on each platform, without white space and bullets."""
    shown = (telegram(source).text, whatsapp(source), re.sub(r"<[^>]*>", "", html(source)).replace("&gt;", ">"))
    return [re.sub(r"^(•|- )|\s", "", text, flags=re.MULTILINE) for text in shown]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("- #\n- >\n- *\n- +", "#>*+"),
        ("for comments\n#\nor\n##", "forcomments#or##"),
        ("for quotes\n\n>\n\nsee", "forquotes>see"),
    ],
)
def test_a_sign_alone_is_that_sign(source: str, expected: str) -> None:
    assert words(source) == [expected] * 3


def test_a_blank_line_of_a_quote_in_a_quote_is_no_sign() -> None:
    assert telegram("> a\n> >\n> b").text == "a\n\nb"
    assert html("> a\n> >\n> b").count("&gt;") == 0
