"""Words that mean something by themselves where a channel has no menu: the whole message, in either language.

Inside a sentence they mean nothing. `quit` words ask in any case, because carriers know them as opting out; `halt` words
mean something only while a reply is being written. `stop` is both `leave` and, while a reply is being written, `halt`.
Opinions are about a reply; one that may as well be an answer to it ("good") is an opinion only where one was asked for.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Word(StrEnum):
    """What a word by itself means."""

    LEAVE = "leave"
    RETURN = "return"
    QUIT = "quit"
    HALT = "halt"
    PERSON = "person"
    BOT = "bot"


_SAID: Mapping[Word, tuple[str, ...]] = {
    Word.LEAVE: (
        "stop", "stopall", "stop all", "unsubscribe", "optout", "opt out", "opt-out", "revoke",
        "수신거부", "수신 거부", "수신거부합니다", "수신거부 해주세요", "구독취소", "구독 취소",
    ),
    Word.RETURN: ("start", "unstop", "resubscribe", "opt in", "optin", "opt-in", "시작", "수신동의", "수신 동의", "수신재개"),
    Word.QUIT: ("cancel", "end", "quit"),
    Word.HALT: ("그만", "멈춰", "중지", "취소", "그만해", "멈춰줘"),
    Word.PERSON: (
        "human", "a human", "real person", "talk to a person", "talk to a human", "talk to someone", "speak to a person",
        "speak to a human", "human please", "person please",
        "상담원", "상담사", "상담원 연결", "상담원연결", "상담원 연결해줘", "상담원 연결해주세요", "상담원 바꿔줘", "상담원이요",
        "사람이랑 얘기할래요", "사람과 얘기하고 싶어요", "사람이랑 얘기하고 싶어요", "사람과 통화하고 싶어요",
    ),
    Word.BOT: ("bot", "back to the bot", "봇", "봇으로", "다시 봇"),
}  # fmt: skip
_OPINIONS: Mapping[tuple[int, bool], tuple[str, ...]] = {
    (1, True): (
        "good answer", "good reply", "great answer", "great reply", "good bot", "thumbs up",
        "좋은 답변", "좋은 답변이에요", "좋은 답이에요", "답변 좋아요", "답변이 좋아요", "답이 좋아요",
    ),
    (-1, True): (
        "bad answer", "bad reply", "wrong answer", "bad bot", "thumbs down",
        "나쁜 답변", "나쁜 답변이에요", "답변 별로예요", "답변이 별로예요", "답이 별로예요", "답변 별로", "잘못된 답변이에요",
    ),
    (1, False): ("good", "very good", "great", "it was good", "좋아요", "좋아", "좋음", "좋았어요", "좋네요"),
    (-1, False): (
        "bad", "very bad", "not good", "it was bad", "별로예요", "별로에요", "별로", "별로였어요", "나빠요", "나쁨", "안 좋아요",
    ),
}  # fmt: skip
_THUMBS: Mapping[str, int] = {"👍": 1, "👎": -1}
# How a sign is drawn, and in which colour of skin, says nothing.
_DRAWN = "\ufe0e\ufe0f🏻🏼🏽🏾🏿"
_VIEWS = {said: kind for kind, every in _OPINIONS.items() for said in every}
_MEANINGS = {said: word for word, every in _SAID.items() for said in every}
# Fillers of Hangul count as letters, and nobody sees them; keyboards without a blank line write them for one.
_AROUND = re.compile("^[\\s\\W_\u115f\u1160]+|[\\s\\W_\u115f\u1160]+$")
# Who wants to stop what is being written means it even where the same word could mean leaving.
STOPS = frozenset({Word.LEAVE, Word.QUIT, Word.HALT})
ALSO_HALT = frozenset({"stop"})


@dataclass(frozen=True, slots=True)
class Opinion:
    """What words by themselves say of a reply: 1 or -1. `clear`: they can hardly be said of anything else."""

    value: int
    clear: bool


def bare(text: str) -> str:
    """Return a message as it is compared: small letters, single spaces, nothing around it."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(_AROUND.sub("", folded).split())


def word(text: str) -> Word | None:
    """Return what a message means that is nothing but one of the words; None for every other."""
    return None if text.lstrip().startswith("/") else _MEANINGS.get(bare(text))


def thumb(text: str) -> int | None:
    """Return the vote of what is nothing but a thumb; None for everything else."""
    return _THUMBS.get(text.strip().rstrip(_DRAWN))


def opinion(text: str) -> Opinion | None:
    """Return what a message says of a reply that is nothing but such words; None for every other."""
    found = None if text.lstrip().startswith("/") else _VIEWS.get(bare(text))
    return Opinion(*found) if found else None
