"""Which tables of a reply are drawn as tables: one that would grow far beyond what was written stays text.

A table's rows are filled up to the width of its head, and where a chat has no tables each row repeats the head's labels: a
few hundred characters can ask for ten thousand empty cells or a hundred messages. Knows nothing of any platform.
"""

from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.rules_block.state_block import StateBlock
from markdown_it.rules_block.table import table
from markdown_it.token import Token

MAX_COLUMNS = 20
# At most this many cells for each that somebody wrote: a section's row with one cell is common, a table of them is not.
_CELLS_EACH = 4
# The labels that all rows repeat, in characters: at most this many times the table's own length, and what is short anyway.
_LABELS_EACH = 8
_LABELS_FREE = 8000


def limit_tables(parser: MarkdownIt) -> None:
    """Make `parser` leave tables that would grow beyond their source as the text they were written as."""
    parser.block.ruler.at("table", _limited, {"alt": ["paragraph", "reference"]})


def _limited(state: StateBlock, first: int, end: int, silent: bool) -> bool:  # noqa: FBT001 - the library's own signature
    if not table(state, first, end, True) or _columns(_line(state, first + 1)) > MAX_COLUMNS:  # noqa: FBT003 - same
        return False
    if silent:
        return True
    before = len(state.tokens)
    if not table(state, first, end, silent):
        return False
    if _grows_little([_line(state, n) for n in range(first, state.line)], state.tokens[before:]):
        return True
    del state.tokens[before:]
    state.line = first
    return False


def _line(state: StateBlock, number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]]


def _columns(line: str) -> int:
    return line.strip().removeprefix("|").removesuffix("|").count("|") + 1


def _grows_little(lines: Sequence[str], tokens: Sequence[Token]) -> bool:
    cells = sum(token.type in {"th_open", "td_open"} for token in tokens)
    labels = len(lines) * len(lines[0])
    return (
        cells <= _CELLS_EACH * sum(map(_columns, lines))
        and labels <= _LABELS_EACH * sum(map(len, lines)) + _LABELS_FREE
    )
