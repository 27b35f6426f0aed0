"""`parse_mode=MarkdownV2` and the older `Markdown`: marks to entities, with the server's sentences for bad markup.

Owns both grammars. Offsets in errors are bytes of the source, offsets in entities UTF-16 code units.
"""

import re
from dataclasses import dataclass, replace
from typing import Final

from tests.fakes.telegram.errors import ApiError, cannot_parse
from tests.fakes.telegram.markup_html import link_entity
from tests.fakes.telegram.text import Entity, Formatted, utf16

RESERVED: Final = frozenset("_*[]()~`>#+-=|{}.!")
_MARKS: Final = (
    ("```", "pre"),
    ("__", "underline"),
    ("||", "spoiler"),
    ("![", "custom_emoji"),
    ("`", "code"),
    ("_", "italic"),
    ("*", "bold"),
    ("~", "strikethrough"),
    ("[", "text_link"),
)
_ENDS: Final = {kind: mark for mark, kind in _MARKS} | {"text_link": "]", "custom_emoji": "]"}
_NAMES: Final = {
    "pre": "Pre",
    "code": "Code",
    "underline": "Underline",
    "spoiler": "Spoiler",
    "custom_emoji": "CustomEmoji",
    "italic": "Italic",
    "bold": "Bold",
    "strikethrough": "Strikethrough",
    "text_link": "TextUrl",
}
_LANGUAGE: Final = re.compile(r"([^\s`]*)(\r?\n)?")
_URL: Final = re.compile(r"\(((?:\\.|[^)\\])*)\)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Open:
    kind: str
    start: int
    at: int
    language: str = ""


def parse_markdown_v2(source: str) -> Formatted:
    """Parse `source`; raises `ApiError` 400 "can't parse entities: …"."""
    return _Parser(source).run()


class _Parser:
    def __init__(self, source: str) -> None:
        self.source = source
        self.at = 0
        self.text: list[str] = []
        self.units = 0
        self.open: list[_Open] = []
        self.entities: list[Entity] = []
        self.quote: int | None = None

    def run(self) -> Formatted:
        while self.at < len(self.source):
            self._step()
        self._end_quote()
        if self.open:
            last = self.open[-1]
            raise self._error(f"Can't find end of {_NAMES[last.kind]} entity at byte offset {{at}}", last.at)
        return Formatted("".join(self.text), tuple(sorted(self.entities, key=lambda item: (item.offset, -item.length))))

    def _error(self, text: str, at: int) -> ApiError:
        return cannot_parse(text.replace("{at}", str(len(self.source[:at].encode("utf-8", "surrogatepass")))))

    def _emit(self, char: str, consumed: int) -> None:
        self.text.append(char)
        self.units += utf16(char)
        self.at += consumed

    def _step(self) -> None:
        char = self.source[self.at]
        following = self.source[self.at + 1 : self.at + 2]
        inside = self.open[-1].kind if self.open else ""
        if char == "\\" and following and ord(following) < 127:
            self._emit(following, 2)
        elif inside in ("code", "pre"):
            self._inside_code(inside, char)
        elif char == "\n":
            self._newline()
        elif char == ">" and self._line_starts():
            self._start_quote()
        elif char not in RESERVED:
            self._emit(char, 1)
        elif inside and self._ends(inside):
            self._close()
        else:
            self._start()

    def _inside_code(self, kind: str, char: str) -> None:
        if self.source.startswith(_ENDS[kind], self.at):
            self._close()
        elif char == "`":
            raise self._reserved(char)
        else:
            self._emit(char, 1)

    def _ends(self, kind: str) -> bool:
        if kind == "italic" and self.source.startswith("__", self.at):
            return False
        return self.source.startswith(_ENDS[kind], self.at)

    def _line_starts(self) -> bool:
        return self.at == 0 or self.source[self.at - 1] == "\n"

    def _start_quote(self) -> None:
        if self.quote is None:
            self.quote = self.units
        self.at += 1

    def _newline(self) -> None:
        goes_on = self.source.startswith(">", self.at + 1)
        if not goes_on:
            self._end_quote()
        self._emit("\n", 1)

    def _end_quote(self) -> None:
        if self.quote is None:
            return
        expandable = bool(self.open) and self.open[-1].kind == "spoiler" and self.open[-1].start == self.units
        if expandable:
            self.open.pop()
        kind = "expandable_blockquote" if expandable else "blockquote"
        if self.units > self.quote:
            self.entities.append(Entity(kind, self.quote, self.units - self.quote))
        self.quote = None

    def _reserved(self, char: str) -> ApiError:
        return cannot_parse(f"Character '{char}' is reserved and must be escaped with the preceding '\\'")

    def _start(self) -> None:
        for mark, kind in _MARKS:
            if self.source.startswith(mark, self.at):
                begin = self.at
                self.at += len(mark)
                language = self._language() if kind == "pre" else ""
                self.open.append(_Open(kind, self.units, begin, language))
                return
        raise self._reserved(self.source[self.at])

    def _language(self) -> str:
        match = _LANGUAGE.match(self.source, self.at)
        language, newline = match.groups() if match else ("", None)
        if language and newline is None and self.source.startswith("`", self.at + len(language)):
            return ""  # ```text``` on one line is code without a language
        self.at += len(language) + len(newline or "")
        return language or ""

    def _close(self) -> None:
        last = self.open.pop()
        self.at += len(_ENDS[last.kind])
        length = self.units - last.start
        entity: Entity | None = Entity(last.kind, last.start, length)
        if last.kind == "pre" and last.language:
            entity = Entity("pre", last.start, length, {"language": last.language})
        if last.kind == "text_link":
            entity = self._link(last, length)
        if last.kind == "custom_emoji":
            entity = Entity("custom_emoji", last.start, length, {"custom_emoji_id": self._url().rpartition("id=")[2]})
        if entity is not None and length:
            self.entities.append(entity)

    def _link(self, last: _Open, length: int) -> Entity | None:
        words = Formatted("".join(self.text)).part(Entity("", last.start, length))
        url = self._url() if self.source.startswith("(", self.at) else words
        return link_entity(url, last.start, length)

    def _url(self) -> str:
        match = _URL.match(self.source, self.at)
        if match is None:
            raise self._error("Can't find end of a URL at byte offset {at}", self.at)
        self.at = match.end()
        return re.sub(r"\\(.)", r"\1", match.group(1))


_OLD_KINDS: Final = {"_": "italic", "*": "bold", "`": "code"}


def parse_markdown(source: str) -> Formatted:
    """The older mode without nesting: `*bold*`, `_italic_`, `` `code` ``, fenced blocks and links."""
    text: list[str] = []
    entities: list[Entity] = []
    at = 0
    while at < len(source):
        char = source[at]
        if char == "\\" and source[at + 1 : at + 2] in tuple("_*`["):
            text.append(source[at + 1])
            at += 2
        elif char in "_*`[":
            entity, words, at = _old_entity(source, at)
            if entity is not None and words:
                entities.append(replace(entity, offset=utf16("".join(text)), length=utf16(words)))
            text.append(words)
        else:
            text.append(char)
            at += 1
    return Formatted("".join(text), tuple(entities))


def _old_entity(source: str, at: int) -> tuple[Entity | None, str, int]:
    mark = "```" if source.startswith("```", at) else source[at]
    end_mark = "]" if mark == "[" else mark
    end = source.find(end_mark, at + len(mark))
    if end < 0:
        offset = len(source[:at].encode("utf-8", "surrogatepass"))
        raise cannot_parse(f"Can't find end of the entity starting at byte offset {offset}")
    words, after = source[at + len(mark) : end], end + len(end_mark)
    if mark == "[":
        match = _URL.match(source, after)
        return (link_entity(match.group(1), 0, 0), words, match.end()) if match else (None, words, after)
    if mark == "```":
        language, newline, body = words.partition("\n")
        return (
            (Entity("pre", 0, 0, {"language": language}), body, after)
            if newline
            else (Entity("pre", 0, 0), words, after)
        )
    return Entity(_OLD_KINDS[mark], 0, 0), words, after
