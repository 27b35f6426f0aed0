"""Updates generated from the machine-readable Bot API: whatever its types allow, required fields always, others sometimes.

Owns no rule of Telegram beyond the specification, except that a moment is one of our days and an id a number that fits.
"""

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import strategies as st

JSON = dict[str, Any]
SPEC_FILE: Final = Path(__file__).parents[3] / "shared" / "data" / "telegram_bot_api.json"
MOMENTS: Final = (1_700_000_000, 1_790_000_000)
IDS: Final = (1, 2, 5_000_000_001, 5_000_000_002, -4_001, -1_000_000_004_001, 777_000, 1_087_968_824, (1 << 52) - 1)
DEEP: Final = 4
_QUOTED: Final = re.compile(r"[\"“]([^\"”]{1,40})[\"”]")
_ENTITY_TEXT: Final = st.sampled_from(
    ["hello", "/help", "/stop", "@mentee_test_bot hi", "👍", "안녕하세요", "a\u0000b", "x" * 5000]
)


def specification() -> JSON:
    """Return the Bot API; skip the test where it does not lie beside the checkout."""
    if not SPEC_FILE.exists():
        pytest.skip("../shared/data/telegram_bot_api.json is not here")
    return dict(json.loads(SPEC_FILE.read_text()))


@st.composite
def updates(draw: st.DrawFn, spec: JSON, update_id: int | None = None) -> JSON:
    """Return an update with one of the things that may happen in it."""
    kinds = {field["name"]: field for field in spec["types"]["Update"]["fields"] if not field["required"]}
    # What the bot subscribes to comes as often as everything else together.
    handled = [
        k for k in ("message", "edited_message", "callback_query", "message_reaction", "my_chat_member") if k in kinds
    ]
    name = draw(st.sampled_from(handled) | st.sampled_from(sorted(kinds)))
    number = draw(st.integers(1, 1 << 31)) if update_id is None else update_id
    return {"update_id": number, name: draw(_of(spec, kinds[name], 0))}


@st.composite
def _of(draw: st.DrawFn, spec: JSON, field: JSON, depth: int) -> Any:  # noqa: ANN401 - any value of JSON
    kind = draw(st.sampled_from(field["types"]))
    return draw(_value(spec, kind, field, depth))


def _value(spec: JSON, kind: str, field: JSON, depth: int) -> st.SearchStrategy[Any]:
    if kind.startswith("Array of "):
        inner = field | {"types": [kind.removeprefix("Array of ")]}
        return st.just([]) if depth >= DEEP else st.lists(_of(spec, inner, depth + 1), max_size=2)
    if kind in spec["types"]:
        return _object(spec, kind, depth + 1)
    return {"Integer": _integer(field), "String": _words(field), "Boolean": st.booleans()}.get(
        kind,
        st.floats(-180, 180) if kind == "Float" else st.just(True),
    )


@st.composite
def _object(draw: st.DrawFn, spec: JSON, kind: str, depth: int) -> JSON:
    declared = spec["types"][kind]
    if "subtypes" in declared:
        # Some of them are plain values or lists of themselves, as in a rich text.
        plain = [one for one in declared["subtypes"] if one not in spec["types"]]
        kinds = plain if plain and depth >= DEEP else declared["subtypes"]
        one = draw(st.sampled_from(kinds))
        return draw(_value(spec, one, {"name": "text", "types": [one]}, depth - (one in spec["types"])))
    fields = declared.get("fields", [])
    optional = [field["name"] for field in fields if not field["required"]]
    most = max(0, 4 - depth)
    chosen = draw(st.sets(st.sampled_from(optional), max_size=most)) if optional and most else set()
    return {f["name"]: draw(_of(spec, f, depth)) for f in fields if f["required"] or f["name"] in chosen}


def _integer(field: JSON) -> st.SearchStrategy[int]:
    name = field["name"]
    if name == "date" or name.endswith("_date"):
        return st.integers(*MOMENTS)
    if name == "id" or name.endswith("_id"):
        return st.sampled_from(IDS) | st.integers(1, 200)
    return st.integers(0, 5000)


def _words(field: JSON) -> st.SearchStrategy[str]:
    about = field.get("description", "")
    known = _QUOTED.findall(" ".join(about) if isinstance(about, list) else about)
    if field["name"] in {"type", "status"} and known:
        return st.sampled_from(known)
    if field["name"] in {"text", "caption", "data"}:
        return _ENTITY_TEXT | st.text(max_size=20)
    return (st.sampled_from(known) | st.text(max_size=8)) if known else st.text(max_size=12)
