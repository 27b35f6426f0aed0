"""What was sent together is one message: pictures of an album come as updates of their own, its words with any of them.

The first waits a moment for the rest, then takes along what came into its lane; what comes even later is a message of its
own.
"""

from collections.abc import Sequence
from dataclasses import replace

from app.domain.event import MessageEvent
from app.errors import InvalidInputError, NotWholeError
from app.ports import Channel
from app.services.lanes import Work
from app.store import Tx, inbox

MOST_TOGETHER = 20


async def whole(tx: Tx, channel: Channel, event: MessageEvent, work: Work) -> MessageEvent:
    """Return the message with what belongs to it; the updates that brought it end with this one.

    Raises:
        NotWholeError: the rest is still to come.
    """
    if event.album is None:
        return event
    if work.claimed.attempts == 1:
        raise NotWholeError
    found = [
        (number, other)
        for number, body in await inbox.behind(tx, work.claimed, MOST_TOGETHER)
        for other in _messages(channel, body)
        if other.album == event.album and other.sender.external_id == event.sender.external_id
    ]
    if not found:
        return event
    await inbox.finish_with(tx, work.claimed, [number for number, _ in found])
    every = [event, *(other for _, other in found)]
    words = "\n".join(one.text for one in every if one.text.strip())
    return replace(event, text=words, addressed=any(one.addressed for one in every))


def _messages(channel: Channel, body: bytes) -> Sequence[MessageEvent]:
    try:
        return [event for event in channel.parse(body) if isinstance(event, MessageEvent)]
    except InvalidInputError:
        return []  # its own turn comes, and quarantines it
