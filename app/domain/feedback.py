"""What a person said about a reply, and the rules that sort it before any judge is asked."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal
from uuid import UUID

ClassifiedBy = Literal["rule", "judge", "person", "reviewer"]


class FeedbackClass(StrEnum):
    """What kind of feedback it is."""

    WRONG_FACT = "wrong_fact"
    STYLE = "style"
    PREFERENCE = "preference"
    PERSONAL_FACT = "personal_fact"
    ONE_OFF = "one_off"
    TOPIC_CHANGE = "topic_change"
    ABUSE = "abuse"
    PRAISE = "praise"
    UNCLEAR = "unclear"


TO_MEMORY = frozenset({FeedbackClass.STYLE, FeedbackClass.PREFERENCE, FeedbackClass.PERSONAL_FACT})


@dataclass(frozen=True, slots=True)
class Classification:
    """A class with how sure we are (0-1), who decided, and the name of the rule or the judge."""

    kind: FeedbackClass
    confidence: float
    by: ClassifiedBy
    rule: str


@dataclass(frozen=True, slots=True)
class Feedback:
    """One stored thing a person said about a reply; `question`: by their own later word it was none, and was answered."""

    id: UUID
    turn_id: UUID
    person_id: UUID
    kind: str
    feedback_class: FeedbackClass | None
    text: str | None
    confidence: float | None
    language: str | None
    classified_by: ClassifiedBy | None = None
    spoken: bool = False
    question: bool = False


def _any(*words: str) -> re.Pattern[str]:
    return re.compile("|".join(words), re.IGNORECASE)


# The order is the precedence: the first rule that matches decides.
RULES: tuple[tuple[str, FeedbackClass, float, re.Pattern[str]], ...] = (
    ("insult", FeedbackClass.ABUSE, 0.9, _any(r"\b(fuck|idiot|stupid bot|piece of shit)\b", "시발|씨발|병신|꺼져")),
    (
        "just_this_time",
        FeedbackClass.ONE_OFF,
        0.8,
        _any(r"\b(just (this|for) (time|once|now)|this time only|for now)\b", "이번만|이번에만|지금만|한 번만"),
    ),
    (
        "about_myself",
        FeedbackClass.PERSONAL_FACT,
        0.8,
        _any(
            r"\bi(?:'m| am) (allergic|vegan|vegetarian|diabetic|a |an |from |in |\d+)",
            r"\bmy (name|birthday|job|wife|husband|son|daughter|dog|cat|allerg|city|timezone)\b",
            r"\bi (live|work|study|have a|have an)\b",
            r"(나는|저는|난|전)\s*\S+.{0,20}(알레르기|살아|삽니다|살고|이야|예요|입니다)",
            r"(내|제) (이름|생일|직업|아내|남편|아들|딸|강아지|고양이|나이)",
        ),
    ),
    (
        "how_to_answer",
        FeedbackClass.STYLE,
        0.85,
        _any(
            r"\b(shorter|longer|too long|too short|brief|concise|sentences?|words?|bullet|list|format|bold|emoji|tone|formal|"
            r"casual|polite|style|end (every|each|your|with)|start (every|each|your|with)|sign off|upper ?case|lower ?case)\b",
            r"\b(always|never|every time|from now on|whenever|please (use|write|answer|reply|keep|do not|don't|stop))\b",
            "짧게|길게|간단히|문장|단어|글머리|목록|굵게|이모지|말투|반말|존댓말|정중|형식|끝에|처음에|항상|언제나|절대|앞으로",
        ),
    ),
    (
        "that_is_wrong",
        FeedbackClass.WRONG_FACT,
        0.75,
        _any(
            r"\b(wrong|incorrect|not true|false|actually,? it(?:'s| is)|that(?:'s| is) not)\b",
            "틀렸|틀린|아니야|아니에요|아닙니다|사실은|잘못",
        ),
    ),
    (
        "likes",
        FeedbackClass.PREFERENCE,
        0.75,
        _any(r"\bi (prefer|like|love|hate|dislike|want|don't like)\b", "좋아해|싫어해|선호|원해"),
    ),
    (
        "thanks",
        FeedbackClass.PRAISE,
        0.7,
        _any(r"^\W*(thanks?|thank you|great|perfect|nice|good)\b", "^(고마워|감사|좋아|완벽|최고)"),
    ),
)

REASONS: dict[str, FeedbackClass] = {
    "fact": FeedbackClass.WRONG_FACT,
    "style": FeedbackClass.STYLE,
    "once": FeedbackClass.ONE_OFF,
    "topic": FeedbackClass.TOPIC_CHANGE,
}


def classify_by_rule(text: str) -> Classification:
    """Return the first rule's class for a correction in plain words, or `unclear` with confidence 0."""
    for name, kind, confidence, pattern in RULES:
        if pattern.search(text):
            return Classification(kind, confidence, "rule", name)
    return Classification(FeedbackClass.UNCLEAR, 0.0, "rule", "no_rule")


def classify_by_person(reason: str) -> Classification:
    """Return the class of the button a person pressed; a person's own choice stands above rule and judge."""
    return Classification(REASONS[reason], 1.0, "person", f"chose_{reason}")
