"""The authority ladder: the cheapest means that fixes a complaint, and what a line needs before it reaches weights."""

import uuid
from dataclasses import replace

import pytest

from app.config import LadderSettings
from app.domain.consent import Consents, Purpose
from app.domain.feedback import Classification, FeedbackClass, classify_by_person, classify_by_rule
from app.domain.ladder import Rung, decide_feedback, decide_graduation, progress
from app.domain.memory import Example, MemoryLine, in_prompt

SETTINGS = LadderSettings(_env_file=None)  # type: ignore[call-arg]
ALL = Consents(frozenset(Purpose))
NONE = Consents(frozenset())
CHECK: dict[str, object] = {"all": [{"kind": "max_words", "value": 20}]}
LINE = MemoryLine(
    uuid.uuid4(), uuid.uuid4(), "preference", "Keep it short.", "active", 8, 0, 2, (Example("q", "a"),), CHECK
)


def classified(kind: FeedbackClass, confidence: float = 0.9) -> Classification:
    return Classification(kind, confidence, "rule", "test")


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("Please keep it under 20 words.", FeedbackClass.STYLE),
        ("앞으로는 존댓말로 짧게 대답해 줘", FeedbackClass.STYLE),
        ("I am allergic to nuts", FeedbackClass.PERSONAL_FACT),
        ("저는 땅콩 알레르기가 있어요", FeedbackClass.PERSONAL_FACT),
        ("just this time, use a table", FeedbackClass.ONE_OFF),
        ("이번만 영어로 써 줘", FeedbackClass.ONE_OFF),
        ("That's wrong, the capital is Canberra", FeedbackClass.WRONG_FACT),
        ("그건 틀렸어요", FeedbackClass.WRONG_FACT),
        ("I hate coriander", FeedbackClass.PREFERENCE),
        ("you idiot", FeedbackClass.ABUSE),
        ("Thanks!", FeedbackClass.PRAISE),
        ("What is the tallest mountain?", FeedbackClass.UNCLEAR),
    ],
)
def test_rules_sort_plain_words_in_both_languages(words: str, kind: FeedbackClass) -> None:
    assert classify_by_rule(words).kind is kind


@pytest.mark.parametrize(
    "kind", [FeedbackClass.ONE_OFF, FeedbackClass.TOPIC_CHANGE, FeedbackClass.ABUSE, FeedbackClass.PRAISE]
)
def test_what_teaches_nothing_changes_nothing(kind: FeedbackClass) -> None:
    assert decide_feedback(classified(kind), ALL, SETTINGS).rung is Rung.NOTHING


@pytest.mark.parametrize("kind", [FeedbackClass.STYLE, FeedbackClass.PREFERENCE, FeedbackClass.PERSONAL_FACT])
def test_a_sentence_goes_to_memory_only_with_consent(kind: FeedbackClass) -> None:
    assert decide_feedback(classified(kind), ALL, SETTINGS).rung is Rung.MEMORY
    refused = decide_feedback(classified(kind), NONE, SETTINGS)
    assert (refused.rung, refused.rule) == (Rung.NOTHING, "no_memory_consent")


def test_the_unsure_is_asked_and_the_decision_carries_its_threshold() -> None:
    decision = decide_feedback(classified(FeedbackClass.STYLE, 0.3), ALL, SETTINGS)
    assert decision.rung is Rung.ASK
    assert decision.figures["confidence"] < decision.thresholds["min_confidence"]


def test_a_wrong_fact_never_reaches_memory_or_weights_by_itself() -> None:
    assert decide_feedback(classified(FeedbackClass.WRONG_FACT), ALL, SETTINGS).rung is Rung.EVALUATION
    assert decide_feedback(classified(FeedbackClass.WRONG_FACT), NONE, SETTINGS).rung is Rung.NOTHING


def test_a_persons_own_choice_is_certain() -> None:
    choice = classify_by_person("once")
    assert (choice.kind, choice.confidence, choice.by) == (FeedbackClass.ONE_OFF, 1.0, "person")


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({}, "stable_and_used"),
        ({"uses": 7}, "needs_more_use"),
        ({"uses": 2, "failures": 3}, "keeps_failing"),
        ({"sessions": 1}, "needs_more_conversations"),
        ({"examples": ()}, "needs_an_example"),
        ({"checker": None}, "needs_a_check"),
        ({"checker": None, "failures": 9}, "needs_a_check"),
        ({"kind": "fact"}, "facts_stay_in_memory"),
    ],
)
def test_a_line_graduates_when_it_has_earned_it(change: dict[str, object], rule: str) -> None:
    decision = decide_graduation(replace(LINE, **change), ALL, SETTINGS)
    assert decision.rule == rule
    assert (decision.rung is Rung.ADAPTER) == (rule in {"stable_and_used", "keeps_failing"})


def test_nothing_graduates_without_training_consent() -> None:
    only_memory = Consents(frozenset({Purpose.MEMORY}))
    assert decide_graduation(LINE, only_memory, SETTINGS).rule == "no_training_consent"


def test_progress_says_what_is_missing() -> None:
    shown = progress(replace(LINE, uses=5), SETTINGS)
    assert (shown.uses, shown.uses_needed, shown.sessions_needed, shown.examples_needed) == (5, 8, 2, 1)


def test_a_graduated_line_leaves_the_prompt_only_where_its_adapter_answers() -> None:
    checkpoint = uuid.uuid4()
    graduated = replace(LINE, state="graduated", checkpoint_id=checkpoint)
    assert in_prompt([graduated], checkpoint) == ()
    assert in_prompt([graduated], None) == (graduated,)
    assert in_prompt([LINE], checkpoint) == (LINE,)
