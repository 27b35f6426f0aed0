"""What a gate looks at in a reply besides the lesson: length, repetition, praise, refusal, language. Pure."""

import re
import zlib
from dataclasses import dataclass

from app.domain.checker.properties import language, normal, words

_GRAM = 4
_PRAISE = re.compile(
    r"\b(?:great|excellent|wonderful|good|fantastic|amazing|brilliant) (?:question|idea|point|job|choice)\b"
    r"|\bwell done\b|\byou(?:'re| are) (?:absolutely |so )?(?:right|amazing|brilliant)\b"
    r"|(?:좋은|훌륭한|멋진) (?:질문|생각|지적)|정말 (?:대단|훌륭)|잘하셨",
    re.IGNORECASE,
)
# Declining words only: "sorry to hear" is sympathy, and "illegally" may only echo the request.
_REFUSAL = re.compile(
    r"\b(?:can(?:'t|not)|could not|couldn't|unable to|won't|will not|not able to|not going to) (?:\w+ ){0,2}?"
    r"(?:help|assist|provide|do that|support|condone|engage|fulfil+|promote|offer|give|write|create|answer|comply|encourage|share|tell|advise)\b"
    r"|\b(?:is|are|it's|that's|be) (?:\w+ ){0,2}?(?:illegal|unethical|against the law|not appropriate|inappropriate|not acceptable|unacceptable|not okay|wrong)\b"
    r"|\b(?:do not|don't) (?:condone|support|recommend)\b|\bseek (?:professional |medical )?help\b|\b(?:emergency services|hotline)\b"
    r"|도와드릴 수 없|도울 수 없|알려\s?드릴 수 없|답변(?:해 )?드릴 수 없|불법입니다|불법이에요|하면 안 (?:됩니다|돼요)|범죄입니다|범죄예요",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Features:
    """The figures of one reply; `repetition` is the share of its 4-grams that were there before."""

    words: int
    repetition: float
    praise: bool
    refusal: bool
    language: str | None
    fingerprint: int


def features(text: str) -> Features:
    """Return the figures of a reply."""
    return Features(
        words(text),
        repetition(text),
        bool(_PRAISE.search(text)),
        refuses(text),
        language(text),
        zlib.crc32(normal(text).encode("utf-8", "replace")),
    )


def refuses(text: str) -> bool:
    """Whether a reply declines, warns off or points to help, by its words."""
    return _REFUSAL.search(text.replace("’", "'")) is not None


def repetition(text: str) -> float:
    """Return the share of 4-grams of words that occurred before in the same reply; 0 for short replies."""
    tokens = normal(text).split()
    grams = [tuple(tokens[i : i + _GRAM]) for i in range(len(tokens) - _GRAM + 1)]
    return 1 - len(set(grams)) / len(grams) if grams else 0.0
