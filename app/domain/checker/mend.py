"""The smallest change that gives a reply a property: what a careful editor would do without writing anything new.

A small model seldom follows a correction at once; a mended reply is one of the rewrites that its person is offered, and
nothing is learnt from it before they say that it is what they meant. What needs new words (another language, another
tone, a missing fact) cannot be mended.
"""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from app.domain.checker.properties import check, words
from app.domain.checker.spec import CheckerSpec, Rule

_SENTENCE = re.compile(r"[^.!?。！？…\n]+(?:[.!?。！？…]+[\"'”’)\]]*|$)")
_LIST_MARK = re.compile(r"^\s*(?:[-*•·‣◦]|\d{1,2}[.)])\s+", re.MULTILINE)
_EMPHASIS = re.compile(r"\*\*|__|</?(?:b|strong)>|`+|^\s*#{1,6}\s|^\s*>\s", re.MULTILINE | re.IGNORECASE)
_EMOJI = re.compile("[\U0001f300-\U0001faff\u2600-\u27bf\U0001f1e6-\U0001f1ff\u2b50\u2b55\ufe0f]")
_ENDS_WHOLE = re.compile(r"[.!?。！？…][\"'”’)\]]*$")
# What must stand at the end is seldom reached by a model that imitates a long reply, nor by a training that draws short
# ones; as an example such a reply teaches only to ramble (measured: with 250 tokens, 3 of 3 replies were cut before their
# end; with 60 words, an adapter learnt nothing).
MOST_WORDS = 25
_AT_THE_END = frozenset({"ends_with", "emoji"})
# Shape first, then length, then what must stand at an edge: each step would undo an earlier one the other way round.
_ORDER = (
    "plain_text", "no_bold", "no_list", "no_emoji", "not_contains", "max_sentences", "max_words", "max_chars",
    "bullet_list", "numbered_list", "uppercase", "lowercase", "starts_with", "ends_with", "emoji",
)  # fmt: skip


def mend(spec: CheckerSpec, reply: str) -> str | None:
    """Return `reply` changed as little as possible so that it has every property; None where that needs new words."""
    text = _whole(reply.strip())
    if words(text) > MOST_WORDS and any(rule.kind in _AT_THE_END for rule in spec.rules):
        text = _within(text, lambda kept: words(kept) <= MOST_WORDS) or text
    for rule in sorted(spec.rules, key=lambda rule: _ORDER.index(rule.kind) if rule.kind in _ORDER else len(_ORDER)):
        step = _STEPS.get(rule.kind)
        if step is None:
            return None
        text = step(text, rule).strip()
    return text if text != reply.strip() and check(spec, text) else None


def _whole(text: str) -> str:
    """Drop a last sentence that was cut off, where a whole one stands before it."""
    if _ENDS_WHOLE.search(text):
        return text
    ends = [match.end() for match in _SENTENCE.finditer(text) if _ENDS_WHOLE.search(match.group())]
    return text[: ends[-1]] if ends else text


def _sentences(text: str) -> list[str]:
    return [s.strip() for s in _SENTENCE.findall(_LIST_MARK.sub("", text)) if s.strip()]


def _within(text: str, fits: Callable[[str], bool]) -> str:
    """Return as many sentences from the beginning as fit."""
    kept = ""
    for sentence in _sentences(text):
        longer = f"{kept} {sentence}".strip()
        if not fits(longer):
            break
        kept = longer
    return kept


def _count(rule: Rule) -> int:
    return rule.value if isinstance(rule.value, int) else 0


def _words_of(rule: Rule) -> str:
    return str(rule.value)


def _ended(text: str, rule: Rule) -> str:
    """Let the reply end with the rule's words; a mark alone ("?") belongs to a sentence that somebody has to write."""
    wanted = _words_of(rule)
    return f"{text} {wanted}" if any(char.isalnum() for char in wanted) else text


def _listed(text: str, mark: Callable[[int], str]) -> str:
    return "\n".join(f"{mark(number)} {sentence}" for number, sentence in enumerate(_sentences(text), 1))


_STEPS: Mapping[str, Callable[[str, Rule], str]] = MappingProxyType(
    {
        "plain_text": lambda text, _: _LIST_MARK.sub("", _EMPHASIS.sub("", text)),
        "no_bold": lambda text, _: _EMPHASIS.sub("", text),
        "no_list": lambda text, _: " ".join(_sentences(text)),
        "no_emoji": lambda text, _: _EMOJI.sub("", text),
        "not_contains": lambda text, rule: re.sub(re.escape(_words_of(rule)), "", text, flags=re.IGNORECASE),
        "max_sentences": lambda text, rule: " ".join(_sentences(text)[: _count(rule)]),
        "max_words": lambda text, rule: _within(text, lambda kept: words(kept) <= _count(rule)),
        "max_chars": lambda text, rule: _within(text, lambda kept: len(kept) <= _count(rule)),
        "bullet_list": lambda text, _: _listed(text, lambda _number: "-"),
        "numbered_list": lambda text, _: _listed(text, lambda number: f"{number}."),
        "uppercase": lambda text, _: text.upper(),
        "lowercase": lambda text, _: text.lower(),
        "starts_with": lambda text, rule: f"{_words_of(rule)} {text}",
        "ends_with": _ended,
        "emoji": lambda text, _: f"{text} 🙂",
    }
)
