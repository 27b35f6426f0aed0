"""The handler of one stored update: parse, resolve, lead each event to its place, end the update with its effects."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from uuid import UUID

from app.domain.event import (
    AnyEvent,
    DeliveredEvent,
    EditEvent,
    FailedDeliveryEvent,
    IgnoredEvent,
    MembershipEvent,
    MessageEvent,
    PressEvent,
    ReactionEvent,
)
from app.domain.outgoing import Content
from app.domain.press import overtakes
from app.domain.turn import Outcome
from app.errors import ChannelAwayError, NotFoundError, ReceiptAwaitedError, ReplyUnfinishedError
from app.failpoints import reach
from app.ports import Channel
from app.services.lanes import Work
from app.store import Tx, holding, inbox, outbox, people, reports, turns
from app.store.inbox import MAX_ATTEMPTS
from app.telemetry import Log
from bots.dialogue import album, attachments, choices, commands, edit, entrance, leaving, message, press, voting
from bots.dialogue.parts import Parts
from bots.dialogue.pressed import Notes
from bots.dialogue.room import Room, SenderForgottenError, enter

log = Log(__name__)
Lead = Callable[[Tx, Room], Awaitable[message.Then | None]]


class Dialogue:
    """Handles updates of every channel."""

    def __init__(self, parts: Parts, channels: Mapping[UUID, Channel]) -> None:
        """Take the services and the channels by bot."""
        self._parts = parts
        self._channels = channels
        self._notes = Notes(parts.store, parts.settings.language)

    async def handle(self, work: Work) -> None:
        """Handle one update; `work` is ended in the transaction of its last effect."""
        if not work.claimed.body:
            return  # its person was forgotten while it waited
        channel = self._channels.get(work.claimed.bot_id)
        if channel is None:
            raise ChannelAwayError  # its token was taken out, or another gateway has it: the update waits for it
        for event in channel.parse(work.claimed.body):
            await self._event(channel, event, work)

    async def _event(self, channel: Channel, event: AnyEvent, work: Work) -> None:
        if isinstance(event, IgnoredEvent):
            log.info("event:rule:ignored", reason=event.reason, inbox=work.claimed.id)
            return
        if isinstance(event, PressEvent) and overtakes(event.data):
            # Before any work: a press that is answered late shows an error to the person. One that waits for its turn was
            # answered as it came in.
            await channel.answer_press(event.press_id, await self._notes.of(work.claimed.bot_id, event))
        if isinstance(event, FailedDeliveryEvent):
            await self._undelivered(event, work)
            return
        if isinstance(event, DeliveredEvent):
            await self._delivered(event, work)
            return
        if isinstance(event, MembershipEvent):
            await self._membership(work.claimed.bot_id, event)
            return
        reason = "nobody" if event.sender.external_id is None else "overheard" if _overheard(event) else None
        if isinstance(event, ReactionEvent) and not reason:
            found = await self._in_its_topic(work.claimed.bot_id, event)
            event, reason = found or event, None if found else "no_reply_to_them"
        if reason:
            log.info("event:rule:ignored", reason=reason, inbox=work.claimed.id)
            return
        await self._handle(channel, event, work, partial(self._lead, event=event, work=work))

    async def _handle(self, channel: Channel, event: AnyEvent, work: Work, lead: Lead) -> None:
        """Resolve an event and lead it where it belongs in one transaction; then do the rest."""
        try:
            async with self._parts.store.begin() as tx:
                room = await enter(tx, self._parts, channel, work.claimed, event)
                then = await lead(tx, room)
        except SenderForgottenError:
            async with self._parts.store.begin() as tx:
                await inbox.forget_body(tx, work.claimed)
            log.info("event:sender:forgotten", inbox=work.claimed.id)
            return
        if room.first_time or not then:
            self._parts.due.set()  # else nothing is to be sent yet
        if then:
            await then()

    async def _lead(self, tx: Tx, room: Room, *, event: AnyEvent, work: Work) -> message.Then | None:
        """Do in `tx` what a message needs before its reply is read; return the rest, and everything of the others."""
        if work.claimed.attempts >= MAX_ATTEMPTS and isinstance(event, MessageEvent | EditEvent | PressEvent):
            return partial(self._give_up, room, event, work)
        if not room.admitted:
            return await self._entrance(tx, room, event, work)
        if leaving.is_silent(room, event):
            await work.done(tx, "refused", "silent")
            return None
        return await self._by_kind(tx, room, event, work)

    async def _by_kind(self, tx: Tx, room: Room, event: AnyEvent, work: Work) -> message.Then | None:
        match event:
            case MessageEvent():
                return await self._message(tx, room, event, work)
            case EditEvent():
                if event.written and await edit.is_like_new(tx, room, event, work):
                    return await self._message(tx, room, event.written, work)
                return partial(edit.on_edit, self._parts, room, event, work)
            case PressEvent():
                return partial(press.on_press, self._parts, room, event, work)
            case ReactionEvent():
                return partial(self._reaction, room, event, work)
        return None

    async def _entrance(self, tx: Tx, room: Room, event: AnyEvent, work: Work) -> message.Then | None:
        if own := await entrance.of_their_own(tx, room, event):
            return await self._by_kind(tx, replace(room, first_time=False), own, work)  # nobody is welcomed out there
        inside = await entrance.let_in(tx, room, event)
        came = event.written if isinstance(event, EditEvent) else event
        if inside and isinstance(came, MessageEvent):
            return await message.on_message(tx, self._parts, inside, entrance.without_code(came), work)
        await work.done(tx, "refused", "private")
        return None

    async def _message(self, tx: Tx, room: Room, event: MessageEvent, work: Work) -> message.Then | None:
        event, together = await album.whole(tx, room.channel, event, work)
        event = await message.as_known(tx, room, event, work)
        if attachments.wanted(self._parts, event) and not leaving.is_gone(room):
            # Before anything is fetched: who may not ask the model may not have us fetch either.
            if not await message.turned_away(tx, self._parts, room, event, work):
                return partial(self._take_in, room, event, together, work)
            await album.end(tx, work, together)
            return None
        await album.end(tx, work, together)
        return await self._words(tx, room, event, work)

    async def _take_in(self, room: Room, event: MessageEvent, together: Sequence[int], work: Work) -> None:
        """Fetch what came along, then lead the message on with that."""
        with work.waiting():
            taken = await attachments.take_in(self._parts, room, event, together)
        reach("attachments:taken")
        await self._handle(room.channel, taken.event, work, partial(self._taken, before=room, taken=taken, work=work))

    async def _taken(
        self, tx: Tx, room: Room, *, before: Room, taken: attachments.Taken, work: Work
    ) -> message.Then | None:
        room = replace(room, first_time=before.first_time)  # who was greeted before the fetch was so by this message
        await album.end(tx, work, taken.together)
        if await inbox.stopped(tx, work.claimed):
            # There was no turn yet that could be stopped, and they were told that nothing is being written.
            await work.done(tx, "refused", "stopped")
            return None
        if not leaving.is_gone(room):  # who left meanwhile reads how to come back, and nothing else
            await attachments.tell(tx, room, taken, work.claimed)
            if taken.empty:
                await work.done(tx, "refused", "unreadable")
                return None
        return await self._words(tx, room, taken.event, work)

    async def _words(self, tx: Tx, room: Room, event: MessageEvent, work: Work) -> message.Then | None:
        if work.claimed.attempts > 1 and await turns.of_update(tx, work.claimed.id):
            # A try that was cut off began to answer it: it was no word by itself, whatever it would be one for by now.
            return await message.on_message(tx, self._parts, room, event, work)
        chosen = await self._chosen(tx, room, event)
        if chosen and not leaving.is_silent(room, chosen):
            return partial(press.on_press, self._parts, room, chosen, work)
        heard = await leaving.on_words(tx, self._parts, room, event)
        if heard is None:
            await work.done(tx)
            return None
        return await message.on_message(tx, self._parts, room, heard, work)

    async def _chosen(self, tx: Tx, room: Room, event: MessageEvent) -> PressEvent | None:
        if room.channel.capabilities.buttons or not room.chat.private:
            return None
        return await choices.chosen(tx, room, event)

    async def _give_up(self, room: Room, event: AnyEvent, work: Work) -> None:
        """Say honestly, in place of the last try, that a message or a button could not be handled.

        In a group only where a reply was begun: who pressed there may have no part in it.
        """
        pressed = isinstance(event, PressEvent)
        sorry = room.say("press_failed" if pressed else "busy_failed")
        async with self._parts.store.begin() as tx:
            turn = await turns.of_update(tx, work.claimed.id)
            if turn and await turns.finish(tx, turn.id, Outcome("failed", failure="gave_up")):
                await outbox.put_part(tx, room.chat.id, turn.id, 0, Content(sorry))
            elif room.chat.private or not pressed:
                await room.tell(tx, sorry)
            await work.done(tx, "dead", "gave_up")
        self._parts.due.set()
        log.warning("event:update:given_up", inbox=work.claimed.id)

    async def _in_its_topic(self, bot_id: UUID, event: ReactionEvent) -> ReactionEvent | None:
        """Return a reaction with the topic of its message, which no update tells; None unless it is on a reply to its sender.

        Others who react become nobody's acquaintance by that.
        """
        chat, sender = event.chat, str(event.sender.external_id)
        async with self._parts.store.begin() as tx:
            topic = await turns.topic_of_reply(tx, bot_id, chat.external_id, event.message_id, sender)
        return None if topic is None else replace(event, chat=replace(chat, thread=topic))

    async def _reaction(self, room: Room, event: ReactionEvent, work: Work) -> None:
        async with self._parts.store.begin() as tx:
            turn = await turns.by_message(tx, room.chat.id, event.message_id)
            if turn and turn.state in turns.OPEN:
                raise ReplyUnfinishedError(turn.id)  # they like how it begins
            if turn:
                await voting.react(tx, room, turn, event.emoji)
            await work.done(tx)
        self._parts.due.set()

    async def _undelivered(self, event: FailedDeliveryEvent, work: Work) -> None:
        """Note what the platform could not deliver; its word may come before our own receipt is stored."""
        async with self._parts.store.begin() as tx:
            await _have_receipt(tx, event, work)
            # Told twice, it says nothing of a person who has written since.
            gone = event.gone and await reports.without_word(tx, work.claimed.bot_id, event.message_id)
            lost = holding.take_back if event.too_late else reports.undelivered
            chat_id = await lost(tx, work.claimed.bot_id, event.message_id, event.reason)
            if chat_id and gone:
                await outbox.withdraw(tx, chat_id)
                await people.set_chat_status(tx, chat_id, "gone")
            if chat_id is None and work.claimed.attempts < MAX_ATTEMPTS:
                raise NotFoundError
            await work.done(tx)
        log.warning("outbox:part:undelivered", chat=chat_id, reason=event.reason)

    async def _delivered(self, event: DeliveredEvent, work: Work) -> None:
        """Note how far a message came that was reported before our own receipt was stored."""
        async with self._parts.store.begin() as tx:
            await _have_receipt(tx, event, work)
            bot_id, address = work.claimed.bot_id, event.chat.external_id
            await reports.delivered(tx, bot_id, address, event.message_id, event.delivery)
            await work.done(tx)

    async def _membership(self, bot_id: UUID, event: MembershipEvent) -> None:
        async with self._parts.store.begin() as tx:
            if event.change == "moved" and event.new_chat_id:
                await people.move_chat(tx, bot_id, event.chat.external_id, event.new_chat_id)
                return
            status = "gone" if event.change == "gone" else "active"
            chat = await people.chat_of(tx, bot_id, event.chat, None)
            await people.set_chat_status(tx, chat.id, status)


async def _have_receipt(tx: Tx, event: DeliveredEvent | FailedDeliveryEvent, work: Work) -> None:
    """Raise `ReceiptAwaitedError` while the message that is spoken of may be one whose sending is not known to have worked."""
    if await reports.receipt_awaited(tx, work.claimed.bot_id, event.chat.external_id, event.message_id):
        raise ReceiptAwaitedError


def _overheard(event: AnyEvent) -> bool:
    """Whether it was said among people and not to the bot: nobody becomes known to it by that."""
    if event.chat.kind == "private":
        return False
    if not isinstance(event, MessageEvent):
        return isinstance(event, EditEvent)
    for_another = event.command is not None and event.command not in commands.KNOWN and not event.named
    return for_another or not event.addressed
