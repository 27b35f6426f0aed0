"""Every sentence exists in both languages with the same placeholders."""

import string

from app.domain.messages import LANGUAGES, catalogue, pick, text


def placeholders(sentence: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(sentence) if name}


def test_languages_have_the_same_sentences() -> None:
    keys = {language: set(catalogue(language)) for language in LANGUAGES}
    assert keys["en"] == keys["ko"]
    assert keys["en"]


def test_sentences_take_the_same_values() -> None:
    for key, sentence in catalogue("en").items():
        assert placeholders(sentence) == placeholders(catalogue("ko")[key]), key


def test_the_nearest_language_is_picked() -> None:
    assert [pick(tag) for tag in ("ko-KR", "KO", "en-GB", "fr", "", None)] == ["ko", "ko", "en", "en", "en", "en"]
    assert text("ko-KR", "memory_line", line="가") == "• 가"
