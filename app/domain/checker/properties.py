"""Decides whether a reply has a property. Pure; English and Korean; an empty reply has none."""

import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from types import MappingProxyType

from app.domain.checker.spec import CheckerSpec, Rule
from app.domain.text import is_blank, storable

_BULLET = re.compile(r"^\s*[-*•·‣◦]\s+\S", re.MULTILINE)
_NUMBERED = re.compile(r"^\s*\d{1,2}[.)]\s+\S", re.MULTILINE)
_BOLD = re.compile(r"\*\*[^*\n]+\*\*|__[^_\n]+__|<b>|<strong>", re.IGNORECASE)
_MARKUP = re.compile(r"^\s*#{1,6}\s|```|`[^`\n]+`|^\s*>\s|\[[^\]\n]+\]\([^)\n]+\)", re.MULTILINE)
# ends a sentence: a full stop not inside a number, after a single initial, or after a short form
_SENTENCE_END = re.compile(
    r"(?<!\b[A-Za-z])(?<!\bMr)(?<!\bMs)(?<!\bDr)(?<!\bMrs)(?<!\be\.g)(?<!\bi\.e)[.!?。！？…]+[\"'”’)\]]*(?=\s|$)|\n+"
)
_LIST_MARK = re.compile(r"^\s*(?:[-*•·‣◦]|\d{1,2}[.)])\s+", re.MULTILINE)
_HANGUL = re.compile(r"[\uac00-\ud7a3\u1100-\u11ff\u3131-\u318e]")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")
_EMOJI = re.compile("[\U0001f300-\U0001faff\u2600-\u27bf\U0001f1e6-\U0001f1ff\u2b50\u2b55]")
_POLITE_END = re.compile(r"(?:요|죠|니다|니까|십시오|시오|답니다|랍니다|네요|세요)$")
_TRAILING = re.compile(r"[^\w가-힣]+$")
_PAIR = 2
_MAJORITY = 0.6


def check(spec: CheckerSpec, text: str) -> bool:
    """Whether a reply has every property; a blank reply has none."""
    return not failures(spec, text)


def failures(spec: CheckerSpec, text: str) -> tuple[Rule, ...]:
    """Return the rules that a reply breaks, in their order."""
    cleaned = storable(text).strip()
    if is_blank(cleaned):
        return spec.rules
    return tuple(rule for rule in spec.rules if not _holds(rule, cleaned))


def words(text: str) -> int:
    """Return the number of words; in Korean the space-separated units."""
    return sum(1 for word in text.split() if any(c.isalnum() for c in word))


def sentences(text: str) -> int:
    """Return the number of sentences; a line of its own counts as one."""
    bare = _LIST_MARK.sub("", text)
    return sum(1 for part in _SENTENCE_END.split(bare) if any(c.isalnum() for c in part))


def language(text: str) -> str | None:
    """Return `ko` or `en` by the letters used, or None where neither has a majority."""
    hangul, latin = len(_HANGUL.findall(text)), len(_LATIN.findall(text))
    # One Hangul syllable carries about what two Latin letters do.
    weight = 2 * hangul + latin
    if not weight:
        return None
    share = 2 * hangul / weight
    return "ko" if share >= _MAJORITY else "en" if share <= 1 - _MAJORITY else None


def normal(text: str) -> str:
    """Return the text as text rules compare it: NFKC, straight quotes, one blank, no case."""
    straight = text.translate(str.maketrans("“”‘’", "\"\"''"))
    return " ".join(unicodedata.normalize("NFKC", straight).casefold().split())


def _holds(rule: Rule, text: str) -> bool:
    if isinstance(rule.value, int):
        return _COUNTS[rule.kind](text, rule.value)
    if isinstance(rule.value, str):
        return _TEXTS[rule.kind](text, rule.value)
    return _FLAGS[rule.kind](text)


def _cased(text: str) -> list[str]:
    return [c for c in text if c.upper() != c.lower()]


def _is_json(text: str) -> bool:
    body = re.sub(r"^```(?:json)?\s*|\s*```$", "", text)
    try:
        return isinstance(json.loads(body), dict | list)
    except (ValueError, RecursionError):
        return False


def _korean_ends(text: str) -> list[str]:
    parts = [_TRAILING.sub("", part.strip()) for part in _SENTENCE_END.split(_LIST_MARK.sub("", text))]
    return [part for part in parts if part and _HANGUL.search(part[-1])]


def _polite(text: str) -> bool:
    ends = _korean_ends(text)
    return bool(ends) and all(_POLITE_END.search(end) for end in ends)


def _casual(text: str) -> bool:
    ends = _korean_ends(text)
    return bool(ends) and not any(_POLITE_END.search(end) for end in ends)


def _listed(pattern: re.Pattern[str], text: str) -> bool:
    return len(pattern.findall(text)) >= _PAIR


_COUNTS: Mapping[str, Callable[[str, int], bool]] = MappingProxyType(
    {
        "max_words": lambda text, n: words(text) <= n,
        "min_words": lambda text, n: words(text) >= n,
        "max_sentences": lambda text, n: sentences(text) <= n,
        "min_sentences": lambda text, n: sentences(text) >= n,
        "max_chars": lambda text, n: len(text) <= n,
    }
)
_TEXTS: Mapping[str, Callable[[str, str], bool]] = MappingProxyType(
    {
        "starts_with": lambda text, value: normal(text).startswith(normal(value)),
        "ends_with": lambda text, value: normal(text).endswith(normal(value)),
        "contains": lambda text, value: normal(value) in normal(text),
        "not_contains": lambda text, value: normal(value) not in normal(text),
        "regex": lambda text, value: re.search(value, text) is not None,
        "language": lambda text, value: language(text) == value,
    }
)
_FLAGS: Mapping[str, Callable[[str], bool]] = MappingProxyType(
    {
        "bullet_list": lambda text: _listed(_BULLET, text),
        "numbered_list": lambda text: _listed(_NUMBERED, text),
        "no_list": lambda text: not _BULLET.search(text) and not _NUMBERED.search(text),
        "no_bold": lambda text: not _BOLD.search(text),
        "plain_text": lambda text: not any(p.search(text) for p in (_BOLD, _MARKUP, _BULLET)),
        "uppercase": lambda text: bool(_cased(text)) and all(c == c.upper() for c in _cased(text)),
        "lowercase": lambda text: bool(_cased(text)) and all(c == c.lower() for c in _cased(text)),
        "emoji": lambda text: bool(_EMOJI.search(text)),
        "no_emoji": lambda text: not _EMOJI.search(text),
        "json": _is_json,
        "korean_polite": _polite,
        "korean_casual": _casual,
    }
)
