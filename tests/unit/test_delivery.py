"""How far a message came: whatever the order and number of the platform's words, the furthest of them holds."""

from hypothesis import given
from hypothesis import strategies as st

from app.domain.delivery import ORDER, earlier, tells

STATUSES = st.sampled_from(["queued", "sent", "delivered", "read", "accepted", "anything"])


@given(statuses=st.lists(STATUSES, max_size=12))
def test_it_only_leads_on(statuses: list[str]) -> None:
    known: str | None = None
    for status in statuses:
        if tells(status) and (known is None or known in earlier(status)):
            known = status
    told = [status for status in statuses if tells(status)]
    assert known == max(told, key=ORDER.index, default=None)
