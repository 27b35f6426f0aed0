"""`parse_mode=HTML`: tags to entities, with the server's sentences for markup that does not parse.

Owns the tag grammar. Offsets in errors are bytes of the source, offsets in entities UTF-16 code units.
"""

import re
from dataclasses import dataclass
from typing import Final

from tests.fakes.telegram.errors import JSON, ApiError, cannot_parse
from tests.fakes.telegram.text import Entity, Formatted, utf16

KINDS: Final = {
    "b": "bold", "strong": "bold", "i": "italic", "em": "italic", "u": "underline", "ins": "underline",
    "s": "strikethrough", "strike": "strikethrough", "del": "strikethrough", "tg-spoiler": "spoiler",
    "span": "spoiler", "a": "text_link", "code": "code", "pre": "pre", "tg-emoji": "custom_emoji",
    "blockquote": "blockquote",
}  # fmt: skip
_NAMED: Final = {"lt": "<", "gt": ">", "amp": "&", "quot": '"'}
_REFERENCE: Final = re.compile(r"&(?:#x([0-9a-fA-F]{1,6})|#([0-9]{1,7})|(lt|gt|amp|quot));?")
_ATTRIBUTE: Final = re.compile(r"\s*([^\s=>/\"']*)\s*(?:(=)\s*(?:\"([^\"]*)\"|'([^']*)'|([A-Za-z0-9.\-]+))?)?")
_LINK: Final = re.compile(r"(?i)^(?:[a-z][a-z0-9+.\-]*://)?[^\s/]+\.[^\s]{2,}|^tg://\S+|^mailto:\S+|^tel:\S+")


@dataclass(frozen=True, slots=True)
class _Open:
    tag: str
    kind: str
    argument: str
    start: int


def link_entity(url: str, start: int, length: int) -> Entity | None:
    """The entity of a link, None where the address is none (the text then stays plain)."""
    if not _LINK.match(url):
        return None
    return Entity("text_link", start, length, {"url": url if "://" in url or ":" in url else f"http://{url}/"})


def parse_html(source: str) -> Formatted:
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

    def run(self) -> Formatted:
        while self.at < len(self.source):
            char = self.source[self.at]
            if char == "<":
                self._tag()
            elif char == "&":
                self._reference()
            else:
                self._emit(char, 1)
        if self.open:
            message = f'Can\'t find end tag corresponding to start tag "{self.open[-1].tag}"'
            raise cannot_parse(message)
        return Formatted("".join(self.text), tuple(_merge_code_blocks(self.entities)))

    def _emit(self, char: str, consumed: int) -> None:
        self.text.append(char)
        self.units += utf16(char)
        self.at += consumed

    def _reference(self) -> None:
        match = _REFERENCE.match(self.source, self.at)
        char = _decode(match) if match else ""
        if match and char:
            self._emit(char, len(match.group()))
        else:
            self._emit("&", 1)

    def _tag(self) -> None:
        if self.source.startswith("</", self.at):
            self._end_tag()
        else:
            self._start_tag()

    def _error(self, text: str, at: int) -> ApiError:
        offset = len(self.source[:at].encode("utf-8", "surrogatepass"))
        return cannot_parse(text.replace("{at}", f"at byte offset {offset}"))

    def _start_tag(self) -> None:
        begin = self.at
        name = re.compile(r"[^\s>]*").match(self.source, begin + 1)
        tag = name.group().lower() if name else ""
        if begin + 1 + len(tag) >= len(self.source):
            raise self._error("Unclosed start tag {at}", begin)
        if tag not in KINDS:
            raise self._error(f'Unsupported start tag "{tag}" {{at}}', begin)
        self.at = begin + 1 + len(tag)
        attributes = self._attributes(tag, begin)
        self.open.append(_Open(tag, self._kind(tag, attributes, begin), _argument(tag, attributes), self.units))

    def _attributes(self, tag: str, begin: int) -> dict[str, str]:
        found: dict[str, str] = {}
        while True:
            while self.at < len(self.source) and self.source[self.at].isspace():
                self.at += 1
            if self.at >= len(self.source):
                raise self._error("Unclosed start tag {at}", begin)
            if self.source[self.at] == ">":
                self.at += 1
                return found
            name, value = self._attribute(tag, begin)
            found[name] = value

    def _attribute(self, tag: str, begin: int) -> tuple[str, str]:
        match = _ATTRIBUTE.match(self.source, self.at)
        if match is None or not match.group(1):
            raise self._error(f'Empty attribute name in the tag "{tag}" {{at}}', self.at)
        name, equal, double, single, bare = match.groups()
        if equal is None and not (tag == "blockquote" and name == "expandable"):
            message = f'Expected equal sign in declaration of an attribute of the tag "{tag}" {{at}}'
            raise self._error(message, begin)
        value = next((item for item in (double, single, bare) if item is not None), None)
        if equal is not None and value is None:
            raise self._error("Unclosed start tag {at}", begin)
        self.at = match.end()
        return name.lower(), _REFERENCE.sub(lambda found: _decode(found) or found.group(), value or "")

    def _kind(self, tag: str, attributes: dict[str, str], begin: int) -> str:
        if tag == "span" and attributes.get("class") != "tg-spoiler":
            raise self._error('Tag "span" must have class "tg-spoiler" {at}', begin)
        return "expandable_blockquote" if tag == "blockquote" and "expandable" in attributes else KINDS[tag]

    def _end_tag(self) -> None:
        begin = self.at
        if not self.open:
            raise self._error("Unexpected end tag {at}", begin)
        match = re.compile(r"</([^\s>]*)\s*(>?)").match(self.source, begin)
        name, closed = (match.group(1).lower(), match.group(2)) if match else ("", "")
        if not closed:
            raise self._error("Unclosed end tag {at}", begin)
        last = self.open.pop()
        if name not in ("", last.tag):
            message = f'Unmatched end tag {{at}}, expected "</{last.tag}>", found "</{name}>"'
            raise self._error(message, begin)
        self.at = match.end() if match else begin
        self._close(last)

    def _close(self, tag: _Open) -> None:
        length = self.units - tag.start
        if not length:
            return
        if tag.kind == "text_link":
            words = Formatted("".join(self.text)).part(Entity("", tag.start, length))
            entity = link_entity(tag.argument or words, tag.start, length)
        else:
            entity = Entity(tag.kind, tag.start, length, _extra(tag))
        if entity is not None:
            self.entities.append(entity)


def _decode(match: re.Match[str]) -> str:
    hexadecimal, decimal, name = match.groups()
    if name:
        return _NAMED[name]
    code = int(hexadecimal, 16) if hexadecimal else int(decimal)
    return chr(code) if 0 < code < 0x10FFFF and not 0xD800 <= code <= 0xDFFF else ""


def _argument(tag: str, attributes: dict[str, str]) -> str:
    if tag == "a":
        return attributes.get("href", "")
    if tag == "tg-emoji":
        return attributes.get("emoji-id", "")
    if tag == "code" and attributes.get("class", "").startswith("language-"):
        return attributes["class"].removeprefix("language-")
    return ""


def _extra(tag: _Open) -> JSON:
    if tag.kind == "custom_emoji":
        return {"custom_emoji_id": tag.argument}
    return {"language": tag.argument} if tag.kind == "code" and tag.argument else {}


def _merge_code_blocks(entities: list[Entity]) -> list[Entity]:
    """`<pre><code class="language-x">` is one block with a language; elsewhere a language means nothing."""
    blocks = {(item.offset, item.length): item for item in entities if item.kind == "pre"}
    merged = []
    for entity in entities:
        place = (entity.offset, entity.length)
        if entity.kind == "code" and place in blocks:
            continue
        if entity.kind == "pre":
            inner = [item.extra for item in entities if item.kind == "code" and (item.offset, item.length) == place]
            merged.append(Entity("pre", *place, inner[0] if inner else {}))
        else:
            merged.append(Entity(entity.kind, *place, {} if entity.kind == "code" else entity.extra))
    return merged
