"""A reply on the page: formulas keep their stars, formats next to Korean letters are formats."""

from html import unescape

import pytest

from bots.plain import plain
from bots.telegram.marks import Rendered
from bots.telegram.render import render as telegram
from bots.web.render import html
from bots.whatsapp.render import render as whatsapp


@pytest.mark.parametrize(
    "formula", ["5*4*3*2*1 = 120", "x**2 + y**2 = z**2", "(a+b)*c*(d+e)*f", "src/*.py and tests/*.py"]
)
def test_a_formula_is_shown_as_it_is(formula: str) -> None:
    assert html(formula) == f"<p>{formula}</p>\n"


@pytest.mark.parametrize("sign", ["#", "*", ">", "-", "`", "***", "```", "|", "+ - *", "~~~", "[]()"])
def test_a_sign_alone_is_shown_everywhere(sign: str) -> None:
    assert unescape(html(sign)) == f"<p>{sign}</p>\n"
    assert telegram(sign) == Rendered(sign)
    assert whatsapp(sign) == plain(sign) == sign


def test_bold_works_next_to_korean_letters() -> None:
    assert html("**'정답'**은") == "<p><strong>'정답'</strong>은</p>\n"
