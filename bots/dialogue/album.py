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


async def whole(tx: Tx, channel: Channel, event: MessageEvent, work: Work) -> tuple[MessageEvent, tuple[int, ...]]:
    """Return the message with what belongs to it, and the updates that brought that: to `end` together with this one.

    Raises:
        NotWholeError: the rest is still to come.
    """
    if event.album is None:
        return event, ()
    if work.claimed.attempts == 1:
        raise NotWholeError
    found = [
        (number, other)
        for number, body in await inbox.behind(tx, work.claimed, MOST_TOGETHER)
        for other in _messages(channel, body)
        if other.album == event.album and other.sender.external_id == event.sender.external_id
    ]
    every = [event, *(other for _, other in found)]
    together = replace(
        event,
        text="\n".join(one.text for one in every if one.text.strip()),
        addressed=any(one.addressed for one in every),
        attachments=tuple(attachment for one in every for attachment in one.attachments),
        # What cannot be fetched is named rather than what can.
        media=next((one.media for one in every if one.media and not one.attachments), event.media),
    )
    return (together, tuple(number for number, _ in found)) if found else (event, ())


async def end(tx: Tx, work: Work, together: Sequence[int]) -> None:
    """End the updates that came with a message in the transaction that handles it."""
    if together:
        await inbox.finish_with(tx, work.claimed, together)


def _messages(channel: Channel, body: bytes) -> Sequence[MessageEvent]:
    try:
        return [event for event in channel.parse(body) if isinstance(event, MessageEvent)]
    except InvalidInputError:
        return []  # its own turn comes, and quarantines it
