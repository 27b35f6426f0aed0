"""Finds personal data and secrets in a text and replaces them by typed placeholders before anything trains on it.

Works on spans, offline, without word boundaries: in Korean a particle follows an address or a number directly
("a@b.kr로", "4111...이야"). Checks numbers by their own rules (Luhn, registration checksum, valid phone) to spare
ordinary ones. Names and street addresses need a model and are not found here. Pure.
"""

import ipaddress
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date

from phonenumbers import PhoneNumberMatcher

MAX_CHARS = 20_000
PHONE_REGIONS = ("KR", "US")

_D = r"(?<!\d)"  # not inside a longer number
_E = r"(?!\d)"
_EMAIL = re.compile(r"[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}")
_RRN = re.compile(rf"{_D}(?P<day>\d{{6}})(?P<dash>\s?-\s?)?(?P<tail>[0-9]\d{{6}}){_E}")
_CARD = re.compile(rf"{_D}\d(?:[ -]?\d){{12,18}}{_E}")
_IPV4 = re.compile(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?!\d|\.\d)")
_IPV6 = re.compile(r"(?<![0-9A-Fa-f:])(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}(?![0-9A-Fa-f:])")
_LICENCE = re.compile(rf"{_D}\d{{2}}-\d{{2}}-\d{{6}}-\d{{2}}{_E}")
_PASSPORT = re.compile(
    r"(?:여권|passport)[^\n]{0,20}?(?P<value>(?<![A-Za-z0-9])[A-Z]{1,2}\d{7,8}|(?<![A-Za-z0-9])[A-Z]\d{3}[A-Z]\d{4})",
    re.IGNORECASE,
)
_ACCOUNT = re.compile(
    rf"(?:계좌|은행|송금|입금|account|iban)[^\n]{{0,20}}?(?P<value>{_D}\d{{2,6}}(?:-\d{{2,8}}){{1,3}}{_E}|{_D}\d{{10,16}}{_E})",
    re.IGNORECASE,
)
_URL_USER = re.compile(r"[a-z][a-z0-9+.-]{1,15}://(?P<value>[^\s/@:]{1,100}:[^\s/@]{1,200})@", re.IGNORECASE)
_URL_TOKEN = re.compile(
    r"[?&#](?:access_token|auth|api_?key|key|token|secret|password|passwd|pwd|sig|signature|code|session|sid)=(?P<value>[^\s&#가-힣]{4,})",
    re.IGNORECASE,
)
_KEYS = re.compile(
    r"(?<![A-Za-z0-9])(?:sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,}|glpat-[A-Za-z0-9_-]{20,}"
    r"|(?:AKIA|ASIA)[0-9A-Z]{16}|AIza[0-9A-Za-z_-]{35}|xox[abprs]-[A-Za-z0-9-]{10,}|hf_[A-Za-z0-9]{30,}|npm_[A-Za-z0-9]{36}"
    r"|SK[0-9a-f]{32}|AC[0-9a-f]{32}|\d{8,10}:[A-Za-z0-9_-]{35}"
    r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,})"
)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,30}PRIVATE KEY-----|$)", re.DOTALL
)
_BEARER = re.compile(r"\bBearer\s+(?P<value>[A-Za-z0-9._~+/=-]{16,})")
_PASSWORD = re.compile(
    r"(?:password|passwd|passphrase|pwd|api[ _-]?key|secret|비밀번호|비번|패스워드|암호)(?:\s*(?:is|=|:|은|는|이|가)\s*|\s+)[\"'`]?"
    r"(?P<value>[!-~]{4,64})",
    re.IGNORECASE,
)
_LONG_WORD = re.compile(r"(?<![A-Za-z0-9_/+=-])[A-Za-z0-9_/+=-]{32,512}(?![A-Za-z0-9_/+=-])")
_RRN_WEIGHTS = (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)
_CENTURY = {
    "9": 1800,
    "0": 1800,
    "1": 1900,
    "2": 1900,
    "5": 1900,
    "6": 1900,
    "3": 2000,
    "4": 2000,
    "7": 2000,
    "8": 2000,
}
_ENTROPY_BITS = 4.0  # of each character; English words lie near 3, random base64 above 4.5
_CARD_LENGTHS = range(13, 20)


@dataclass(frozen=True, slots=True)
class Span:
    """Where something personal stands: `[start, end)` in characters, and of what kind."""

    kind: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Scrubbed:
    """A text without what was found, and what was found in the original."""

    text: str
    spans: tuple[Span, ...]


def scrub(text: str) -> Scrubbed:
    """Replace everything found by `[KIND]`."""
    spans = find(text)
    parts, position = [], 0
    for span in spans:
        parts += [text[position : span.start], f"[{span.kind}]"]
        position = span.end
    return Scrubbed("".join([*parts, text[position:]]), spans)


def findings(text: str) -> tuple[str, ...]:
    """Return the kinds of what was found, in order; empty where nothing was."""
    return tuple(span.kind for span in find(text))


def find(text: str) -> tuple[Span, ...]:
    """Return what is personal or secret, in order, without overlaps; an earlier detector keeps its span.

    A text beyond `MAX_CHARS` is personal from there on: it is not searched, so it is not trusted.
    """
    head, taken = text[:MAX_CHARS], list[Span]()
    for detector in _DETECTORS:
        for span in detector(head):
            if not any(_overlap(span, other) for other in taken):
                taken.append(span)
    if len(text) > MAX_CHARS:
        taken = [s for s in taken if s.end < MAX_CHARS] + [Span("UNSEARCHED", MAX_CHARS, len(text))]
    return tuple(sorted(taken, key=lambda span: span.start))


def _overlap(one: Span, other: Span) -> bool:
    return one.start < other.end and other.start < one.end


def _by_pattern(
    kind: str, pattern: re.Pattern[str], accept: Callable[[str], bool] = bool
) -> Callable[[str], Iterator[Span]]:
    group: str | int = "value" if "value" in pattern.groupindex else 0

    def detect(text: str) -> Iterator[Span]:
        for match in pattern.finditer(text):
            if accept(match[group]):
                yield Span(kind, match.start(group), match.end(group))

    return detect


def _registration_numbers(text: str) -> Iterator[Span]:
    """Korean registration numbers: a real date, and either the dash or the checksum (numbers since 2020 have none)."""
    for match in _RRN.finditer(text):
        digits = match["day"] + match["tail"]
        if _is_birth_date(match["day"], match["tail"][0]) and (match["dash"] or _registration_checksum(digits)):
            yield Span("RRN", match.start(), match.end())


def _is_birth_date(day: str, century: str) -> bool:
    try:
        date(_CENTURY[century] + int(day[:2]), int(day[2:4]), int(day[4:]))
    except ValueError:
        return False
    return True


def _registration_checksum(digits: str) -> bool:
    total = sum(int(d) * w for d, w in zip(digits, _RRN_WEIGHTS, strict=False))
    expected = (11 - total % 11) % 10
    foreigner = (13 - total % 11) % 10
    return int(digits[12]) in {expected, foreigner}


def _phones(text: str) -> Iterator[Span]:
    found = {(m.start, m.end) for region in PHONE_REGIONS for m in PhoneNumberMatcher(text, region)}
    yield from (Span("PHONE", start, end) for start, end in sorted(found))


def _luhn(text: str) -> bool:
    digits = [int(c) for c in text if c.isdigit()]
    if len(digits) not in _CARD_LENGTHS or len(set(digits)) == 1:
        return False
    doubled = [d * 2 - 9 * (d > 4) for d in digits[-2::-2]]  # noqa: PLR2004  # above 4 the double has two digits
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return text not in {"::", "0.0.0.0"}  # noqa: S104  # nobody's address


def _random_looking(text: str) -> bool:
    mixed = any(c.isdigit() for c in text) and any(c.isupper() for c in text) and any(c.islower() for c in text)
    hexadecimal = re.fullmatch(r"[0-9a-f]{32,}|[0-9A-F]{32,}", text) is not None
    counts = Counter(text)
    bits = -sum(n / len(text) * math.log2(n / len(text)) for n in counts.values())
    return hexadecimal or (mixed and bits >= _ENTROPY_BITS)


def _is_password(text: str) -> bool:
    """Whether what follows "password" looks like one rather than like the next word of the sentence."""
    return any(c.isdigit() or c in "!@#$%^&*_+~" for c in text)


_DETECTORS: tuple[Callable[[str], Iterator[Span]], ...] = (
    _by_pattern("SECRET", _PRIVATE_KEY),
    _by_pattern("SECRET", _KEYS),
    _by_pattern("SECRET", _BEARER),
    _by_pattern("SECRET", _URL_USER),
    _by_pattern("SECRET", _URL_TOKEN),
    _by_pattern("EMAIL", _EMAIL),
    _by_pattern("PASSPORT", _PASSPORT),
    _by_pattern("LICENCE", _LICENCE),
    _registration_numbers,
    _by_pattern("CARD", _CARD, _luhn),
    _by_pattern("ACCOUNT", _ACCOUNT),
    _phones,
    _by_pattern("IP", _IPV4, _is_address),
    _by_pattern("IP", _IPV6, _is_address),
    _by_pattern("SECRET", _PASSWORD, _is_password),
    _by_pattern("SECRET", _LONG_WORD, _random_looking),
)
