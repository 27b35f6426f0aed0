"""Every scene goes through on both platforms in both languages, and between them they show every sentence of the dialogue."""

import json
import re
from collections.abc import Iterable
from importlib.resources import files

import pytest

from app.domain.messages import LANGUAGES, Language, catalogue
from bots.whatsapp.render import render
from tests.dialogues.page import page
from tests.dialogues.scenes import SCENES
from tests.dialogues.stage import Played, play_all

pytestmark = [pytest.mark.timeout(240), pytest.mark.usefixtures("brisk")]
ELSEWHERE = {
    "base_changed": "needs another base: tests/integration/test_release.py",
    "busy_failed": "needs a fault of our own: tests/integration/test_given_up.py",
    "press_failed": "the same",
    "button_gone": "needs a button whose row is gone: tests/integration/test_telegram_presses.py",
    "model_not_ready": "needs a model server that starts: tests/integration/test_slow_model.py",
    "export_done_several": "needs more than one file holds: tests/integration/test_pictures.py",
    "default_system_prompt": "is said to the model alone",
    "reply_later": "needs a channel that only answers: tests/integration/test_answering_channel.py",
    "welcome_in_words": "needs a channel in which nothing can be pointed at: the same",
    "ask_how_with_thumbs": "the same",
}
_VALUE = re.compile(r"\\{\w+\\}")
_HANGUL = re.compile("[가-힣]")
_NO_KOREAN = ("I'll speak English", "The three steps", "mentee-export", "…")


async def test_every_scene(postgres_url: str, template_database: str) -> None:
    played = await play_all(postgres_url, template_database, SCENES)
    for one in played:
        theirs = [bubble.text for bubble in one.bubbles if not bubble.mine and not bubble.note.startswith("✎")]
        assert any(theirs), f"{one.scene} on {one.platform}: the bot is silent"
        if one.language == "ko":
            assert not [t for t in theirs if t and not _HANGUL.search(t) and not t.startswith(_NO_KOREAN)], one.scene
    for language in LANGUAGES:
        left_out = sorted(unseen(played, language))
        assert left_out == sorted(ELSEWHERE), language
    assert page(played).count("<article") == len(played)


def unseen(played: Iterable[Played], language: Language) -> set[str]:
    """Return the keys of the dialogue's sentences that no bubble and no button shows."""
    bubbles = [bubble for one in played if one.language == language for bubble in one.bubbles if not bubble.mine]
    shown = "\n".join(
        line for b in bubbles for line in (b.text, b.note, *(label for row in b.buttons for label in row))
    )
    sentences = catalogue(language)
    return {key for key in dialogue_keys() if not re.search(_pattern(sentences[key]), shown)}


def dialogue_keys() -> list[str]:
    """Return the keys of the catalogue that the dialogue speaks from."""
    return list(json.loads((files("app.domain.messages") / "dialogue.en.json").read_text("utf-8")))


def _pattern(sentence: str) -> str:
    """Return a sentence as it is seen on either platform: without marks, with anything for its values."""
    bare = re.escape(render(sentence).strip())
    return _VALUE.sub("(?s:.+?)", re.sub(r"\\[*_]", "[*_]?", bare))
