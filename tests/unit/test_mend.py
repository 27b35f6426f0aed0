"""The smallest change that gives a reply a property, and the honesty to do nothing where new words are needed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.checker import CheckerSpec, check
from app.domain.checker.mend import mend

TEA = "Tea is a drink. It is made from **leaves**. People like it."


def spec(*rules: tuple[str, object]) -> CheckerSpec:
    return CheckerSpec.parse(
        {"all": [{"kind": kind} if value is None else {"kind": kind, "value": value} for kind, value in rules]}
    )


@pytest.mark.parametrize(
    ("rules", "mended"),
    [
        ([("ends_with", "Stay curious!")], f"{TEA} Stay curious!"),
        ([("starts_with", "Well now,")], f"Well now, {TEA}"),
        ([("max_sentences", 1)], "Tea is a drink."),
        ([("max_words", 8)], "Tea is a drink."),
        ([("max_words", 6), ("ends_with", "Cheers!")], "Tea is a drink. Cheers!"),
        ([("bullet_list", None)], "- Tea is a drink.\n- It is made from **leaves**.\n- People like it."),
        ([("numbered_list", None)], "1. Tea is a drink.\n2. It is made from **leaves**.\n3. People like it."),
        ([("no_bold", None)], "Tea is a drink. It is made from leaves. People like it."),
        ([("uppercase", None)], TEA.upper()),
        ([("emoji", None)], f"{TEA} 🙂"),
    ],
)
def test_a_reply_is_mended(rules: list[tuple[str, object]], mended: str) -> None:
    assert mend(spec(*rules), TEA) == mended


def test_a_sentence_that_was_cut_off_goes_first() -> None:
    assert mend(spec(("ends_with", "Bye.")), "One is whole. Two is cut in the mi") == "One is whole. Bye."


def test_paragraphs_stay_paragraphs() -> None:
    text = "One is whole. So is this.\n\nTwo is as well. Three is cut in the mi"
    assert mend(spec(("ends_with", "Bye.")), text) == "One is whole. So is this.\n\nTwo is as well. Bye."


def test_what_must_stand_at_the_end_comes_soon() -> None:
    """An example whose end lies beyond the longest reply would teach to ramble."""
    rambling = " ".join(f"Sentence number {n} has six words." for n in range(40))
    mended = mend(spec(("ends_with", "Bye.")), rambling)
    assert mended == " ".join(f"Sentence number {n} has six words." for n in range(4)) + " Bye."
    assert mend(spec(("starts_with", "Well,")), rambling) == f"Well, {rambling}"
    assert mend(spec(("ends_with", "Bye.")), "word " * 100 + ".") == "word " * 99 + "word . Bye."


@pytest.mark.parametrize(
    "rules", [[("language", "ko")], [("korean_polite", None)], [("max_words", 2)], [("json", None)]]
)
def test_what_needs_new_words_is_not_mended(rules: list[tuple[str, object]]) -> None:
    assert mend(spec(*rules), TEA) is None


@pytest.mark.parametrize("ending", ["?", "!", "…", "？"])
def test_an_ending_without_a_letter_is_not_glued_on(ending: str) -> None:
    """Ending with a question takes a question."""
    assert mend(spec(("max_sentences", 1), ("ends_with", ending)), TEA) is None


def test_a_cut_that_ends_as_wanted_is_a_mended_reply() -> None:
    asked = spec(("max_sentences", 1), ("ends_with", "?"))
    assert mend(asked, "Do you like tea? It is a drink.") == "Do you like tea?"


def test_a_reply_that_fits_already_is_no_rewrite() -> None:
    assert mend(spec(("max_words", 50)), TEA) is None


@given(st.text(max_size=200), st.sampled_from([("ends_with", "Ok."), ("max_sentences", 2), ("bullet_list", None)]))
def test_whatever_is_mended_has_the_property(reply: str, rule: tuple[str, object]) -> None:
    asked = spec(rule)
    mended = mend(asked, reply)
    assert mended is None or check(asked, mended)
