"""A Markdown table as text: columns padded with spaces where the screen is wide enough, else a list of rows.

Widths are those of a monospaced font, in which Korean, Japanese and Chinese letters take two columns.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from markdown_it.token import Token
from wcwidth import wcswidth

MAX_WIDTH = 64
Cell = list[Token]


@dataclass(frozen=True, slots=True)
class Table:
    """The inline tokens of each cell, the header row first."""

    rows: tuple[tuple[Cell, ...], ...]


def read_table(tokens: list[Token], place: int) -> tuple[int, Table]:
    """Return the table that opens at `place`, and the place where it closes."""
    rows: list[list[Cell]] = []
    while tokens[place].type != "table_close":
        token = tokens[place]
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline":
            rows[-1].append(token.children or [])
        place += 1
    return place, Table(tuple(tuple(row) for row in rows))


def as_lines(table: Table) -> str | None:
    """Return the padded table; None when it is wider than a screen or holds links, which padded text cannot carry."""
    if any(token.type in {"link_open", "image"} for row in table.rows for cell in row for token in cell):
        return None
    texts = [[_plain(cell) for cell in row] for row in table.rows]
    columns = max(len(row) for row in texts)
    widths = [max(_width(line) for row in texts if n < len(row) for line in row[n]) for n in range(columns)]
    if sum(widths) + 3 * (columns - 1) > MAX_WIDTH:
        return None
    header, *body = ["\n".join(_lines(row, widths)) for row in texts]
    return "\n".join([header, "-+-".join("-" * width for width in widths), *body])


def as_list(table: Table) -> Iterator[list[str | Cell]]:
    """Yield lines, each of plain pieces and inline tokens: one item a row, its cells under their column's name."""
    header, *rows = table.rows
    if not rows:
        yield ["• ", *_joined(header)]
    for row in rows:
        for number, cell in enumerate(row):
            line: list[str | Cell] = ["  " if number else "• "]
            if number < len(header) and header[number]:
                line += [header[number], ": "]
            yield [*line, cell]


def _joined(row: tuple[Cell, ...]) -> Iterator[str | Cell]:
    for number, cell in enumerate(row):
        if number:
            yield ", "
        yield cell


def _plain(cell: Cell) -> list[str]:
    """Return the lines of a cell."""
    return [line.strip() for line in "".join(_text(token) for token in cell).strip().split("\n")]


def _text(token: Token) -> str:
    if token.type == "hardbreak":
        return "\n"
    if token.type != "html_inline":
        return token.content
    name = token.content.strip("</> ").lower()
    return "" if name in {"b", "strong", "i", "em", "u", "ins", "s", "del", "strike", "code"} else token.content


def _width(text: str) -> int:
    return max(0, wcswidth(text), 0 if text.isprintable() else len(text))


def _lines(row: list[list[str]], widths: list[int]) -> Iterator[str]:
    for texts in zip_longest(*row, fillvalue=""):
        cells = [text + " " * (width - _width(text)) for text, width in zip(texts, widths, strict=False)]
        yield " | ".join(cells).rstrip()
