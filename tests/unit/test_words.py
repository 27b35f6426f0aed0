"""Words by themselves: the whole message counts, however it is written, and nothing inside a sentence."""

import pytest

from app.domain.messages import LANGUAGES, Language, text
from app.domain.words import _OPINIONS, _SAID, Opinion, Word, bare, opinion, word


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
        ("\u3164수신거부\u3164", Word.LEAVE),
        ("\u200bSTOP 🛑\ufe0f", Word.LEAVE),
        ("\u1109\u116e\u1109\u1175\u11ab\u1100\u1165\u1107\u116e", Word.LEAVE),
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


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("Good answer!", Opinion(1, clear=True)),
        ("thumbs  DOWN", Opinion(-1, clear=True)),
        ("답변이 좋아요.", Opinion(1, clear=True)),
        ("답변 별로예요", Opinion(-1, clear=True)),
        ("good", Opinion(1, clear=False)),
        ("Not good.", Opinion(-1, clear=False)),
        ("👍 Good", Opinion(1, clear=False)),
        ("👎 별로예요", Opinion(-1, clear=False)),
        ("좋아요!", Opinion(1, clear=False)),
        ("별로", Opinion(-1, clear=False)),
    ],
)
def test_an_opinion_by_itself(said: str, meant: Opinion) -> None:
    assert opinion(said) == meant


@pytest.mark.parametrize(
    "said",
    [
        "",
        "👍",
        "a good answer would be shorter",
        "good morning",
        "/good",
        "좋아요 눌러 주세요",
        "별로 안 커요",
        "yes",
        "no",
    ],
)
def test_no_opinion(said: str) -> None:
    assert opinion(said) is None


def test_no_opinion_is_a_command_and_each_is_found() -> None:
    opinions = [said for every in _OPINIONS.values() for said in every]
    assert len(set(opinions)) == len(opinions)
    assert not set(opinions) & {said for every in _SAID.values() for said in every}
    assert all(bare(said) == said for said in opinions)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("name", "value"), [("up", 1), ("down", -1)])
def test_who_sees_no_buttons_may_write_what_is_on_them(language: Language, name: str, value: int) -> None:
    said = opinion(text(language, f"template.ask.{name}"))
    assert said
    assert said.value == value
