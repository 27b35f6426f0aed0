"""The machine-decidable properties of replies, and how plain words ask for them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.checker import CheckerSpec, Rule, check, derive, failures
from app.domain.checker.properties import language, sentences, words
from app.errors import InvalidInputError

LONG = "This is a long answer. " * 12


def has(kind: str, text: str, value: str | int | None = None) -> bool:
    return check(CheckerSpec((Rule(kind, value),)), text)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "value", "good", "bad"),
    [
        ("starts_with", "Good question!", "good question! Rain falls.", "Rain falls. Good question!"),
        ("ends_with", "Stay curious!", "Rain falls. Stay curious! \n", "Stay curious! Rain falls."),
        ("ends_with", "it’s fine", "They say it's fine", "it's"),
        ("contains", "비", "오늘은 비가 와요.", "오늘은 맑아요."),
        ("not_contains", "sorry", "Here it is.", "I am Sorry, no."),
        ("max_words", 3, "one two three", "one two three four"),
        ("min_words", 3, "one two three", "one two - !"),
        ("max_sentences", 1, "It costs 3.50 dollars.", "It rains. It pours."),
        ("max_sentences", 1, "Dr. Lee came.", "Yes! No?"),
        ("min_sentences", 2, "비가 와요. 우산을 챙기세요.", "비가 와요"),
        ("max_chars", 5, "12345", "123456"),
        ("bullet_list", None, "- a\n- b", "- a"),
        ("bullet_list", None, "Here:\n• a\n• b", "a - b - c"),
        ("numbered_list", None, "1. a\n2. b", "1. a"),
        ("no_list", None, "a, b and c", "1) a"),
        ("no_bold", None, "2 * 3 * 4", "It is **very** wet"),
        ("plain_text", None, "Just words.", "# Title"),
        ("uppercase", None, "HELLO 안녕 3!", "HELLo"),
        ("lowercase", None, "hello.", "Hello."),
        ("emoji", None, "Hi 🙂", "Hi :)"),
        ("no_emoji", None, "Hi :)", "Hi 🙂"),
        ("json", None, '```json\n{"a": 1}\n```', "a: 1"),
        ("language", "ko", "파이썬(Python)은 언어예요.", "Python is a language."),
        ("language", "en", "Python is a language.", "파이썬은 언어예요."),
        ("korean_polite", None, "네, 맞아요. 비가 옵니다!", "응, 맞아요. 비가 와."),
        ("korean_casual", None, "응, 비가 와.", "네, 비가 와요."),
        ("regex", r"^\d{4}$", "2024", "in 2024"),
    ],
)
def test_a_property_holds_for_one_and_not_for_the_other(
    kind: str, value: str | int | None, good: str, bad: str
) -> None:
    assert has(kind, good, value)
    assert not has(kind, bad, value)


@pytest.mark.parametrize("blank", ["", "  \n", "\u200b", "\u202e"])
def test_a_blank_reply_has_no_property(blank: str) -> None:
    assert not has("max_words", blank, 5)
    assert not has("no_bold", blank)


def test_failures_name_the_broken_rules_in_order() -> None:
    spec = CheckerSpec((Rule("max_words", 2), Rule("no_bold"), Rule("ends_with", "!")))
    assert [rule.kind for rule in failures(spec, "one two **three**")] == ["max_words", "no_bold", "ends_with"]


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"all": []},
        {"all": [{"kind": "nice"}]},
        {"all": [{"kind": "max_words"}]},
        {"all": [{"kind": "max_words", "value": True}]},
        {"all": [{"kind": "max_words", "value": 0}]},
        {"all": [{"kind": "max_words", "value": "3"}]},
        {"all": [{"kind": "no_bold", "value": 1}]},
        {"all": [{"kind": "language", "value": "xx"}]},
        {"all": [{"kind": "ends_with", "value": " "}]},
        {"all": [{"kind": "regex", "value": "(a+)+$"}]},
        {"all": [{"kind": "regex", "value": "("}]},
        {"all": [{"kind": "no_bold", "extra": 1}]},
        {"any": [{"kind": "no_bold"}]},
        {"all": "no_bold"},
        {"all": [{"kind": "no_bold"}] * 9},
    ],
)
def test_nonsense_is_no_checker(data: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError):
        CheckerSpec.parse(data)


def test_json_round_trip() -> None:
    spec = CheckerSpec((Rule("max_words", 20), Rule("bullet_list"), Rule("language", "ko")))
    assert CheckerSpec.parse(spec.as_json()) == spec


@pytest.mark.parametrize(
    ("hint", "good", "bad", "rule"),
    [
        ("keep it under 20 words", "Rain is water.", LONG, Rule("max_words", 20)),
        ("at most fifteen words please", "Rain is water.", LONG, Rule("max_words", 15)),
        ("20 words or less", "Rain is water.", LONG, Rule("max_words", 20)),
        ("20단어 이내로 해줘", "비는 물이에요.", "비는 물이에요 " * 20, Rule("max_words", 20)),
        ("50자 이내로", "비는 물이에요.", "비는 물이에요 " * 20, Rule("max_chars", 50)),
        ("write at least 30 words", LONG, "Rain.", Rule("min_words", 30)),
        ("answer in one sentence", "Rain is water.", "Rain is water. It falls.", Rule("max_sentences", 1)),
        ("짧게 한 문장으로", "비는 물이에요.", "비는 물이에요. 하늘에서 와요.", Rule("max_sentences", 1)),
        ("두 문장으로 답해 줘", "비예요. 물이죠.", "비예요. 물이죠. 와요.", Rule("max_sentences", 2)),
        ("end every answer with 'Stay curious!'", "Rain. Stay curious!", "Rain.", Rule("ends_with", "Stay curious!")),
        ("Always end with Stay curious!", "Rain. Stay curious!", "Rain.", Rule("ends_with", "Stay curious!")),
        ("Sign off with “Cheers, Bo”", "Rain. Cheers, Bo", "Rain.", Rule("ends_with", "Cheers, Bo")),
        ("start with 'Ahoy'", "Ahoy there", "Hello", Rule("starts_with", "Ahoy")),
        (
            "항상 '좋은 질문이에요!'로 시작해",
            "좋은 질문이에요! 비는 물.",
            "비는 물.",
            Rule("starts_with", "좋은 질문이에요!"),
        ),
        ("끝에 '화이팅!' 붙여줘", "비는 물. 화이팅!", "비는 물.", Rule("ends_with", "화이팅!")),
        ("감사합니다라고 끝내줘", "비는 물. 감사합니다", "비는 물.", Rule("ends_with", "감사합니다")),
        ("감사합니다로 끝내줘", "비는 물. 감사합니다", "비는 물.", Rule("ends_with", "감사합니다")),
        ("mention 'umbrella'", "Take an umbrella.", "It rains.", Rule("contains", "umbrella")),
        ("don't say 'as an AI'", "It rains.", "As an AI, I...", Rule("not_contains", "as an AI")),
        ("'죄송합니다' 쓰지 마", "비가 와요.", "죄송합니다, 비가 와요.", Rule("not_contains", "죄송합니다")),
        ("반말로 하지 마", "비가 와요.", "비가 와.", Rule("korean_polite")),
        ("존댓말로 해줘", "비가 와요.", "비가 와.", Rule("korean_polite")),
        ("반말로 해줘", "비가 와.", "비가 와요.", Rule("korean_casual")),
        ("use bullet points", "- a\n- b", "a and b", Rule("bullet_list")),
        ("글머리 기호로 써줘", "- a\n- b", "a, b", Rule("bullet_list")),
        ("no bullet points", "a and b", "- a\n- b", Rule("no_list")),
        ("목록 말고 그냥 글로", "a, b", "- a\n- b", Rule("no_list")),
        ("number the steps", "1. a\n2. b", "a then b", Rule("numbered_list")),
        ("번호를 매겨서", "1. a\n2. b", "a, b", Rule("numbered_list")),
        ("please don't use bold", "wet", "**wet**", Rule("no_bold")),
        ("굵은 글씨 빼", "wet", "**wet**", Rule("no_bold")),
        ("ALL CAPS please", "WET", "wet", Rule("uppercase")),
        ("no emojis", "wet", "wet 🙂", Rule("no_emoji")),
        ("이모지 좀 써줘", "비 🙂", "비", Rule("emoji")),
        ("answer in Korean", "비가 와요", "it rains", Rule("language", "ko")),
        ("영어로 답해", "it rains", "비가 와요", Rule("language", "en")),
        ("as json", '{"a": 1}', "a", Rule("json")),
        ("end with a question", "Rain. And you?", "Rain.", Rule("ends_with", "?")),
        ("no exclamation marks", "Rain.", "Rain!", Rule("not_contains", "!")),
    ],
)
def test_plain_words_become_a_confirmed_rule(hint: str, good: str, bad: str, rule: Rule) -> None:
    spec = derive(hint, [good], [bad])
    assert spec is not None
    assert rule in spec.rules
    assert check(spec, good)
    assert not check(spec, bad)


@pytest.mark.parametrize("hint", ["too long", "keep it short", "짧게 해줘", "좀 간결하게"])
def test_a_length_without_a_number_comes_from_the_examples(hint: str) -> None:
    spec = derive(hint, ["Rain is water."], [LONG])
    assert spec is not None
    assert spec.rules[0].kind == "max_words"
    assert 3 <= int(str(spec.rules[0].value)) < 60
    longer = derive("more detail please", [LONG], ["Rain is water."])
    assert longer is not None
    assert longer.rules[0].kind == "min_words"


@pytest.mark.parametrize(
    ("hint", "good", "bad"),
    [
        ("that is wrong, Canberra is the capital", "Canberra.", "Sydney."),
        ("I am allergic to nuts", "Try rice.", "Try nuts."),
        ("be nicer", "Sure, gladly.", "No."),
        ("", "a", "b"),
        ("under 5 words", "this approved reply has far more words than that", "b"),
        ("under 20 words", "short", "also short"),
        ("use bullet points", "no bullets here", "none"),
        ("그건 사실이 아니야", "캔버라예요.", "시드니예요."),
    ],
)
def test_what_words_or_examples_do_not_decide_has_no_checker(hint: str, good: str, bad: str) -> None:
    assert derive(hint, [good], [bad]) is None


@pytest.mark.parametrize(
    "hint",
    [
        "Always end with a proverb about patience",
        "start with the answer",
        "end with one more idea",
        "항상 속담으로 마무리해 주세요",
    ],
)
def test_what_is_named_is_not_taken_for_the_words_themselves(hint: str) -> None:
    assert derive(hint) is None


def test_several_rules_in_one_sentence() -> None:
    spec = derive("Answer in one sentence and end with 'Bye!'", ["Rain is wet, Bye!"], ["Rain is wet. It falls."])
    assert spec == CheckerSpec((Rule("ends_with", "Bye!"), Rule("max_sentences", 1)))


def test_a_quoted_instruction_is_content() -> None:
    spec = derive("end with 'use bullet points'", ["Rain. use bullet points"], ["Rain."])
    assert spec == CheckerSpec((Rule("ends_with", "use bullet points"),))


def test_only_a_bad_example_is_enough_to_check_rewrites() -> None:
    spec = derive("answer in one sentence", [], ["One. Two."])
    assert spec is not None
    assert check(spec, "One.")


def test_drift_exemptions_follow_the_lesson() -> None:
    assert CheckerSpec((Rule("max_words", 5),)).exempts == {"length"}
    assert CheckerSpec((Rule("bullet_list"),)).exempts == {"format"}
    assert CheckerSpec((Rule("ends_with", "x"),)).exempts == frozenset()
    assert CheckerSpec((Rule("korean_polite"),)).exempts == {"language"}


def test_counting() -> None:
    assert words("안녕 하세요 - !") == 2
    assert sentences("First line\nSecond line\n\n3. Third!") == 3
    assert language("12 + 3") is None


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=300), st.text(max_size=200))
def test_no_text_breaks_it(hint: str, text: str) -> None:
    spec = derive(hint, [text], [])
    assert spec is None or check(spec, text)
