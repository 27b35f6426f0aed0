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


@pytest.mark.parametrize("breaks", ["<br><br>", "<br>\n<br>", " <BR/> <br /> ", "**<br>**"])
def test_an_answer_of_nothing_but_line_breaks_is_shown_as_it_is_written(breaks: str) -> None:
    """A platform refuses what nobody could see; on a page it would be an empty answer."""
    shown = [telegram(breaks).text, whatsapp(breaks), plain(breaks)]
    assert shown == [breaks.strip()] * 3
    if "*" not in breaks:
        assert unescape(html(breaks)) == f"<p>{breaks.strip()}</p>\n"


@pytest.mark.parametrize("sign", ["#", "*", ">", "-", "`", "***", "```", "|", "+ - *", "~~~", "[]()", "<br>", "<BR/>"])
def test_a_sign_alone_is_shown_everywhere(sign: str) -> None:
    assert unescape(html(sign)) == f"<p>{sign}</p>\n"
    assert telegram(sign) == Rendered(sign)
    assert whatsapp(sign) == plain(sign) == sign


def test_bold_works_next_to_korean_letters() -> None:
    assert html("**'정답'**은") == "<p><strong>'정답'</strong>은</p>\n"


BREAKS = ["<br>", "<br/>", "<br />", "<BR>", "</br>", "<br>\n", "<br/>  \n"]


@pytest.mark.parametrize("tag", BREAKS)
def test_a_line_break_in_html_breaks_the_line_everywhere(tag: str) -> None:
    source = f"one{tag}two"
    assert html(source) == "<p>one<br>\ntwo</p>\n"
    assert telegram(source).text == whatsapp(source) == plain(source) == "one\ntwo"


def test_a_line_break_in_a_table_stays_in_its_cell() -> None:
    source = "| a | b |\n|---|---|\n| one<br>two | three |\n| four | five |"
    assert "<td>one<br>\ntwo</td>\n<td>three</td>" in html(source)
    assert telegram(source).text == "a    | b\n-----+------\none  | three\ntwo  |\nfour | five"
    assert whatsapp(source) == "a: one\ntwo\nb: three\n\na: four\nb: five"
    assert plain(source) == "| a | b |\n|---|---|\n| one two | three |\n| four | five |"


@pytest.mark.parametrize(
    "source", ["`<br>`", "```\n<br>\n```", "\\<br>", "<br onclick=x>", "<brx>", "<script>x</script>", "a < br > b"]
)
def test_what_is_no_line_break_stays_text(source: str) -> None:
    words = source.strip("`\n").removeprefix("\\")
    assert words in unescape(html(source))
    assert "<br>" not in html(source)
    assert "<script" not in html(source)
    assert words in telegram(source).text
    assert words in whatsapp(source)
    assert words in plain(source)
