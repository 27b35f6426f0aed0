"""What concerns one person alone: memory, undo, releases, forgetting, export, who they are to us."""

import hashlib
from uuid import UUID

from app import clock
from app.domain.consent import Purpose
from app.domain.ladder import Progress
from app.domain.memory import MemoryLine
from app.domain.outgoing import Button, Content
from app.domain.press import Press, short_id
from app.domain.text import literal
from app.services import learn, release
from app.services.export import link_token
from app.services.lanes import Work
from app.store import Tx, admission, feedback, memory, outbox, people, turns
from bots.dialogue.parts import Parts
from bots.dialogue.room import Room

SHOWN_LINES = 30
LABEL_CHARS = 24


async def show_memory(tx: Tx, parts: Parts, room: Room) -> None:
    """Show what is remembered, how far each line is, and a button to take each back."""
    lines = await memory.lines(tx, room.person_id, "active", "graduated")
    if not lines:
        empty = room.say("memory_empty")
        off = "" if room.allows(Purpose.MEMORY) else f"\n{room.say('memory_off')}"
        await room.tell(tx, empty + off)
        return
    training = room.allows(Purpose.PERSONAL_TRAINING)
    promised = await learn.promised(tx, room.person_id, parts.settings) if training else {}
    shown = (_described(room, line, promised.get(line.id)) for line in lines[-SHOWN_LINES:])
    texts = [room.say("memory_head"), *shown]
    if training:
        texts += ["", (await learn.progress(tx, room.person_id, parts.settings)).sentence(room.language)]
    await room.tell(tx, Content("\n".join(texts), tuple((_undo_button(room, line),) for line in lines[-SHOWN_LINES:])))


def _described(room: Room, line: MemoryLine, p: Progress | None) -> str:
    shown = room.say("memory_line", line=literal(line.text))
    if line.state == "graduated":
        return f"{shown}\n{room.say('memory_graduated')}"
    if p is None:
        return shown
    return (
        shown
        + "\n"
        + room.say(
            "memory_progress",
            uses=min(p.uses, p.uses_needed),
            uses_needed=p.uses_needed,
            sessions=min(p.sessions, p.sessions_needed),
            sessions_needed=p.sessions_needed,
            examples=min(p.examples, p.examples_needed),
            examples_needed=p.examples_needed,
        )
    )


def _undo_button(room: Room, line: MemoryLine) -> Button:
    label = line.text if len(line.text) <= LABEL_CHARS else line.text[: LABEL_CHARS - 1] + "…"
    return Button(f"{room.say('button_undo')}: {label}", Press("m", short_id(line.id), "undo").data())


async def undo(tx: Tx, parts: Parts, room: Room) -> None:
    """Take back the last thing learnt: the newest memory line, else the adapter that answers."""
    if line := await memory.newest(tx, room.person_id):
        await take_line_back(tx, room, line)
        await room.tell(tx, room.say("memory_undone", line=literal(line.text)))
    elif release_id := await parts.live_release(tx, room.person_id):
        await choose_release(tx, parts, room, release_id, "back")
    else:
        await room.tell(tx, room.say("undo_nothing"))


async def take_line_back(tx: Tx, room: Room, line: MemoryLine) -> bool:
    """Undo a line, with the feedback it came from; False when that was done before."""
    if not await put_line_away(tx, room, line):
        return False
    if line.feedback_id:
        await feedback.retract(tx, line.feedback_id)
    return True


async def put_line_away(tx: Tx, room: Room, line: MemoryLine) -> bool:
    """Undo a line alone; False when that was done before. No example for it is awaited any more."""
    await admission.hold(tx, room.person_id)  # a release of an adapter that knows it comes before, or finds it undone
    if not await memory.set_state(tx, room.person_id, line.id, "undone"):
        return False
    # An adapter that was taught this line must not go on saying it.
    await release.line_undone(tx, room.person_id, line.id)
    await people.set_awaiting(tx, room.chat.id, None)
    return True


async def choose_release(tx: Tx, parts: Parts, room: Room, release_id: UUID, choice: str) -> None:
    """Keep what was learnt, or go back to before it."""
    if choice == "keep":
        await parts.leaving.keep(tx, room.person_id, release_id)
        await room.tell(tx, room.say("release_kept"))
        return
    gone = await parts.leaving.go_back(tx, room.person_id, release_id)
    await room.tell(tx, room.say("release_undone" if gone else "undo_nothing"))


async def ask_forget(tx: Tx, parts: Parts, room: Room) -> None:
    """Show what is held and ask what to forget."""
    held = await parts.leaving.preview(tx, room.person_id)
    text = room.say("forget_ask", preview=room.say("forget_preview", **held))
    keys = ("chat", "learnt", "all", "no")
    buttons = tuple((Button(room.say(f"forget_{key}"), Press("f", "", key).data()),) for key in keys)
    await room.tell(tx, Content(text, buttons))


async def forget(parts: Parts, room: Room, scope: str, work: Work) -> None:
    """Forget, and give a receipt that works afterwards."""
    if scope == "no":
        async with parts.store.begin() as tx:
            await room.tell(tx, room.say("forget_kept"))
            await work.done(tx)
        return

    page = f"{parts.settings.address}/receipt"

    async def hand_over(tx: Tx, code: str) -> None:
        # Forgetting everything took the chat as well: the receipt goes to a chat made anew, without a person.
        chat = await people.chat_of(tx, room.bot_id, room.chat.address, None)
        await outbox.put(tx, chat.id, Content(room.say("forget_done", code=code, page=page)))

    await parts.leaving.forget(room.person_id, scope, hand_over)


async def export(tx: Tx, parts: Parts, room: Room) -> None:
    """Send everything that is held as one file or several; where the channel takes none, say who hands it over."""
    if not room.channel.capabilities.files:
        secret = parts.settings.mentee_secret
        token = link_token(secret.get_secret_value().encode() if secret else b"", room.person_id, clock.now())
        await room.tell(tx, room.say("export_link", link=f"{parts.settings.address}/export/{token}"))
        return
    count = 0
    async for name, document in parts.leaving.export(tx, room.person_id):
        count += 1
        await outbox.put(tx, room.chat.id, Content(document, file_name=name), kind="file")
    await room.tell(tx, room.say("export_done" if count == 1 else "export_done_several", count=count))


async def whoami(tx: Tx, room: Room) -> None:
    """Say by which ids a person is known here, and what answers them."""
    last = await turns.last(tx, room.chat.id)
    checkpoint = str(last.checkpoint_id) if last and last.checkpoint_id else room.say("base_answers")
    account = hashlib.sha256(room.account.external_id.encode()).hexdigest()[:12]
    await room.tell(
        tx,
        room.say(
            "whoami",
            person=f"{room.person_id} ({room.channel.name} {account})",
            chat=room.chat.id,
            checkpoint=checkpoint,
        ),
    )
