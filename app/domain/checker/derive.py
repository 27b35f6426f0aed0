"""From a correction in plain words, English or Korean, to rules a machine can decide; or to None.

    words ─► candidate rules ─► keep those that every approved reply has ─► each rejected reply must break one

Reading words is guesswork; the examples decide. What neither names nor shows a decidable property has no checker.
"""

import math
import re
from collections.abc import Callable, Iterator, Sequence

from app.domain.checker.properties import check, failures, words
from app.domain.checker.spec import MAX_RULES, MAX_TEXT, CheckerSpec, FlagKind, Rule, TextKind

_ENGLISH = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_KOREAN = ("한", "두", "세", "네", "다섯", "여섯", "일곱", "여덟", "아홉", "열")
_NUMBERS = {word: number for names in (_ENGLISH, _KOREAN) for number, word in enumerate(names, 1)} | {
    "a": 1,
    "single": 1,
    "twelve": 12,
    "fifteen": 15,
    "twenty": 20,
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "hundred": 100,
    "하나": 1,
    "스무": 20,
    "서른": 30,
}
_N = rf"(?P<n>\d{{1,4}}|{'|'.join(sorted(_NUMBERS, key=len, reverse=True))})"
_AT_MOST = r"(?:under|below|fewer than|less than|at most|no more than|not more than|within|up to|maximum(?: of)?|max|in|to|only|just|use)"
_QUOTED = re.compile(r"""(?:(?<=\s)|(?<=^)|(?<=[:(]))["'“‘「『](?P<q>.+?)["'”’」』](?=$|[\s.,;:!?)]|[가-힣])""")
_NEGATED = re.compile(
    r"\b(?:no|not|don'?t|do not|never|stop|avoid|without|skip|drop|remove|quit)\b"
    r"|하지\s?마|쓰지\s?마|말고|말아|빼|없이|금지|그만|안\s?돼|싫",
    re.IGNORECASE,
)

_COUNT_PATTERNS: tuple[tuple[str, str], ...] = (
    ("max_words", rf"(?:{_AT_MOST})\s+{_N}\s+words?\b"),
    ("max_words", rf"\b{_N}\s+words?\s+(?:or (?:less|fewer)|max|maximum|at most|tops)\b"),
    ("max_words", rf"{_N}\s?(?:단어|어절|낱말)\s?(?:이하|이내|안|안으로|미만|까지|넘지)"),
    ("min_words", rf"(?:at least|more than|over|minimum(?: of)?)\s+{_N}\s+words?\b"),
    ("min_words", rf"\b{_N}\s+words?\s+or more\b"),
    ("min_words", rf"{_N}\s?(?:단어|어절|낱말)\s?(?:이상|넘게)"),
    ("max_sentences", rf"\b{_N}\s+(?:short\s+|single\s+|simple\s+)?sentences?\b"),
    ("max_sentences", rf"{_N}\s?문장"),
    ("max_sentences", r"문장\s?(?P<n>하나)"),
    ("max_chars", rf"(?:{_AT_MOST})\s+{_N}\s+characters?\b"),
    ("max_chars", rf"{_N}\s?(?:자|글자)\s?(?:이하|이내|안|안으로|미만|까지|넘지)"),
)
_AT_LEAST_SENTENCES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (rf"(?:at least|more than)\s+{_N}\s+sentences?", rf"{_N}\s?문장\s?이상")
)
# kind when asked for, kind when asked not to, words
_FLAG_PATTERNS: tuple[tuple[FlagKind | None, FlagKind | None, str], ...] = (
    ("bullet_list", "no_list", r"\bbullet(?:s|ed)?\b|bullet[- ]?points?|글머리|불릿|항목별|목록|리스트"),
    ("numbered_list", "no_list", r"\bnumber(?:ed|ing)\b|\bnumber the\b|번호"),
    (None, "no_list", r"\blists?\b"),
    (None, "no_bold", r"\bbold(?:face)?\b|굵은|굵게|볼드|\*\*"),
    (None, "plain_text", r"\bmarkdown\b|\bformatting\b|마크다운|서식"),
    ("plain_text", None, r"\bplain text\b|평문"),
    ("uppercase", "lowercase", r"\ball caps\b|\bupper[- ]?case\b|\bcapital letters\b|\bcapitals\b|대문자"),
    ("lowercase", None, r"\blower[- ]?case\b|소문자"),
    ("emoji", "no_emoji", r"\bemojis?\b|\bemoticons?\b|이모지|이모티콘"),
    ("json", None, r"\bjson\b"),
    ("korean_polite", "korean_casual", r"존댓말|존대|높임말|경어|해요체|합쇼체|습니다체"),
    ("korean_casual", "korean_polite", r"반말|말\s?놓"),
)
_LANGUAGE_PATTERNS = (
    ("ko", r"\bin korean\b|\bkorean (?:please|only)\b|한국어로|한국말로|한글로"),
    ("en", r"\bin english\b|\benglish (?:please|only)\b|영어로"),
)
_SHORT = re.compile(
    r"\b(?:short(?:er)?|brief(?:ly)?|concise(?:ly)?|too long|less wordy|tl;?dr)\b|짧게|짧은|간단히|간결|너무 길|줄여",
    re.IGNORECASE,
)
_LONG = re.compile(
    r"\b(?:longer|more detail(?:s|ed)?|too short|elaborate)\b|길게|자세히|자세하게|너무 짧", re.IGNORECASE
)
_START = re.compile(r"\b(?:start|begin|open)(?:s|ing)?\b|시작|처음에|첫머리|맨 앞", re.IGNORECASE)
_END = re.compile(
    r"\b(?:end|finish|close|sign(?:ing)?[- ]?off|conclude)(?:s|ing)?\b|끝|마지막|마무리|맺", re.IGNORECASE
)
_BARE_START = re.compile(
    r"\b(?:start|begin|open)(?:s|ing)?\b.*?\bwith\s+(?:the words?\s+|the phrase\s+)?(?P<q>\S.*)$", re.IGNORECASE
)
_BARE_END = re.compile(
    r"\b(?:end|finish|close|sign off|conclude)(?:s|ing)?\b.*?\bwith\s+(?:the words?\s+|the phrase\s+)?(?P<q>\S.*)$",
    re.IGNORECASE,
)
# What is said word for word; 로 alone also stands after what is only named (속담으로), so a sentence must end before it.
_SAID = r"(?:이라고|라고|(?<=[다요죠!])(?:으로|로))"
_BARE_KOREAN = (
    ("starts_with", re.compile(rf"(?P<q>\S+?){_SAID}\s*(?:말을\s*)?시작")),
    ("ends_with", re.compile(rf"(?P<q>\S+?){_SAID}\s*(?:끝|마무리|맺)")),
)
# "with a proverb" names what is wanted, not the words themselves.
_DESCRIBED = re.compile(r"(?:an?|the|some|any|one|two|three|your|my|another|something)\b", re.IGNORECASE)
_QUESTION_END = re.compile(
    r"(?:end|finish|close)\w*\b.*\bwith an? (?:\w+ )?question|질문으로\s*(?:끝|마무리|맺)", re.IGNORECASE
)
_MARKS = (("!", r"exclamation|느낌표"), ("?", r"question marks?|물음표"), ("—", r"em[- ]?dash"))
_SHRINK = 0.6
_LEAST_WORDS = 3
MAX_HINT = 500  # an instruction is short; the rest of a long message is something else


def derive(hint: str, good_examples: Sequence[str] = (), bad_examples: Sequence[str] = ()) -> CheckerSpec | None:
    """Return the checker that a correction in plain words asks for, confirmed by its examples.

    Every rule holds for every good example, and every bad example breaks a rule; with no examples of a kind that
    half is vacuous. None where the words name nothing decidable or the examples contradict them.
    """
    candidates = dict.fromkeys(_candidates(hint.strip()[:MAX_HINT], good_examples, bad_examples))
    rules = [rule for rule in candidates if not any(failures(CheckerSpec((rule,)), good) for good in good_examples)]
    if not rules:
        return None
    spec = CheckerSpec(tuple(rules[:MAX_RULES]))
    return None if any(check(spec, bad) for bad in bad_examples) else spec


def _candidates(hint: str, good: Sequence[str], bad: Sequence[str]) -> Iterator[Rule]:
    yield from _text_rules(hint)
    rest = _QUOTED.sub(" ", hint)  # what is quoted is content, not instruction
    counts = list(_count_rules(rest))
    yield from counts
    yield from _flag_rules(rest)
    yield from (Rule("language", code) for code, pattern in _LANGUAGE_PATTERNS if _asks(pattern, rest))
    if not counts:
        yield from _length_by_example(rest, good, bad)


def _text_rules(hint: str) -> Iterator[Rule]:
    quoted = [match["q"].strip() for match in _QUOTED.finditer(hint)]
    if quoted:
        yield from _quoted_rules(hint, quoted)
    elif _QUESTION_END.search(hint):
        yield Rule("ends_with", "?")
    else:
        yield from _bare_rules(hint)
    for mark, name in _MARKS:
        if not quoted and re.search(name, hint, re.IGNORECASE) and _NEGATED.search(hint):
            yield Rule("not_contains", mark)


def _quoted_rules(hint: str, quoted: list[str]) -> Iterator[Rule]:
    frame = _QUOTED.sub(" ", hint)
    kind: TextKind
    if _NEGATED.search(frame):
        kind = "not_contains"
    elif _START.search(frame):
        kind = "starts_with"
    elif _END.search(frame):
        kind = "ends_with"
    else:
        kind = "contains"
    yield from (Rule(kind, text[:MAX_TEXT]) for text in quoted if text.strip())


def _bare_rules(hint: str) -> Iterator[Rule]:
    """Read an unquoted phrase; the examples will tell whether the reading was right."""
    if _NEGATED.search(hint):
        return
    patterns: list[tuple[TextKind, re.Pattern[str]]] = [("starts_with", _BARE_START), ("ends_with", _BARE_END)]
    patterns += [("starts_with", _BARE_KOREAN[0][1]), ("ends_with", _BARE_KOREAN[1][1])]
    for kind, pattern in patterns:
        match = pattern.search(hint)
        if match and any(c.isalnum() for c in match["q"]) and not _DESCRIBED.match(match["q"]):
            phrase = match["q"].strip()
            yield Rule(kind, phrase[:MAX_TEXT])
            if phrase.endswith(".") and any(c.isalnum() for c in phrase[:-1]):
                yield Rule(kind, phrase[:-1][:MAX_TEXT])


def _count_rules(hint: str) -> Iterator[Rule]:
    at_least = [match for pattern in _AT_LEAST_SENTENCES if (match := pattern.search(hint))]
    if at_least:
        yield Rule("min_sentences", _number(at_least[0]["n"]))
        return
    for kind, pattern in _COUNT_PATTERNS:
        for match in re.finditer(pattern, hint, re.IGNORECASE):
            yield Rule(kind, _number(match["n"]))  # type: ignore[arg-type]  # kinds of the table above


def _number(text: str) -> int:
    return max(1, int(text) if text.isdigit() else _NUMBERS[text.lower()])


def _flag_rules(hint: str) -> Iterator[Rule]:
    negated = _NEGATED.search(hint) is not None
    for asked, refused, pattern in _FLAG_PATTERNS:
        kind = refused if negated else asked
        if kind and _asks(pattern, hint):
            yield Rule(kind)


def _asks(pattern: str, hint: str) -> bool:
    return re.search(pattern, hint, re.IGNORECASE) is not None


def _length_by_example(hint: str, good: Sequence[str], bad: Sequence[str]) -> Iterator[Rule]:
    """Read "shorter" or "longer", and take the bound from the examples."""
    if not good and not bad:
        return
    if _SHORT.search(hint):
        yield Rule("max_words", _between([words(t) for t in good], [words(t) for t in bad], max, min, _SHRINK))
    elif _LONG.search(hint):
        yield Rule("min_words", _between([words(t) for t in good], [words(t) for t in bad], min, max, 1 / _SHRINK))


def _between(
    good: list[int],
    bad: list[int],
    near: Callable[[list[int]], int],
    far: Callable[[list[int]], int],
    factor: float,
) -> int:
    """Return a bound between approved and rejected lengths: their geometric mean, or a step from the side that is known."""
    if good and bad:
        return max(1, round(math.sqrt(max(1, near(good)) * max(1, far(bad)))))
    if good:
        return max(1, round(near(good) / factor))
    return max(_LEAST_WORDS, round(far(bad) * factor))
