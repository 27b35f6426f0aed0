"""The tests that every channel passes, for whoever writes one: derive from `ChannelConformance` and give it a `Rig`.

    class TestParrot(ChannelConformance):
        @pytest.fixture
        async def rig(self): ...

pytest, pytest-asyncio and hypothesis are needed here and nowhere else. No database is: what a gateway would do is done by
the `House`, in memory.
"""

import pytest

pytest.register_assert_rewrite("bots.conformance.suite")

from bots.conformance.house import House  # noqa: E402 - its assertions are rewritten only if it is imported after that
from bots.conformance.rig import Numbering, Rig, Trouble  # noqa: E402 - the same
from bots.conformance.suite import ChannelConformance  # noqa: E402 - the same

__all__ = ["ChannelConformance", "House", "Numbering", "Rig", "Trouble"]
