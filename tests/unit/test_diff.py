"""The word diff: spells both texts, keeps characters whole, marks only what changed in a Korean word, ends in time."""

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.diff import MAX_EDITS, Piece, clusters, word_diff


def nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def marked(before: str, after: str) -> str:
    signs = {"same": "{}", "gone": "[-{}-]", "new": "[+{}+]"}
    return "".join(signs[p.kind].format(p.text) for p in word_diff(before, after).pieces)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("the cat sat", "the dog sat", "the [-cat-][+dog+] sat"),
        ("the cat sat", "the cat sat", "the cat sat"),
        ("", "hello", "[+hello+]"),
        ("hello", "", "[-hello-]"),
        ("a b c d", "a x y d", "a [-b c-][+x y+] d"),
        ("Well, yes.", "Well, no.", "Well, [-yes-][+no+]."),
        ("one two", "one more two", "one [+more +]two"),
        ("나는 학교에 갔다", "나는 학교에서 왔다", "나는 학교에[+서+] [-갔-][+왔+]다"),
        ("커피가 좋아", "커피를 좋아해", "커피[-가-][+를+] 좋아[+해+]"),
        ("color", "colour", "[-color-][+colour+]"),
        ("don't go", "do not go", "[-don't-][+do not+] go"),
        ("<i>one</i>", "<i>two</i>", "<i>[-one-][+two+]</i>"),
        ("hi 👩‍👧 there", "hi 👩‍👦 there", "hi [-👩‍👧-][+👩‍👦+] there"),
        ("a few sentences", "two or three sentences", "[-a few-][+two or three+] sentences"),
        (
            "eight to ten minutes depending on the yolk. Then",
            "six minutes. Then",
            "[-eight to ten-][+six+] minutes[- depending on the yolk-]. Then",
        ),
    ],
)
def test_marks_what_changed(before: str, after: str, expected: str) -> None:
    assert marked(before, after) == expected


def test_composed_and_decomposed_korean_are_the_same() -> None:
    assert {p.kind for p in word_diff("한국어 좋아", unicodedata.normalize("NFD", "한국어 좋아")).pieces} == {"same"}


@pytest.mark.parametrize(
    "whole",
    [
        "한",
        unicodedata.normalize("NFD", "한"),
        "👩\u200d👩\u200d👧",
        "🇰🇷",
        "e\u0301",
        "👍🏽",
        "ᄀ\u1161\u11a8",
        "❤\ufe0f",
    ],
)
def test_one_seen_character_stays_whole(whole: str) -> None:
    assert clusters(f"a{whole}b") == ["a", whole, "b"]


def test_two_flags_are_two_characters() -> None:
    assert clusters("🇰🇷🇺🇸") == ["🇰🇷", "🇺🇸"]


def test_a_decomposed_syllable_is_never_split() -> None:
    before, after = (unicodedata.normalize("NFD", t) for t in ("먹고", "먹지"))
    assert word_diff(before, after).pieces == (
        Piece("same", unicodedata.normalize("NFD", "먹")),
        Piece("gone", unicodedata.normalize("NFD", "고")),
        Piece("new", unicodedata.normalize("NFD", "지")),
    )


mixed = st.text(alphabet="ab 가각나\n.,\u1100\u1161\u11a8\u0301👍\u200d🏽🇰🇷\ufe0f", max_size=40)


@given(mixed, mixed)
def test_spells_both_texts(before: str, after: str) -> None:
    pieces = word_diff(before, after).pieces
    assert nfc("".join(p.text for p in pieces if p.kind != "new")) == nfc(before)
    assert "".join(p.text for p in pieces if p.kind != "gone") == after


@given(mixed)
def test_clusters_lose_nothing(text: str) -> None:
    assert "".join(clusters(text)) == text


def test_similarity_tells_a_rewrite_from_an_instruction() -> None:
    reply = "You can boil an egg in about eight minutes if you like it firm."
    assert word_diff(reply, "You can boil an egg in eight minutes.").similarity > 0.5
    assert word_diff(reply, "please answer in Korean").similarity < 0.3


def test_long_hostile_texts_end_in_time() -> None:
    before, after = "a b " * 25_000, "b c a " * 16_000
    began = time.process_time()
    pieces = word_diff(before, after).pieces
    assert time.process_time() - began < 5
    assert nfc("".join(p.text for p in pieces if p.kind != "new")) == nfc(before)
    assert MAX_EDITS < 1000
