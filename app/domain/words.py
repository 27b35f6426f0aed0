"""Words that mean something by themselves where a channel has no menu: the whole message, in either language.

Inside a sentence they mean nothing. `quit` words ask in any case, because carriers know them as opting out; `halt` words
mean something only while a reply is being written. `stop` is both `leave` and, while a reply is being written, `halt`.
"""

import re
import unicodedata
from collections.abc import Mapping
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
_MEANINGS = {said: word for word, every in _SAID.items() for said in every}
_AROUND = re.compile(r"^[\s\W_]+|[\s\W_]+$")
# Who wants to stop what is being written means it even where the same word could mean leaving.
STOPS = frozenset({Word.LEAVE, Word.QUIT, Word.HALT})
ALSO_HALT = frozenset({"stop"})


def bare(text: str) -> str:
    """Return a message as it is compared: small letters, single spaces, nothing around it."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(_AROUND.sub("", folded).split())


def word(text: str) -> Word | None:
    """Return what a message means that is nothing but one of the words; None for every other."""
    return None if text.lstrip().startswith("/") else _MEANINGS.get(bare(text))
