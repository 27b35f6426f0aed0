"""The checker of a lesson as data: a conjunction of rules, kept as JSON beside a memory line.

{"all": [{"kind": "max_words", "value": 20}, {"kind": "ends_with", "value": "Stay curious!"}]}

Text rules compare without regard to case and width; `regex` is for operators and refuses patterns that can be made
to run for ever. Knows nothing of how a rule is decided.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Self, get_args

from app.errors import InvalidInputError

TextKind = Literal["starts_with", "ends_with", "contains", "not_contains", "regex"]
CountKind = Literal["max_words", "min_words", "max_sentences", "min_sentences", "max_chars"]
FlagKind = Literal[
    "bullet_list",
    "numbered_list",
    "no_list",
    "no_bold",
    "plain_text",
    "uppercase",
    "lowercase",
    "emoji",
    "no_emoji",
    "json",
    "korean_polite",
    "korean_casual",
]
Kind = TextKind | CountKind | FlagKind | Literal["language"]
Drift = Literal["length", "repetition", "sameness", "praise", "refusal", "language", "format"]

TEXT_KINDS, COUNT_KINDS, FLAG_KINDS = (frozenset(get_args(kinds)) for kinds in (TextKind, CountKind, FlagKind))
LANGUAGES = frozenset({"en", "ko"})
MAX_RULES, MAX_TEXT, MAX_COUNT = 8, 200, 10_000
_LENGTH_KINDS = COUNT_KINDS
_FORMAT_KINDS = frozenset(
    {"bullet_list", "numbered_list", "no_list", "no_bold", "plain_text", "json", "uppercase", "lowercase"}
)
# a repeated group with a repetition inside, a reference back, or a look around
_DANGEROUS = re.compile(r"\([^)]*[*+}][^)]*\)\s*[*+{?]|\\[1-9]|\(\?[=!<P]")


@dataclass(frozen=True, slots=True)
class Rule:
    """One property; `value` is a text, a count, a language code or nothing, as its kind asks."""

    kind: Kind
    value: str | int | None = None

    def __post_init__(self) -> None:
        """Refuse a rule that cannot be decided.

        Raises:
            InvalidInputError: the kind is unknown or the value does not fit it.
        """
        if not _fits(self.kind, self.value):
            raise InvalidInputError(f"checker: {self.kind} does not take this value")

    def as_json(self) -> dict[str, object]:
        """Return the rule as JSON data."""
        return {"kind": self.kind} if self.value is None else {"kind": self.kind, "value": self.value}


@dataclass(frozen=True, slots=True)
class CheckerSpec:
    """Rules that must all hold."""

    rules: tuple[Rule, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.rules) <= MAX_RULES:
            raise InvalidInputError(f"checker: between 1 and {MAX_RULES} rules")

    @classmethod
    def parse(cls, data: Mapping[str, object]) -> Self:
        """Read a checker from JSON data.

        Raises:
            InvalidInputError: it is not one.
        """
        rules = data.get("all")
        if set(data) != {"all"} or not isinstance(rules, list):
            raise InvalidInputError('checker: expected {"all": [...]}')
        return cls(tuple(_rule(item) for item in rules))

    def as_json(self) -> dict[str, object]:
        """Return the checker as JSON data."""
        return {"all": [rule.as_json() for rule in self.rules]}

    @property
    def exempts(self) -> frozenset[Drift]:
        """The kinds of drift that this lesson is about, and that a gate must therefore not hold against it."""
        kinds = {rule.kind for rule in self.rules}
        exempt: set[Drift] = set()
        if kinds & _LENGTH_KINDS:
            exempt.add("length")
        if kinds & _FORMAT_KINDS:
            exempt.add("format")
        if kinds & {"language", "korean_polite", "korean_casual"}:
            exempt.add("language")
        return frozenset(exempt)


def _rule(item: object) -> Rule:
    if not isinstance(item, Mapping) or not set(item) <= {"kind", "value"} or not isinstance(item.get("kind"), str):
        raise InvalidInputError("checker: a rule is a kind and a value")
    return Rule(item["kind"], item.get("value"))


def _fits(kind: str, value: object) -> bool:
    if kind in TEXT_KINDS:
        text = isinstance(value, str) and bool(value.strip()) and len(value) <= MAX_TEXT
        return text and (kind != "regex" or _usable_pattern(str(value)))
    if kind in COUNT_KINDS:
        return type(value) is int and 1 <= value <= MAX_COUNT
    if kind == "language":
        return value in LANGUAGES
    return kind in FLAG_KINDS and value is None


def _usable_pattern(pattern: str) -> bool:
    if _DANGEROUS.search(pattern):
        return False
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True
