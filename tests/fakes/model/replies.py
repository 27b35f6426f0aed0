"""What the fake model says: an echo by default, a minimal object where a JSON schema asks, or a script of the test.

Owns texts only. The named replies are the outputs of real models that broke other programs.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from tests.fakes.model.pictures import digest, shown
from tests.fakes.model.tokens import JSON, content_text


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer; `finish_reason` "length" cuts it without an end token."""

    text: str
    finish_reason: str = "stop"


@dataclass(frozen=True, slots=True)
class Call:
    """One generation request as a script sees it. `choice` counts from 0 where `n` asks for several."""

    model: str
    messages: list[JSON] = field(default_factory=list)
    prompt: str = ""
    body: JSON = field(default_factory=dict)
    choice: int = 0

    @property
    def last_user(self) -> str:
        """The last thing the person said; the prompt itself for plain completions."""
        said = [content_text(item) for item in self.messages if item.get("role") == "user"]
        return said[-1] if said else self.prompt

    @property
    def pictures(self) -> list[bytes]:
        """Every picture in view, oldest first."""
        return [picture for item in self.messages for picture in shown(item)]

    @property
    def system(self) -> str:
        """All system messages, joined by newlines."""
        return "\n".join(content_text(item) for item in self.messages if item.get("role") == "system")


Script = Callable[[Call], Reply | str]

EMPTY: Final = Reply("")
LENGTH_CUT: Final = Reply("The three steps are first, to take the", "length")
BROKEN_MARKDOWN: Final = Reply("**Bold that never ends\n```python\nprint('*')\n| a | b\n[link](http://\n> _q")
THINK_WITHOUT_OPENER: Final = Reply("The user greets me, so I greet back.\n</think>\n\nHello!")
THINK_ONLY: Final = Reply("<think>\nI wonder what to say")
LONG: Final = Reply("A sentence that goes on. " * 400)


def echo(call: Call) -> Reply:
    """The default: the last message comes back, numbered where several choices are asked, with what is seen."""
    shape = schema_of(call.body)
    if shape is not None:
        return Reply(json.dumps(minimal(shape, shape), ensure_ascii=False))
    mark = f" ({call.choice + 1})" if call.choice else ""
    said = call.last_user.strip()
    seen = "".join(f" [picture {digest(picture)}]" for picture in call.pictures)
    return Reply((f"You said{mark}: {said}" if said else f"You said{mark} nothing.") + seen)


def schema_of(body: JSON) -> JSON | None:
    """The JSON schema that the answer must meet, None for free text."""
    wanted = body.get("response_format")
    if isinstance(wanted, dict) and wanted.get("type") == "json_object":
        return {"type": "object"}
    if isinstance(wanted, dict) and wanted.get("type") == "json_schema":
        schema = wanted["json_schema"].get("schema", {})
        return schema if isinstance(schema, dict) else {}
    structured = body.get("structured_outputs")
    schema = structured.get("json") if isinstance(structured, dict) else None
    return schema if isinstance(schema, dict) else None


def minimal(schema: JSON, root: JSON) -> object:
    """The smallest value that `schema` allows, as far as JSON schema is used for answers."""
    if "$ref" in schema:
        return minimal(_resolve(str(schema["$ref"]), root), root)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    for several in ("anyOf", "oneOf", "allOf"):
        if schema.get(several):
            return minimal(schema[several][0], root)
    return _by_type(schema, root)


def _resolve(reference: str, root: JSON) -> JSON:
    found: Any = root
    for step in reference.removeprefix("#/").split("/"):
        found = found[step]
    return dict(found)


def _by_type(schema: JSON, root: JSON) -> object:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        needed = schema.get("required", [])
        return {name: minimal(schema.get("properties", {}).get(name, {}), root) for name in needed}
    if kind == "array":
        return [minimal(schema.get("items", {}), root)] * int(schema.get("minItems", 0))
    if kind in ("integer", "number"):
        return schema.get("minimum", min(0, schema.get("maximum", 0)))
    return {"boolean": False, "null": None}.get(kind, "x" * int(schema.get("minLength", 0)))
