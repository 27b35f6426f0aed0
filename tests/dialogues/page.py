"""The page: each scene as a row of phones, one for each platform and language.

Run it with `python -m tests.dialogues [FILE]`. Draws Telegram's entities and WhatsApp's marks as their apps do.
"""

import re
from collections.abc import Sequence
from html import escape
from itertools import groupby
from pathlib import Path

from tests.dialogues.phones import Bubble
from tests.dialogues.stage import Played

STYLE = (Path(__file__).parent / "page.css").read_text("utf-8")
_TAGS = {
    "bold": "b", "italic": "i", "underline": "u", "strikethrough": "s", "code": "code", "pre": "pre",
    "blockquote": "blockquote", "expandable_blockquote": "blockquote", "spoiler": "mark",
}  # fmt: skip
_LINKS = frozenset({"text_link", "url", "email", "mention", "bot_command", "hashtag", "phone_number"})
_MARKS = (
    (re.compile(r"```(.+?)```", re.DOTALL), r"<pre>\1</pre>"),
    (re.compile(r"`([^`\n]+)`"), r"<code>\1</code>"),
    (re.compile(r"(?<![\w*])\*(\S(?:[^*\n]*\S)?)\*(?![\w*])"), r"<b>\1</b>"),
    (re.compile(r"(?<![\w_])_(\S(?:[^_\n]*\S)?)_(?![\w_])"), r"<i>\1</i>"),
    (re.compile(r"(?<![\w~])~(\S(?:[^~\n]*\S)?)~(?![\w~])"), r"<s>\1</s>"),
)


def page(played: Sequence[Played]) -> str:
    """Return the page as one HTML document."""
    rows = []
    for scene, phones in groupby(played, lambda one: one.scene):
        drawn = "".join(_phone(one) for one in sorted(phones, key=lambda one: (one.platform, one.language)))
        rows.append(f"<section><h2>{escape(scene)}</h2><div class=row>{drawn}</div></section>")
    head = f"<meta charset=utf-8><title>Dialogues</title><style>{STYLE}</style>"
    return f"<!doctype html><html lang=en><head>{head}</head><body>{''.join(rows)}</body></html>"


def _phone(played: Played) -> str:
    bubbles = "".join(_bubble(bubble, played.platform) for bubble in played.bubbles)
    name = f"{played.platform} · {played.language}"
    return f"<article class='phone {played.platform.lower()}' lang={played.language}><h3>{name}</h3>{bubbles}</article>"


def _bubble(bubble: Bubble, platform: str) -> str:
    note = f"<small>{escape(bubble.note)}</small>" if bubble.note else ""
    if not (bubble.text or bubble.buttons or bubble.sign):
        return f"<p class=act>{note}</p>"
    text = _telegram(bubble) if platform == "Telegram" else _whatsapp(bubble.text)
    rows = "".join(
        f"<div class=keys>{''.join(f'<span>{escape(label)}</span>' for label in row)}</div>" for row in bubble.buttons
    )
    side = "mine" if bubble.mine else "theirs"
    changed = " changed" if bubble.note.startswith("✎") else ""
    sign = f"<em>{escape(bubble.sign)}</em>" if bubble.sign else ""
    return f"<div class='{side}{changed}'><div class=bubble>{note}{sign}{text}</div>{rows}</div>"


def _telegram(bubble: Bubble) -> str:
    """Return the text with its entities as tags; their offsets count UTF-16 code units."""
    units = bubble.text.encode("utf-16-le")
    tags: dict[int, str] = {}
    for entity in bubble.entities:
        start, length = int(str(entity["offset"])), int(str(entity["length"]))
        tag = "a" if entity["type"] in _LINKS else _TAGS.get(str(entity["type"]), "span")
        tags[start] = tags.get(start, "") + f"<{tag}>"
        tags[start + length] = f"</{tag}>" + tags.get(start + length, "")
    places = sorted({0, *tags})
    ends = [*places[1:], len(units) // 2]
    pieces = (
        tags.get(start, "") + escape(units[2 * start : 2 * end].decode("utf-16-le"))
        for start, end in zip(places, ends, strict=True)
    )
    return "".join(pieces)


def _whatsapp(text: str) -> str:
    shown = escape(text)
    for mark, tag in _MARKS:
        shown = mark.sub(tag, shown)
    return shown
