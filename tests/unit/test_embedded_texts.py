"""The terminal's sentences exist in both languages and take the same values."""

import string

import pytest

from app.config import Settings
from app.embedded.messages import Texts, catalogue, language_of


def _fields(sentence: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(sentence) if name}


def test_both_languages_have_the_same_keys() -> None:
    assert catalogue()["en"].keys() == catalogue()["ko"].keys()


@pytest.mark.parametrize("key", sorted(catalogue()["en"]))
def test_a_sentence_takes_the_same_values_in_both_languages(key: str) -> None:
    assert _fields(catalogue()["en"][key]) == _fields(catalogue()["ko"][key])


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
