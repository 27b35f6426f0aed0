"""The Markdown dialect of model replies, as a token stream: CommonMark with tables and strikethrough, adapted to chat.

Differences, each because something was lost or mangled without it: emphasis works next to Korean, Japanese and Chinese
letters; a fence inside a Markdown fence does not end it; `<br>` ends a line; link definitions and HTML blocks stay visible text;
link targets are kept as written; a table that would grow beyond its source stays text, and so does a sign that stands alone.
Knows nothing of any platform.
"""

import re
import string
from collections.abc import Sequence
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_inline.state_inline import Scanned, StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType

from bots.lone_signs import keep_lone_signs
from bots.tables import limit_tables

MAX_NESTING = 100
_PUNCTUATION = frozenset(string.whitespace + string.punctuation)
# A backslash, an ampersand and an angle bracket may stand for another sign.
_SIGNS = frozenset(string.punctuation) - frozenset("\\&<")
_CJK = re.compile(
    "[\u1100-\u11ff\u2e80-\u303f\u3040-\u30ff\u3130-\u318f\u31f0-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]"
)
_FENCE = re.compile(r"^(?P<indent> {0,3})(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^`\n]*?)[ \t]*$")
_MARKDOWN = frozenset({"markdown", "md"})
_CLOSING, _OPENING = frozenset(")]}"), frozenset("([{")
# Platforms turn control characters into spaces; doing it first keeps our offsets and theirs the same.
_CONTROL = re.compile("[\x01-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
# What follows it on a line of its own is no second line break.
LINE_BREAK = re.compile(r"</?br\s*/?>(?:[ \t]*\n[ \t]*)?", re.IGNORECASE)
_NEWLINE = re.compile("\r\n?|[\u2028\u2029]")


def solid(text: str) -> int:
    """Count what a reader would miss if a rendering lost it: neither white space nor ASCII punctuation."""
    return sum(c not in _PUNCTUATION and not c.isspace() for c in text)


def only_signs(source: str) -> bool:
    """Whether a text is one line of nothing but signs, none of them written as something else: the answer is that sign.

    Asked what begins a comment, a model says `#`; read as Markdown, that is a heading of nothing. Asked what ends a line in
    HTML, it says `<br>`.
    """
    line = source.strip()
    if LINE_BREAK.fullmatch(line):
        return True
    return bool(line) and "\n" not in line and all(c in _SIGNS or c == " " for c in line)


class _ChatState(StateInline):
    """Lets `*` open and close between a CJK letter and punctuation, where CommonMark expects spaces between words.

    After https://github.com/tats-u/markdown-cjk-friendly/blob/main/specification.md, simplified. What stands inside a
    formula or a file's name (`2*3*4`, `x**2 + y**2`, `src/*.py`) opens nothing: read as a format, it would be gone.
    """

    def scanDelims(self, start: int, canSplitWord: bool) -> Scanned:  # noqa: FBT001, N802, N803 - the library's own signature
        scanned = super().scanDelims(start, canSplitWord)
        end = start + scanned.length
        before = self.src[start - 1] if start else " "
        after = self.src[end] if end < self.posMax else " "
        if not canSplitWord:
            return scanned
        if not (_CJK.match(before) or _CJK.match(after)):
            opens = scanned.can_open and not _inside(before, self.src[start:end], after)
            return Scanned(opens, scanned.can_close, scanned.length)
        return Scanned(not after.isspace(), not before.isspace(), scanned.length)


def _inside(before: str, run: str, after: str) -> bool:
    """Whether a run of stars or tildes stands inside a formula or a file's name: `2*3`, `(a)*b`, `x**2`, `src/*.py`."""
    if before == "/":
        return not after.isalnum()
    if not (before.isalnum() or before in _CLOSING):
        return False
    # A doubled star before a letter is a bold part of a word; before a digit it is a power.
    return after.isdigit() or (len(run) == 1 and (after.isalnum() or after in _OPENING))


def _line_break(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - the library's own signature
    """Read `<br>` as the end of a line, whose token has it as `content`."""
    found = LINE_BREAK.match(state.src, state.pos)
    if not found:
        return False
    if not silent:
        state.push("hardbreak", "br", 0).content = found[0]
    state.pos = found.end()
    return True


class ChatInline(ParserInline):
    """The library's inline parser over `_ChatState`; `LINE_BREAKS` is the rule to be enabled."""

    LINE_BREAKS = "line_break"

    def __init__(self) -> None:
        super().__init__()
        self.ruler.before("html_inline", self.LINE_BREAKS, _line_break)

    def parse(self, src: str, md: MarkdownIt, env: EnvType, tokens: list[Token]) -> list[Token]:
        state = _ChatState(src, md, env, tokens)
        self.tokenize(state)
        for rule in self.ruler2.getRules(""):
            rule(state)
        return state.tokens


class _ChatMarkdown(MarkdownIt):
    """Keeps link targets as they were written; the platform encodes them itself."""

    def normalizeLink(self, url: str) -> str:  # noqa: N802 - the library's name
        return url


@cache
def _parser(*rules: str) -> MarkdownIt:
    parser = _ChatMarkdown("commonmark")
    parser.inline = ChatInline()
    parser.configure("commonmark", {"maxNesting": MAX_NESTING})
    parser.enable([*rules, ChatInline.LINE_BREAKS])
    parser.disable(["reference", "html_block"])
    limit_tables(parser)
    keep_lone_signs(parser)
    return parser


def clean(source: str) -> str:
    """Return `source` with one kind of newline and without control characters."""
    return _CONTROL.sub(" ", _NEWLINE.sub("\n", source))


def tokens_of(source: str) -> list[Token]:
    """Return the block tokens of a cleaned source."""
    return _parser("strikethrough", "table").parse(source)


def tokens_without_tables(source: str) -> list[Token]:
    """Return the block tokens of a cleaned source, the lines of tables as text."""
    return _parser("strikethrough").parse(source)


def widen(source: str) -> str:
    """Return `source` with the outer fence of a Markdown block made longer than the fences inside it.

    Models write a Markdown sample in ``` and put ``` into it; read strictly, the inner end would end the outer one.
    """
    if "```" not in source and "~~~" not in source:
        return source
    lines = source.split("\n")
    place = 0
    while place < len(lines):
        end = _end_of_sample(lines, place)
        if end is not None:
            _lengthen(lines, place, end)
            place = end
        place += 1
    return "\n".join(lines)


def _end_of_sample(lines: list[str], first: int) -> int | None:
    """Return the line that closes the Markdown sample opened at `first`; None when none is opened or it has no fences."""
    opener = _FENCE.match(lines[first])
    if not opener or opener["info"].lower() not in _MARKDOWN:
        return None
    depth, inner = 1, 0
    for place in range(first + 1, len(lines)):
        fence = _FENCE.match(lines[place])
        if not fence or fence["fence"][0] != opener["fence"][0]:
            continue
        depth += 1 if fence["info"] else -1
        inner += bool(fence["info"])
        if depth == 0:
            return place if inner else None
    return None


def _lengthen(lines: list[str], first: int, last: int) -> None:
    inside = max(len(m["fence"]) for line in lines[first : last + 1] if (m := _FENCE.match(line)))
    mark = lines[first].lstrip()[0] * (inside + 1)
    lines[first] = mark + lines[first].lstrip().lstrip(mark[0])
    lines[last] = mark


def link_in_words(label: str, target: str) -> str:
    """Return a link as it stands where none can be followed by its label: "label (target)", or the one that says it all."""
    if not label.strip():
        return target
    return label if target in {"", label, f"mailto:{label}"} else f"{label} ({target})"


def tag_partners(tokens: Sequence[Token], pattern: re.Pattern[str]) -> dict[int, int]:
    """Return, for each HTML tag that has its end or beginning among `tokens`, the place of that.

    `pattern` names the tags: a group `name`, and a group `end` that is not empty at an end.
    """
    partners: dict[int, int] = {}
    waiting: dict[str, list[int]] = {}
    for place, token in enumerate(tokens):
        tag = pattern.fullmatch(token.content) if token.type == "html_inline" else None
        if not tag:
            continue
        name = tag["name"].lower()
        if not tag["end"]:
            waiting.setdefault(name, []).append(place)
        elif waiting.get(name):
            start = waiting[name].pop()
            partners[start], partners[place] = place, start
    return partners
