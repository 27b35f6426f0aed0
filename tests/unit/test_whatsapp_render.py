"""Markdown of replies as WhatsApp shows it: marks it knows, and words where it knows none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bots.whatsapp.render import render

CASES = {
    "bold": ("**bold** and __two words__", "*bold* and *two words*"),
    "italic": ("*soft* and _soft_", "_soft_ and _soft_"),
    # https://github.com/openclaw/openclaw/issues/14791
    "bold italic": ("***both***", "_*both*_"),
    "nested bold": ("**a **b** c**", "*a b c*"),
    "strike": ("~~gone~~", "~gone~"),
    "names of Python": ("call __init__ or a.__dict__ here", "call __init__ or a.__dict__ here"),
    "snake case": ("some_name_here and 2*3*4 = a**b**c", "some_name_here and 2*3*4 = abc"),
    "powers": ("x**2 + y**2 = z**2", "x**2 + y**2 = z**2"),
    "a tag alone": ("use <b> or </i>, <b>not</b> <s>", "use <b> or </i>, *not* <s>"),
    "code is left alone": ("`**x**` and `[a](b)`", "`**x**` and `[a](b)`"),
    "code with a backtick": ("``a`b``", "```a`b```"),
    "heading": ("# A **bold** title\ntext", "*A bold title*\ntext"),
    "link": ("[docs](https://e.org/a_b)", "docs (https://e.org/a_b)"),
    "link to itself": ("<https://e.org>", "https://e.org"),
    "picture": ("![a cat](https://e.org/c.png)", "a cat (https://e.org/c.png)"),
    "bullets": ("* one\n* two\n  * deep\n", "- one\n- two\n  - deep"),
    "numbers": ("1. one\n1. two\n", "1. one\n2. two"),
    "numbers on purpose": ("3. one\n5. two\n", "3. one\n5. two"),
    "quote": ("> said\n> twice\n\nmine", "> said\n> twice\n\nmine"),
    "fence": ("```python\na = '**x**'\n```", "```\na = '**x**'\n```"),
    "fence in a list": ("- do:\n\n  ```\n  x\n  ```\n", "- do:\n\n```\nx\n```"),
    "table": (
        "| Name | Age |\n|---|---|\n| **Ann** | 5 |\n| Bo | 7 |",
        "Name: *Ann*\nAge: 5\n\nName: Bo\nAge: 7",
    ),
    "rule": ("a\n\n---\n\nb", "a\n\n———\n\nb"),
    "spaces stay outside": ("<b> x </b>", "* x *"),
    "each line anew": ("**one\ntwo**", "*one*\n*two*"),
    "Korean": ("**굵게**입니다. **“인용”**은 이렇게", "*굵게*입니다. *“인용”*은 이렇게"),
    "line breaks": ("one\ntwo\n\nthree", "one\ntwo\n\nthree"),
}


@pytest.mark.parametrize(("markdown", "shown"), CASES.values(), ids=list(CASES))
def test_what_markdown_becomes(markdown: str, shown: str) -> None:
    assert render(markdown) == shown


def test_code_cannot_end_its_own_block() -> None:
    shown = render("````\n```\nx\n```\n````")
    assert shown.count("```") == 2


def test_what_lies_too_deep_is_shown_as_it_came() -> None:
    deep = "> " * 150 + "down here"
    assert "down here" in render(deep)


@given(st.text(alphabet=st.sampled_from("ab가 \n*_~#>-1.|[]()!:=\\"), max_size=200))
def test_nothing_visible_is_lost(text: str) -> None:
    shown = render(text)
    assert [c for c in shown if c.isalpha()] == [c for c in text if c.isalpha()]


@given(st.text(max_size=300))
def test_anything_at_all_can_be_shown(text: str) -> None:
    letters = [c for c in text if c.isalpha() and not c.isascii()]
    assert len([c for c in render(text) if c.isalpha() and not c.isascii()]) >= len(letters)
