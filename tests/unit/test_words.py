"""Words by themselves: the whole message counts, however it is written, and nothing inside a sentence."""

import pytest

from app.domain.words import Word, word


@pytest.mark.parametrize(
    ("said", "meaning"),
    [
        ("STOP", Word.LEAVE),
        (" stop. ", Word.LEAVE),
        ("Stop!!", Word.LEAVE),
        ("ＳＴＯＰ", Word.LEAVE),
        ("Unsubscribe", Word.LEAVE),
        ("opt  out", Word.LEAVE),
        ("수신거부", Word.LEAVE),
        ("수신 거부", Word.LEAVE),
        ("수신거부\u200b".removesuffix("\u200b") + "\n", Word.LEAVE),
        ("Start", Word.RETURN),
        ("시작", Word.RETURN),
        ("cancel", Word.QUIT),
        ("END", Word.QUIT),
        ("quit.", Word.QUIT),
        ("그만", Word.HALT),
        ("상담원", Word.PERSON),
        ("상담원!", Word.PERSON),
        ("Talk to a person.", Word.PERSON),
        ("bot", Word.BOT),
        ("봇", Word.BOT),
    ],
)
def test_a_word_by_itself(said: str, meaning: Word) -> None:
    assert word(said) is meaning


@pytest.mark.parametrize(
    "said",
    [
        "",
        "   ",
        "!!!",
        "👍",
        "please stop",
        "stop it",
        "don't stop",
        "how do I unsubscribe from this list?",
        "the end",
        "cancel my order",
        "start over",
        "수신거부는 어떻게 하나요?",
        "상담원 몇 명이에요?",
        "그만두고 싶어요",
        "/stop",
        "stop " * 2000,
    ],
)
def test_anything_else_is_a_message(said: str) -> None:
    assert word(said) is None
