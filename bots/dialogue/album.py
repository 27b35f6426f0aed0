"""What was sent together is one message: pictures of an album come as updates of their own, its words with any of them.

The first waits a moment for the rest, then takes along what came into its lane; what comes even later is a message of its
own.
"""

from collections.abc import Sequence
from dataclasses import replace

from app.domain.event import EditEvent, MessageEvent
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
        for other in _messages(channel, body, (MessageEvent,))
        if _belongs(other, event)
    ]
    every = [event, *(other for _, other in found)]
    return (_joined(every), tuple(number for number, _ in found)) if found else (event, ())


async def as_edited(tx: Tx, channel: Channel, event: MessageEvent, work: Work) -> MessageEvent:
    """Return an edited message with what it was sent with, each as it reads by now; it bears the first one's id."""
    if event.album is None:
        return event
    known, sent = {event.message_id: event}, [event.message_id]
    for earlier in await inbox.ahead(tx, work.claimed, MOST_TOGETHER):
        for other in _messages(channel, earlier.body, (MessageEvent, EditEvent)):
            if _belongs(other, event):
                known.setdefault(other.message_id, other)
                sent.insert(0, other.message_id)
    # Each stands where it was first sent; edits came later.
    return _joined([known[name] for name in dict.fromkeys(sent)])


def _belongs(other: MessageEvent, event: MessageEvent) -> bool:
    return other.album == event.album and other.sender.external_id == event.sender.external_id


def _joined(every: Sequence[MessageEvent]) -> MessageEvent:
    first = every[0]
    return replace(
        first,
        text="\n".join(one.text for one in every if one.text.strip()),
        addressed=any(one.addressed for one in every),
        attachments=tuple(attachment for one in every for attachment in one.attachments),
        # What cannot be fetched is named rather than what can.
        media=next((one.media for one in every if one.media and not one.attachments), first.media),
    )


async def end(tx: Tx, work: Work, together: Sequence[int]) -> None:
    """End the updates that came with a message in the transaction that handles it."""
    if together:
        await inbox.finish_with(tx, work.claimed, together)


def _messages(channel: Channel, body: bytes, kinds: tuple[type, ...]) -> Sequence[MessageEvent]:
    """Return the messages in an update of one of these kinds, as it has them."""
    try:
        found = [event for event in channel.parse(body) if isinstance(event, kinds)]
    except InvalidInputError:
        return []  # its own turn comes, and quarantines it
    said = [event.as_sent if isinstance(event, EditEvent) else event for event in found]
    return [event for event in said if isinstance(event, MessageEvent)]
