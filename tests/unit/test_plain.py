"""Markdown as plain text: the marks go, nothing else does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bots.markdown import solid
from bots.plain import plain


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("**Memory**: I keep what *you* say.", "Memory: I keep what you say."),
        ("~~old~~ and `code`", "old and code"),
        ("# Title\n\nText", "Title\n\nText"),
        ("- **one**\n- two\n  - *three*", "- one\n- two\n  - three"),
        ("1. **first**\n2. second", "1. first\n2. second"),
        ("> **quoted**\n> lines", "> quoted\n> lines"),
        ("[tea](https://e.org/tea)", "tea (https://e.org/tea)"),
        ("<https://e.org>", "https://e.org"),
        ("2*3*4 and __init__ and snake_case_name", "2*3*4 and __init__ and snake_case_name"),
        ("```\nx = **y**\n```", "x = **y**"),
        ("```python\nx = 1\n```", "```python\nx = 1\n```"),
        ("| a | b |\n|---|---|\n| **1** | 2 |", "| a | b |\n|---|---|\n| 1 | 2 |"),
        ("**굵게** 씁니다", "굵게 씁니다"),
        (r"\*literal\*", "*literal*"),
        ("Which?\n\n/1 ⬜ Memory\n/2 ⬜ Learn", "Which?\n\n/1 ⬜ Memory\n/2 ⬜ Learn"),
        ("", ""),
        ("two  \nlines", "two\nlines"),
    ],
)
def test_marks_go_and_words_stay(markdown: str, shown: str) -> None:
    assert "\n".join(line.rstrip() for line in plain(markdown).split("\n")) == shown


@given(st.text("ab1 *_`~#>-[]()!\n\\|가", max_size=80))
def test_nothing_visible_is_lost(markdown: str) -> None:
    assert solid(plain(markdown)) >= solid(markdown)
