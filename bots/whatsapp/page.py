"""Writes Markdown block tokens as lines that WhatsApp shows well: headings bold, lists with their depth as indent, quotes
with `> `, code between fences, tables as `label: value` lines. Where the source has no blank line between blocks, neither
has the page. Knows nothing of message limits.
"""

import re
from collections.abc import Iterator, Sequence

from markdown_it.token import Token
from markdown_it.tree import SyntaxTreeNode

from bots.whatsapp.ink import inline, marked

_RULE = "———"
_INDENT = "  "
_QUOTE = "> "
_LANGUAGE = re.compile(r"[\w+#.-]{0,32}")
_FENCE = "```"
_BROKEN_FENCE = "`\u2060``"  # a word joiner, which nobody sees, keeps code from ending its own block


class Page:
    """What `tokens` of a source with these `lines` look like in a chat."""

    def __init__(self, lines: Sequence[str], tokens: Sequence[Token]) -> None:
        self._lines = lines
        self._root = SyntaxTreeNode(tokens)

    def text(self) -> str:
        """Return the page."""
        return self._blocks(self._root.children).strip("\n")

    def _blocks(self, nodes: Sequence[SyntaxTreeNode]) -> str:
        written = ""
        for node in nodes:
            block = self._block(node)
            if block:
                written += (self._gap(node) if written else "") + block
        return written

    def _gap(self, node: SyntaxTreeNode) -> str:
        first = node.map[0] if node.map else 0
        return "\n\n" if first > 0 and not self._lines[first - 1].strip("> \t") else "\n"

    def _block(self, node: SyntaxTreeNode) -> str:
        match node.type:
            case "paragraph":
                return _inline(node)
            case "heading":
                return marked(_inline(node, around="*"), "*")
            case "fence" | "code_block":
                return _code(node)
            case "bullet_list" | "ordered_list":
                return self._list(node)
            case "blockquote":
                return self._quote(node)
            case "table":
                return "\n\n".join(_rows(node))
            case "hr":
                return _RULE
            case _:
                return _inline(node) or (node.content if node.token else "")

    def _list(self, node: SyntaxTreeNode) -> str:
        written = ""
        for bullet, item in zip(_bullets(node), node.children, strict=True):
            body = self._blocks(item.children)
            # What owns whole lines stands under its bullet, not in it.
            fenced = bool(item.children) and item.children[0].type in {"fence", "code_block", "table"}
            line = f"{bullet}\n{body}" if fenced else bullet + _indented(body)
            written += (self._gap(item) if written else "") + line.rstrip(" ")
        return written

    def _quote(self, node: SyntaxTreeNode) -> str:
        body = self._blocks(node.children)
        if node.parent and node.parent.type == "blockquote":
            return body  # one level is all that WhatsApp shows
        return "\n".join(_QUOTE + line for line in body.split("\n"))


def _inline(node: SyntaxTreeNode, *, around: str = "") -> str:
    return "".join(_tokens(child, around) for child in node.children if child.type == "inline")


def _tokens(node: SyntaxTreeNode, around: str = "") -> str:
    return inline(node.token.children or [], around=around) if node.token else ""


def _code(node: SyntaxTreeNode) -> str:
    body = node.content.removesuffix("\n").replace(_FENCE, _BROKEN_FENCE)
    info = node.info.strip()
    language = _LANGUAGE.match(info)
    more = info[language.end() :].strip() if language else info
    if not body.strip():
        return info
    return (f"{more}\n" if more else "") + f"{_FENCE}\n{body}\n{_FENCE}"


def _bullets(node: SyntaxTreeNode) -> Iterator[str]:
    if node.type == "bullet_list":
        yield from ["- "] * len(node.children)
        return
    start = int(node.attrs.get("start", 1))
    for place, item in enumerate(node.children):
        # Models number every item "1." or number them on purpose: count up the habit, follow the purpose.
        literal = int(item.info or start)
        yield f"{start + place if literal == start else literal}{item.markup} "


def _indented(body: str) -> str:
    """Return a list item's lines, all after the first indented; code stays where WhatsApp wants it."""
    lines, fenced = body.split("\n"), False
    for place, line in enumerate(lines):
        fence = line.startswith(_FENCE)
        if place and line and not fence and not fenced:
            lines[place] = _INDENT + line
        fenced ^= fence
    return "\n".join(lines)


def _rows(table: SyntaxTreeNode) -> Iterator[str]:
    rows = [[_inline(cell) for cell in row.children] for part in table.children for row in part.children]
    header, *body = rows
    if not body:
        yield ", ".join(header)
    for row in body:
        labelled = [f"{label}: {value}" if label else value for label, value in zip(header, row, strict=False)]
        yield "\n".join([*labelled, *row[len(header) :]])
