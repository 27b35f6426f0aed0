"""Every sentence exists in both languages with the same placeholders."""

import string

from app.admin.views import feedback as review
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


def test_what_reviewers_read_is_said_where_it_is_allowed() -> None:
    """The panel shows the conversation around a feedback and all of memory: both channels' words say so."""
    assert (review._BEFORE, review._AFTER) == (4, 1)
    said = {
        "en": ("feedback", "message and the reply", "four exchanges before and one after", "tried for it", "memory"),
        "ko": ("피드백", "메시지와 답", "앞의 대화 네 번과 뒤의 대화 한 번", "다시 써 본 답", "기억하"),
    }
    for language, words in said.items():
        for key in ("consent_human_review_more", "web.consent.human_review.more"):
            for word in words:
                assert word in catalogue(language)[key], (language, key, word)
