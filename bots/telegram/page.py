"""Writes Markdown block tokens onto a page of text and marks, keeping track of lists, quotes and blank lines.

Headings become bold, list items one line each with their depth as indent, tables a padded block or a list, quotes one
level. Where the source has no blank line between blocks, neither has the page. Knows nothing of message limits.
"""

import re
from dataclasses import dataclass

from markdown_it.token import Token

from bots.telegram.ink import Ink, write_inline
from bots.telegram.marks import Rendered
from bots.telegram.table import as_lines, as_list, read_table

_LANGUAGE = re.compile(r"[\w+#.-]{1,32}$")
_RULE = "———"
_INDENT = "  "


@dataclass(slots=True)
class _List:
    """An open list: the number it starts with (None: bullets) and how many items it had."""

    start: int | None
    items: int = 0

    def bullet(self, token: Token) -> str:
        """Return what leads the next item."""
        self.items += 1
        if self.start is None:
            return "• "
        # Models number every item "1." or number them on purpose: count up the habit, follow the purpose.
        literal = int(token.info)
        number = self.start + self.items - 1 if literal == self.start else literal
        return f"{number}{token.markup} "


class Page:
    """What `tokens` of a source with these `lines` look like in a chat."""

    def __init__(self, lines: list[str], tokens: list[Token]) -> None:
        self._lines = lines
        self._ink = Ink()
        self._lists: list[_List] = []
        self._bullets: list[str] = []  # of items opened and not yet written to
        self._quotes: list[int | None] = []  # where each open quote began; None for one that leaves no mark
        self._fresh = 0  # where nothing has been written yet after a line was begun
        self._write(tokens)

    def rendered(self) -> Rendered:
        """Return the page, trimmed."""
        return self._ink.dried()

    def _write(self, tokens: list[Token]) -> None:
        place = 0
        while place < len(tokens):
            token = tokens[place]
            if token.type == "table_open":
                self._begin_block(token)
                place = self._table(tokens, place)
            elif token.type == "inline":
                write_inline(self._ink, token.children or [], _INDENT * len(self._lists))
                self._end_inline(tokens[place + 1])
            else:
                self._block(token)
            place += 1

    def _block(self, token: Token) -> None:
        match token.type:
            case "paragraph_open" | "heading_open":
                self._begin(token)
                self._line = self._ink.here
            case "fence" | "code_block":
                self._begin_block(token)
                self._code(token)
            case "hr":
                self._begin(token)
                self._ink.write(_RULE)
            case "bullet_list_open":
                self._lists.append(_List(None))
            case "ordered_list_open":
                self._lists.append(_List(int(token.attrGet("start") or 0) if token.attrGet("start") is not None else 1))
            case "list_item_open":
                self._bullets.append(self._lists[-1].bullet(token))
            case _ if token.nesting < 0:
                self._end(token)
            case "blockquote_open":
                self._open_quote(token)

    def _end(self, token: Token) -> None:
        match token.type:
            case "list_item_close" if self._bullets:
                self._break("\n")
                self._lead()
            case "bullet_list_close" | "ordered_list_close":
                self._lists.pop()
            case "blockquote_close":
                start = self._quotes.pop()
                if start is not None:
                    self._ink.mark("blockquote", start)

    def _end_inline(self, closing: Token) -> None:
        if closing.type == "heading_close":
            self._ink.mark("bold", self._line)

    def _begin(self, token: Token) -> None:
        """Go to where the next block starts, with its indent and bullets."""
        self._separate(token)
        self._lead()

    def _begin_block(self, token: Token) -> None:
        """Go to where a block starts that owns whole lines, under its bullet and without indent."""
        self._separate(token)
        if self._bullets:
            self._lead()
            self._break("\n")

    def _separate(self, token: Token) -> None:
        first = token.map[0] if token.map else 0
        apart = first > 0 and not self._lines[first - 1].strip("> \t")
        self._break("\n\n" if apart else "\n")

    def _break(self, newlines: str) -> None:
        if self._ink.here > self._fresh:
            self._ink.write(newlines)
            self._fresh = self._ink.here

    def _lead(self) -> None:
        depth = len(self._lists) - len(self._bullets)
        self._ink.write(_INDENT * depth + "".join(self._bullets))
        self._bullets.clear()

    def _open_quote(self, token: Token) -> None:
        if self._quotes or self._lists:
            self._quotes.append(None)
            return
        self._separate(token)
        self._quotes.append(self._ink.here)

    def _code(self, token: Token) -> None:
        language, _, rest = token.info.strip().partition(" ")
        if not _LANGUAGE.match(language):
            language, rest = "", token.info
        if rest.strip():
            self._ink.write(rest.strip() + "\n")
        start, body = self._ink.here, token.content.removesuffix("\n")
        if body.strip():
            self._ink.write(body)
            self._ink.mark("pre", start, language=language or None)
        else:
            self._ink.write(language)
            self._ink.mark("code", start)

    def _table(self, tokens: list[Token], place: int) -> int:
        end, table = read_table(tokens, place)
        start, lines = self._ink.here, as_lines(table)
        if lines is not None:
            self._ink.write(lines)
            self._ink.mark("pre", start)
            return end
        for number, line in enumerate(as_list(table)):
            self._ink.write("\n" if number else "")
            for piece in line:
                if isinstance(piece, str):
                    self._ink.write(piece)
                else:
                    write_inline(self._ink, piece)
        return end
