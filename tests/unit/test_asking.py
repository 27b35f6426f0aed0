"""A question how a reply was: for which reasons, and how often at most."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.asking import APART, Limits, Reason, Signals, reason
from app.store.tables.feedback import ASK_REASONS

LIMITS = Limits(per_day=2, after_silent_replies=10, new_checkpoint_replies=3)
NOTHING = Signals(by_checkpoint=None, since_feedback=1, since_asked=None, asked_today=0)
SIGNALS = st.builds(
    Signals,
    by_checkpoint=st.none() | st.integers(1, 30),
    since_feedback=st.integers(0, 30),
    since_asked=st.none() | st.integers(1, 30),
    asked_today=st.integers(0, 5),
    no_verdict=st.booleans(),
    confidence=st.none() | st.floats(0, 1),
    split=st.booleans(),
)


@pytest.mark.parametrize(
    ("signals", "why"),
    [
        ({}, None),
        ({"since_feedback": 9}, None),
        ({"since_feedback": 10}, Reason.LONG_SILENCE),
        ({"since_feedback": 30, "since_asked": 9}, None),
        ({"since_feedback": 30, "since_asked": 10}, Reason.LONG_SILENCE),
        ({"by_checkpoint": 1}, Reason.NEW_CHECKPOINT),
        ({"by_checkpoint": 3}, Reason.NEW_CHECKPOINT),
        ({"by_checkpoint": 4}, None),
        ({"by_checkpoint": 2, "since_asked": 1}, None),
        ({"by_checkpoint": 3, "since_asked": 2}, Reason.NEW_CHECKPOINT),
        ({"by_checkpoint": 4, "since_feedback": 10}, Reason.LONG_SILENCE),
        ({"no_verdict": True}, Reason.JUDGE_UNSURE),
        ({"confidence": 0.59}, Reason.JUDGE_UNSURE),
        ({"confidence": 0.6}, None),
        ({"split": True, "confidence": 0.9}, Reason.VOTES_SPLIT),
        ({"split": True, "no_verdict": True, "by_checkpoint": 1}, Reason.VOTES_SPLIT),
        ({"split": True, "since_asked": 1}, None),
        ({"split": True, "asked_today": 1}, Reason.VOTES_SPLIT),
        ({"split": True, "asked_today": 2}, None),
        ({"since_feedback": 99, "asked_today": 3}, None),
    ],
)
def test_what_is_worth_asking_about(signals: dict[str, object], why: Reason | None) -> None:
    assert reason(replace(NOTHING, **signals), LIMITS) is why


@given(signals=SIGNALS)
def test_nobody_is_asked_beyond_their_budget_or_twice_in_a_row(signals: Signals) -> None:
    spent = replace(signals, asked_today=max(signals.asked_today, LIMITS.per_day))
    assert reason(spent, LIMITS) is None
    assert reason(signals, replace(LIMITS, per_day=0)) is None
    if signals.since_asked is not None and signals.since_asked < APART:
        assert reason(signals, LIMITS) is None


@given(signals=SIGNALS)
def test_every_question_has_a_reason_that_its_signals_show(signals: Signals) -> None:
    match reason(signals, LIMITS):
        case Reason.VOTES_SPLIT:
            assert signals.split
        case Reason.JUDGE_UNSURE:
            assert signals.no_verdict or (signals.confidence or 0) < 0.6
        case Reason.NEW_CHECKPOINT:
            assert (signals.by_checkpoint or 99) <= 3
        case Reason.LONG_SILENCE:
            assert signals.since_feedback >= 10


def test_the_store_knows_every_reason() -> None:
    assert set(ASK_REASONS) == set(Reason)


@pytest.mark.parametrize(("silent", "new", "lately"), [(10, 3, 10), (2, 3, 4), (1, 0, 3), (1, 9, 10)])
def test_as_many_replies_are_looked_at_as_a_reason_may_need(silent: int, new: int, lately: int) -> None:
    assert Limits(2, silent, new).lately == lately
