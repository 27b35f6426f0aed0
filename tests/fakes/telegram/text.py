"""Formatted text as the server keeps it: cleaned characters plus entities in UTF-16 code units.

Owns limits, cleaning, trimming, entity checks and the entities that the server finds by itself. Does not know parse
modes (`markup_html`, `markup_markdown`) or messages.
"""

import re
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final

from tests.fakes.telegram.errors import JSON, bad_request

MAX_TEXT: Final = 4096
MAX_CAPTION: Final = 1024
MAX_RAW_BYTES: Final = 1 << 15
MAX_ENTITIES: Final = 100
MAX_OFFSET: Final = 1_000_000
FOUND_BY_SERVER: Final = frozenset(
    {"mention", "hashtag", "cashtag", "bot_command", "url", "email", "phone_number", "bank_card_number"}
)
EXPLICIT: Final = frozenset(
    {
        "bold",
        "italic",
        "underline",
        "strikethrough",
        "spoiler",
        "blockquote",
        "expandable_blockquote",
        "code",
        "pre",
        "text_link",
        "text_mention",
        "custom_emoji",
        "date_time",
    }
)
MONOSPACE: Final = frozenset({"code", "pre"})
SOLID: Final = MONOSPACE | {"text_link", "text_mention"}
_EXTRAS: Final = ("url", "user", "language", "custom_emoji_id", "unix_time", "date_time_format")
_INVISIBLE: Final = re.compile("[\r\u2028-\u202e]")
_CONTROL: Final = re.compile("[\x00-\x09\x0b-\x1f]")
_AUTOMATIC: Final = (
    ("url", re.compile(r"https?://[^\s<>]+[^\s<>.,;:!?)\]]")),
    ("bot_command", re.compile(r"(?<![\w/<>])/[A-Za-z0-9_]{1,64}(?:@[A-Za-z0-9_]{3,32})?(?![\w/])")),
    ("mention", re.compile(r"(?<![\w@/])@[A-Za-z][A-Za-z0-9_]{3,31}\b")),
    ("hashtag", re.compile(r"(?<!\w)#\w*[^\W\d]\w*")),
)


def utf16(text: str) -> int:
    """Length of `text` in UTF-16 code units."""
    return len(text) + sum(ord(char) > 0xFFFF for char in text)


@dataclass(frozen=True, slots=True)
class Entity:
    """A stretch of text with a meaning; `offset` and `length` in UTF-16 code units."""

    kind: str
    offset: int
    length: int
    extra: JSON = field(default_factory=dict)

    @property
    def end(self) -> int:
        """First code unit after the entity."""
        return self.offset + self.length

    def to_json(self) -> JSON:
        """The MessageEntity object."""
        return {"type": self.kind, "offset": self.offset, "length": self.length, **self.extra}


@dataclass(frozen=True, slots=True)
class Formatted:
    """Text and its entities."""

    text: str
    entities: tuple[Entity, ...] = ()

    def part(self, entity: Entity) -> str:
        """The characters that `entity` covers."""
        units = self.text.encode("utf-16-le", "surrogatepass")[entity.offset * 2 : entity.end * 2]
        return units.decode("utf-16-le")

    def entities_json(self) -> list[JSON]:
        """The entities as the API returns them."""
        return [entity.to_json() for entity in self.entities]


def entities_from_json(items: object) -> tuple[Entity, ...]:
    """Read the `entities` parameter; types that only the server may find are ignored, as the real one does."""
    if not isinstance(items, list):
        raise bad_request("can't parse entities JSON object")
    return tuple(entity for item in items if (entity := _entity_from_json(item)) is not None)


def _entity_from_json(item: object) -> Entity | None:
    if not isinstance(item, dict):
        raise bad_request("can't parse MessageEntity: expected an Object")
    kind, offset, length = item.get("type"), item.get("offset"), item.get("length")
    if not isinstance(offset, int) or not isinstance(length, int):
        raise bad_request('can\'t parse MessageEntity: Field "offset" must be of type Number')
    if kind in FOUND_BY_SERVER:
        return None
    if kind not in EXPLICIT:
        raise bad_request("can't parse MessageEntity: Unsupported type specified")
    for name, value in (("offset", offset), ("length", length)):
        if not 0 <= value <= MAX_OFFSET:
            raise bad_request(f"receive an entity with incorrect {name} {value}")
    return Entity(str(kind), offset, length, {name: item[name] for name in _EXTRAS if name in item})


def finish(draft: Formatted, limit: int) -> Formatted:
    """What the server keeps of a parsed text.

    Checks bounds, cleans, trims, drops entities that may not stay, adds the ones found by the server and cuts them at
    `MAX_ENTITIES`. `limit` counts code points. Raises `ApiError` for empty or too long text and broken entities.
    """
    _check_bounds(draft)
    cleaned = trim(clean(draft))
    if not cleaned.text:
        raise bad_request("text must be non-empty")
    if len(cleaned.text) > limit:
        raise bad_request("message is too long" if limit == MAX_TEXT else "message caption is too long")
    allowed = _without_nested(_without_overlaps(cleaned.entities))
    found = [entity for entity in find_entities(cleaned.text) if not _touches_solid(entity, allowed)]
    split = (part for entity in allowed for part in _cut(entity, found))
    together = sorted((*split, *found), key=lambda entity: (entity.offset, -entity.length))
    return Formatted(cleaned.text, tuple(together[:MAX_ENTITIES]))


def _check_bounds(draft: Formatted) -> None:
    starts, position = {0}, 0
    for char in draft.text:
        position += utf16(char)
        starts.add(position)
    for entity in draft.entities:
        if not entity.length:
            continue
        if entity.offset >= position:
            raise bad_request(f"entity begins after the end of the text at UTF-16 offset {entity.offset}")
        if entity.end > position:
            raise bad_request(f"entity ends after the end of the text at UTF-16 offset {entity.end}")
        for word, offset in (("begins", entity.offset), ("ends", entity.end)):
            if offset not in starts:
                raise bad_request(f"entity {word} in a middle of a UTF-16 symbol at UTF-16 offset {offset}")


def clean(draft: Formatted) -> Formatted:
    """Control characters become spaces; carriage returns and direction overrides vanish with their units."""
    text = _CONTROL.sub(" ", draft.text)
    gone = [utf16(text[: match.start()]) for match in _INVISIBLE.finditer(text)]
    text = _INVISIBLE.sub("", text)
    return Formatted(text, _shifted(draft.entities, gone))


def _shifted(entities: tuple[Entity, ...], gone: list[int]) -> tuple[Entity, ...]:
    def moved(offset: int) -> int:
        return offset - sum(place < offset for place in gone)

    ends = ((entity, moved(entity.offset), moved(entity.end)) for entity in entities)
    return tuple(replace(entity, offset=start, length=end - start) for entity, start, end in ends if end > start)


def trim(draft: Formatted) -> Formatted:
    """Without white space at both ends; entities shrink with it."""
    head = len(draft.text) - len(draft.text.lstrip())
    text = draft.text.strip()
    last = utf16(text)
    kept = []
    for entity in draft.entities:
        start, end = max(entity.offset - head, 0), min(entity.end - head, last)
        if end > start:
            kept.append(replace(entity, offset=start, length=end - start))
    return Formatted(text, tuple(kept))


def _without_overlaps(entities: tuple[Entity, ...]) -> tuple[Entity, ...]:
    """Cut an entity that crosses the end of an earlier one in two, so that all are nested or apart."""
    waiting = sorted(entities, key=lambda entity: (-entity.offset, entity.length))
    done: list[Entity] = []
    while waiting:
        entity = waiting.pop()
        crossed = [other.end for other in done if entity.offset < other.end < entity.end]
        if crossed and min(crossed) < entity.end:
            cut = min(crossed)
            done.append(replace(entity, length=cut - entity.offset))
            waiting.append(replace(entity, offset=cut, length=entity.end - cut))
            waiting.sort(key=lambda item: (-item.offset, item.length))
        else:
            done.append(entity)
    return tuple(done)


def _without_nested(entities: tuple[Entity, ...]) -> tuple[Entity, ...]:
    monospace = [entity for entity in entities if entity.kind in MONOSPACE]
    quotes = [entity for entity in entities if entity.kind.endswith("blockquote")]
    return tuple(
        entity
        for entity in entities
        if not _inside(entity, tuple(monospace))
        and not (entity.kind.endswith("blockquote") and _inside(entity, tuple(quotes)))
    )


def _inside(entity: Entity, others: tuple[Entity, ...]) -> bool:
    return any(other is not entity and other.offset <= entity.offset and entity.end <= other.end for other in others)


def _touches_solid(entity: Entity, others: tuple[Entity, ...]) -> bool:
    """Code and links are not searched for further entities."""
    solid = (other for other in others if other.kind in SOLID)
    return any(other.offset < entity.end and entity.offset < other.end for other in solid)


def _cut(entity: Entity, found: list[Entity]) -> list[Entity]:
    """An entity cut where it crosses the edge of one that the server found."""
    edges = {entity.offset, entity.end}
    for other in found:
        edges |= {other.offset} if other.offset < entity.end < other.end else set()
        edges |= {other.end} if other.offset < entity.offset < other.end else set()
    places = sorted(edge for edge in edges if entity.offset <= edge <= entity.end)
    return [replace(entity, offset=start, length=end - start) for start, end in pairwise(places)]


def find_entities(text: str) -> list[Entity]:
    """Links, commands, mentions and hashtags, as the server marks them in everybody's messages."""
    found: list[Entity] = []
    for kind, pattern in _AUTOMATIC:
        for match in pattern.finditer(text):
            entity = Entity(kind, utf16(text[: match.start()]), utf16(match.group()))
            if not any(other.offset < entity.end and entity.offset < other.end for other in found):
                found.append(entity)
    return sorted(found, key=lambda entity: entity.offset)
