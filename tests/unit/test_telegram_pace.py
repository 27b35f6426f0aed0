"""When requests may go: each chat for itself, by a clock that the test turns."""

import pytest

from app.domain.event import ChatAddress
from app.errors import DeliveryRetryError
from bots.telegram.pace import GROUP_GAP_S, PRIVATE_GAP_S, Pacer

ANN, BEN = ChatAddress("1"), ChatAddress("2")
GROUP = ChatAddress("-1", kind="group")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def pacer(clock: Clock) -> Pacer:
    return Pacer(clock)


def test_edits_are_a_second_apart_in_private_and_three_in_groups(pacer: Pacer, clock: Clock) -> None:
    for chat, gap, limit in ((ANN, PRIVATE_GAP_S, 1.0), (GROUP, GROUP_GAP_S, 3.0)):
        assert limit < gap < limit + 0.1
        assert pacer.reserve(chat, "send") == 0
        assert pacer.reserve(chat, "edit") == pytest.approx(gap)
        clock.now += 2 * gap
        assert pacer.reserve(chat, "edit") == pytest.approx(0)


def test_three_messages_may_go_together_then_one_a_second(pacer: Pacer) -> None:
    waits = [pacer.reserve(ANN, "send") for _ in range(6)]
    assert waits == pytest.approx([0, 0, 0, PRIVATE_GAP_S, 2 * PRIVATE_GAP_S, 3 * PRIVATE_GAP_S])


def test_who_would_wait_long_is_told_instead(pacer: Pacer) -> None:
    waits = [pacer.reserve(GROUP, "send") for _ in range(4)]
    assert waits[-1] == pytest.approx(GROUP_GAP_S)
    with pytest.raises(DeliveryRetryError) as refused:
        pacer.reserve(GROUP, "send")
    assert refused.value.retry_after_s == pytest.approx(2 * GROUP_GAP_S)


def test_a_flood_wait_is_one_chats_own(pacer: Pacer, clock: Clock) -> None:
    pacer.flooded(GROUP, 149)
    with pytest.raises(DeliveryRetryError) as refused:
        pacer.reserve(GROUP, "edit")
    assert refused.value.retry_after_s == pytest.approx(149)
    assert pacer.reserve(ANN, "send") == 0
    assert pacer.reserve(BEN, "send") == 0
    clock.now += 150
    assert pacer.reserve(GROUP, "send") == 0


def test_all_chats_together_stay_below_thirty_a_second(pacer: Pacer) -> None:
    waits = [pacer.reserve(ChatAddress(str(n)), "send") for n in range(90)]
    assert sum(wait <= 1 for wait in waits) <= 61
    assert max(waits) < 3


def test_chats_at_rest_are_forgotten(pacer: Pacer, clock: Clock) -> None:
    for n in range(10_050):
        pacer.reserve(ChatAddress(str(n)), "edit")
        clock.now += 1
    pacer.flooded(ANN, 100_000)
    assert len(pacer._chats) < 10_010
    with pytest.raises(DeliveryRetryError):
        pacer.reserve(ANN, "send")
