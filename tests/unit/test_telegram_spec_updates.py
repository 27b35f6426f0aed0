"""Whatever the Bot API's specification allows is read: no update that it describes is refused, and none breaks the parser."""

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bots.telegram.keys import raw_update
from bots.telegram.parse import parse
from bots.telegram.people import Me
from tests.support.bot_api import specification, updates

ME = Me(7310001, "mentee_test_bot")


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.data())
def test_every_update_that_the_specification_allows_is_read(data: st.DataObject) -> None:
    body = json.dumps(data.draw(updates(specification()))).encode()
    stored = raw_update(body, ME)
    assert stored.keys
    assert stored.lane
    assert parse(body, ME)
