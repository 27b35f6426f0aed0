"""Text and marks → Markdown that `render` turns into exactly these again: how a part of a long reply is stored.

Everything that could be read as markup is escaped; emphasis is written as the HTML tags that Markdown allows, because they
work next to any letter. If a combination cannot be written faithfully, quotes and then all marks are given up, never text.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

from bots.telegram.marks import Kind, Mark, Rendered
from bots.telegram.render import render

_SPECIAL = re.compile(
    r"(?P<gap>\n{3,})"
    r"|(?P<edge>^[^\S\n]|[^\S\n]\Z|(?<=\n)[^\S\n]|[^\S\n](?=\n))"
    r"|(?P<markup>[!-/:-@\[-`{-~])"
)
_TICKS = re.compile("`+")
_TAGS: dict[Kind, str] = {"bold": "b", "italic": "i", "underline": "u", "strikethrough": "s"}


def to_markdown(part: Rendered) -> str:
    """Return Markdown for `part`, which is trimmed and settled (`marks.clip`)."""
    for marks in (part.marks, tuple(m for m in part.marks if m.kind != "blockquote")):
        source = "".join(_pieces(part.text, marks))
        if render(source) == Rendered(part.text, marks):
            return source
    return escape(part.text)


def escape(text: str) -> str:
    """Return Markdown that reads as `text` itself, a newline staying a newline."""
    return _SPECIAL.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    if found["gap"]:
        return "<br>" * len(found[0])
    return f"&#{ord(found[0])};" if found["edge"] else "\\" + found[0]


def _pieces(text: str, marks: tuple[Mark, ...]) -> Iterator[str]:
    edges = sorted({0, len(text), *(m.start for m in marks), *(m.end for m in marks)})
    waiting = list(reversed(marks))
    around: list[Mark] = []
    for start, end in pairwise(edges):
        while around and around[-1].end <= start:
            yield _quoted(_close(around.pop(), text), around)
        while waiting and waiting[-1].start == start:
            opening = _open(waiting[-1], text)
            yield _quoted(opening, around)
            around.append(waiting.pop())
        verbatim = bool(around) and around[-1].kind in {"pre", "code"}
        yield _quoted(text[start:end] if verbatim else escape(text[start:end]), around)
    while around:
        yield _quoted(_close(around.pop(), text), around)


def _quoted(source: str, around: list[Mark]) -> str:
    return source.replace("\n", "\n> ") if any(m.kind == "blockquote" for m in around) else source


def _open(mark: Mark, text: str) -> str:
    match mark.kind:
        case "pre":
            return f"{_fence(text[mark.start : mark.end], least=3)}{mark.language or ''}\n"
        case "code":
            body = text[mark.start : mark.end]
            return _fence(body, least=1) + _pad(body)
        case "text_link":
            return "["
        case "blockquote":
            return "> "
        case _:
            return f"<{_TAGS[mark.kind]}>"


def _close(mark: Mark, text: str) -> str:
    body = text[mark.start : mark.end]
    match mark.kind:
        case "pre":
            return f"\n{_fence(body, least=3)}"
        case "code":
            return _pad(body) + _fence(body, least=1)
        case "text_link":
            return f"](<{escape(mark.url or '')}>)"
        case "blockquote":
            return ""
        case _:
            return f"</{_TAGS[mark.kind]}>"


def _fence(body: str, *, least: int) -> str:
    return "`" * max(least, 1 + max((len(run) for run in _TICKS.findall(body)), default=0))


def _pad(body: str) -> str:
    return " " if body.startswith("`") or body.endswith("`") or (body[0] == body[-1] == " ") else ""
