"""The terminal's sentences exist in both languages and take the same values."""

import asyncio
import re
import string
from pathlib import Path

import pytest

from app.config import Settings
from app.domain.profiles import PROFILES
from app.embedded import model
from app.embedded.messages import FOLDER, SentenceError, Texts, catalogue, language_of, sentence, spoken
from app.embedded.parts import Home
from app.embedded.run import _together
from app.errors import PartError


def _fields(sentence: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(sentence) if name}


def test_both_languages_have_the_same_keys() -> None:
    assert catalogue("en").keys() == catalogue("ko").keys()


@pytest.mark.parametrize("key", sorted(catalogue("en")))
def test_a_sentence_takes_the_same_values_in_both_languages(key: str) -> None:
    assert _fields(catalogue("en")[key]) == _fields(catalogue("ko")[key])


def test_values_are_filled_in() -> None:
    assert "7.5" in Texts("ko").say("part.ready", name="vllm", seconds=7.5)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, "en"),
        ({"LANG": "ko_KR.UTF-8"}, "ko"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
        ({"LANG": "ko_KR.UTF-8", "LC_ALL": "C.UTF-8"}, "en"),
        ({"LANG": "ko_KR.UTF-8", "LANGUAGE": "en_US:en"}, "en"),
        ({"LANG": "C", "LANGUAGE": "ko:en"}, "ko"),
    ],
)
def test_the_language_comes_from_the_setting_then_from_the_locale(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: str
) -> None:
    for name in ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert language_of(Settings(_env_file=None)) == expected


def test_why_a_part_does_not_start_is_said_in_the_terminals_language() -> None:
    error = SentenceError("postgres.leftover", pid=7)
    assert "(process 7) does not stop" in str(error)
    assert sentence(error, Texts("ko")).startswith("이전에 실행한 PostgreSQL(프로세스 7)")
    with pytest.raises(PartError, match="프로세스 7"), spoken(Texts("ko")):
        raise error


def test_every_sentence_that_is_raised_exists() -> None:
    raised = {
        key
        for path in FOLDER.glob("*.py")
        for key in re.findall(r'SentenceError\(\s*f?"([a-z_.{}]+)"', path.read_text("utf-8"))
    }
    assert len(raised) > 10
    for key in raised:
        pattern = re.escape(key).replace(r"\{what\}", "[a-z]+")
        assert [known for known in catalogue("en") if re.fullmatch(pattern, known)], key


async def test_a_model_that_may_not_be_fetched_is_one_sentence_however_many_parts_start(tmp_path: Path) -> None:
    absent = next(profile for profile in PROFILES.values() if not profile.bundled)

    async def other() -> None:
        await asyncio.sleep(5)

    async def fetch() -> None:
        model.ensure(Home(tmp_path), absent)

    with pytest.raises(PartError, match=f"{absent.title} is not on this machine .* ALLOW_DOWNLOAD=true"):
        await _together(other(), fetch())
