"""Quotas: what is used up, and when there is room again."""

import pytest

from app.domain.quota import Over, Usage, over


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (Usage(), None),
        (Usage(replies=2, oldest_s=10), None),
        (Usage(replies=3, oldest_s=10), Over("minute", 50)),
        (Usage(replies=9, oldest_s=61), Over("minute", 0)),
        (Usage(tokens=99, day_left_s=3600), None),
        (Usage(tokens=100, day_left_s=3600), Over("day", 3600)),
        (Usage(replies=3, oldest_s=10, tokens=100, day_left_s=3600), Over("day", 3600)),
    ],
)
def test_what_is_used_up(usage: Usage, expected: Over | None) -> None:
    assert over(usage, replies_a_minute=3, tokens_a_day=100) == expected


def test_without_a_limit_nothing_is() -> None:
    assert over(Usage(replies=10**6, tokens=10**9), replies_a_minute=0, tokens_a_day=0) is None
