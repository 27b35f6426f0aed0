"""The model's Markdown as HTML that can only show text: rendered here, then cut down to an allow-list.

Two walls: the renderer passes no HTML of the text's own through (`<br>` is read as a line break), and nh3 (ammonia) drops
whatever is not listed. Pictures become links, so that a reply cannot call a foreign server when it is shown.
"""

from collections.abc import Sequence
from functools import lru_cache
from html import escape

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererProtocol
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from bots.lone_signs import keep_lone_signs
from bots.markdown import LINE_BREAK, ChatInline, only_signs
from bots.tables import limit_tables

TAGS = {
    *("p", "br", "hr", "strong", "em", "s", "code", "pre", "blockquote", "a"),
    *("ul", "ol", "li", "h1", "h2", "h3", "h4", "h5", "h6"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}
ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}}
SCHEMES = {"http", "https", "mailto", "tel"}
# Nested quotes and lists beyond this are shown flat; it bounds the work that hostile text can cause.
MAX_NESTING = 20


@lru_cache
def _markdown() -> MarkdownIt:
    parser = MarkdownIt("commonmark")
    parser.inline = ChatInline()
    parser.configure("commonmark", {"html": False, "breaks": True, "maxNesting": MAX_NESTING})
    parser.enable(["table", "strikethrough", ChatInline.LINE_BREAKS])
    parser.disable("reference")  # a definition shows nothing, and "[Answer]: Paris" is one
    limit_tables(parser)
    keep_lone_signs(parser)
    parser.add_render_rule("image", _picture)
    return parser


def _picture(_: RendererProtocol, tokens: Sequence[Token], index: int, __: OptionsDict, ___: EnvType) -> str:
    token = tokens[index]
    source, words = str(token.attrGet("src") or ""), token.content or "picture"
    return f'<a href="{escape(source)}">{escape(words)}</a>'


def html(text: str) -> str:
    """Return the Markdown `text` as safe HTML."""
    if only_signs(text) or not LINE_BREAK.sub("", text).strip():
        return f"<p>{escape(text.strip())}</p>\n"
    return nh3.clean(
        _markdown().render(text),
        tags=TAGS,
        attributes=ATTRIBUTES,
        url_schemes=SCHEMES,
        link_rel="noopener noreferrer nofollow ugc",
    )
