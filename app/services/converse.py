"""The turn: from a stored message to a stored reply. Person → consents → memory → release → prompt → model → outbox.

    begin (the turn, with what resolved the message: one commit; the model is asked beside it) → go_on: stream →
    finish (reply, parts, uses of memory, end of the update: one commit; `finishing.py`)

A crash in between leaves an open turn; the update is claimed again and the same turn goes on.
What is stored with a reply is what made it (invariant I2).
"""

import asyncio
import hashlib
import time
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from uuid import UUID

from app.config import Settings
from app.domain import prompt as prompts
from app.domain.media import Picture
from app.domain.memory import MemoryLine, in_prompt
from app.domain.messages import text as say
from app.domain.outgoing import Content
from app.domain.policy import Route
from app.domain.prompt import PastTurn
from app.domain.turn import Outcome, Provenance, Turn
from app.errors import (
    AdapterUnknownError,
    ModelError,
    ModelRequestError,
    ModelUnavailableError,
)
from app.failpoints import reach
from app.ports import Model, Sampling
from app.services.deliver import Deliverer
from app.services.finishing import Finisher
from app.services.lanes import Work
from app.services.live import LiveView, Placeholder
from app.services.looking import looked_at
from app.services.request import Base, Begun, Learning, Plan, Request
from app.services.stops import Stops
from app.services.stream import Item, Streams
from app.services.writing import Asked, Writer
from app.store import Store, Tx, memory, pictures, sessions, turns
from app.telemetry import Log

log = Log(__name__)
TEMPERATURE = 0.7


class Converse:
    """Answers messages. One instance per gateway."""

    def __init__(
        self,
        store: Store,
        model: Model,
        base: Base,
        streams: Streams,
        stops: Stops,
        settings: Settings,
        learning: Learning,
        deliverer: Deliverer,
    ) -> None:
        """Take the parts.

        Args:
            store: the database.
            model: the model server.
            base: the base that it serves.
            streams: where the reply is shown while it is written.
            stops: who asks that it stops.
            settings: limits.
            learning: routes, graduation and news of releases.
            deliverer: who sends what is due.
        """
        self._store = store
        self._writer = Writer(model, streams, settings.model_wait_s)
        self._base = base
        self._streams = streams
        self._settings = settings
        self._learning = learning
        self._deliverer = deliverer
        self._finisher = Finisher(store, learning, deliverer, settings)
        self._stops = stops

    async def begin(self, tx: Tx, request: Request, work: Work) -> Begun | None:
        """Make the turn of a message in `tx`; give it to `go_on` once that is committed. None: it was answered before.

        Asks the model meanwhile; `work` closes that where `tx` fails.
        """
        # A release that a session pins is found by the session's row; any other row can wait until the model was asked.
        pinning = request.session.fresh and request.session.release_id is not None
        if pinning:
            await sessions.add(tx, request.session)
        route = await self._route(tx, request)
        # Only a try that was cut off can have left a turn.
        known = await turns.of_update(tx, work.claimed.id) if work.claimed.attempts > 1 else None
        if known and known.state not in turns.OPEN:
            await work.done(tx)
            return None
        plan = await self._plan(tx, request, known, route)
        new = _new(request, plan, work)
        asking = self._writer.ask(self._asked(request, known.id if known else new.id, plan))
        if work.claimed.attempts == 1:
            # A turn that could not be stored, as on a full disk, shall not ask at every try for what nobody reads.
            await work.beside.enter_async_context(aclosing(asking.pieces))
            await asking.pieces.start()
            reach("converse:asked")
        if request.session.fresh and not pinning:
            await sessions.add(tx, request.session)
        if known:
            await turns.begin_again(tx, known, plan.made_by)
        turn = known or await turns.begin(tx, new, plan.made_by)
        if not known:
            await pictures.add(tx, turn, request.pictures)
        unwanted = known is not None and bool(await turns.stop_requested(tx, [known.id]))
        return Begun(request, turn, plan, work, asking, unwanted)

    async def go_on(self, begun: Begun) -> None:
        """Answer a turn that was begun, to its end; the update ends in the same commit as the reply."""
        request, turn, plan, work = begun.request, begun.turn, begun.plan, begun.work
        thinking = Content(say(request.language, "thinking"))
        self._streams.publish(request.chat.id, Item(turn.id))
        view = LiveView(
            request.channel, request.chat.address, Placeholder(self._store, self._deliverer, turn, thinking)
        )
        try:
            with work.waiting(), self._stops.of(turn.id) as stop:
                if begun.unwanted:
                    stop.set()
                outcome, plan = await self._generate(begun, view, stop)
        finally:
            await view.finish()
        await self._finisher.finish(request, turn, plan, outcome, work)
        self._streams.publish(request.chat.id, Item())

    async def stop(self, tx: Tx, chat_id: UUID) -> bool:
        """Stop the reply that is being written in a chat, wherever it is written; False when there is none."""
        turn_id = await turns.request_stop(tx, chat_id)
        if turn_id:
            self._stops.ask(turn_id)
        return turn_id is not None

    async def drop(self, tx: Tx, chat_id: UUID) -> bool:
        """Stop the reply that is being written in a chat, and send nothing of it; False when there is none."""
        turn_id = await turns.request_stop(tx, chat_id)
        if turn_id:
            self._stops.ask(turn_id)
            await turns.finish(tx, turn_id, Outcome("stopped", ""))
        return turn_id is not None

    async def _route(self, tx: Tx, request: Request) -> Route | None:
        if not request.chat.private or request.person_id is None:
            return None
        return await self._learning.route(tx, request.session)

    async def _plan(self, tx: Tx, request: Request, begun: Turn | None, route: Route | None) -> Plan:
        """Decide what the model is asked for a turn that is about to begin, or for one that was `begun` before."""
        known: Sequence[MemoryLine] = ()
        if request.remembers and request.person_id:
            known = await memory.lines(tx, request.person_id, "active", "graduated")
        lines = in_prompt(known, route.checkpoint_id if route else None)
        past = await self._history(tx, request, begun)
        budget = self._base.context - self._settings.max_reply_tokens
        shown: tuple[Picture, ...] = ()
        if self._base.sees:
            shown = await _shown(tx, request, begun)
            past = past if shown else await looked_at(tx, past)
        messages = prompts.build(
            request.identity.prompt, lines, past, request.text, budget_tokens=budget, pictures=shown
        )
        # With a picture in view the words alone would not lead to the reply; what was not allowed then is not by what is now.
        origin = replace(request.origin, media=request.origin.media or prompts.has_pictures(messages))
        origin = origin.again(begun.origin) if begun else origin
        learnable = self._base.learnable and request.chat.private and origin.may_train
        # Of a reply that will never train nothing is kept that only training needs, and the server is spared it.
        sampling = Sampling(TEMPERATURE, max_tokens=self._settings.max_reply_tokens, logprobs=learnable)
        made_by = Provenance(
            base=self._base.identity,
            prompt_version=prompts.PROMPT_VERSION,
            memory_used=tuple(line.id for line in lines),
            sampling=sampling.document(),
            identity_id=request.identity.id,
            checkpoint_id=route.checkpoint_id if route else None,
            release_id=route.release_id if route else None,
        )
        return Plan(route, lines, messages, origin, sampling, made_by)

    async def _history(self, tx: Tx, request: Request, begun: Turn | None) -> Sequence[PastTurn]:
        if begun:
            # It stays in its own session, though a later try may be made in another.
            return await turns.history(tx, begun.session_id, request.sibling_of or begun.id)
        return request.past

    async def _generate(self, begun: Begun, view: LiveView, stop: asyncio.Event) -> tuple[Outcome, Plan]:
        request, turn, plan = begun.request, begun.turn, begun.plan
        pieces = begun.asking.pieces
        try:
            return await self._writer.write(begun.asking, view, stop), plan
        except AdapterUnknownError:
            # The server lost the adapter (a restart): this turn falls back to the base with the whole memory.
            log.warning("turn:adapter:missing", turn=turn.id, checkpoint=plan.made_by.checkpoint_id)
            try:
                async with self._store.begin() as tx:
                    plan = await self._plan(tx, request, turn, None)
                    await turns.begin_again(tx, turn, plan.made_by)
                asking = self._writer.ask(self._asked(request, turn.id, plan))
                return await self._writer.write(asking, view, stop), plan
            except ModelError as error:
                return _failed(error, pieces.since), plan
        except ModelError as error:
            log.warning("turn:model:failed", turn=turn.id, kind=type(error).__name__)
            return _failed(error, pieces.since), plan

    def _asked(self, request: Request, turn_id: UUID, plan: Plan) -> Asked:
        return Asked(
            turn_id=turn_id,
            chat_id=request.chat.id,
            language=request.language,
            model=plan.route.adapter if plan.route else self._base.name,
            messages=plan.messages,
            sampling=plan.sampling,
            salt=self._salt(request, plan),
        )

    def _salt(self, request: Request, plan: Plan) -> str:
        """Return the cache salt: prefix caches are never shared between people or policies."""
        whose = request.person_id if request.chat.private else request.chat.id
        policy = plan.made_by.checkpoint_id or self._base.name
        return hashlib.sha256(f"{whose}:{policy}".encode()).hexdigest()


async def _shown(tx: Tx, request: Request, begun: Turn | None) -> tuple[Picture, ...]:
    """Return what came with a message: at hand where it has just come, else kept with the turn that it first began."""
    first = request.sibling_of or (begun.id if begun else None)
    media = request.origin.media or bool(begun and begun.origin.media)
    if request.pictures or first is None or not media:
        return request.pictures
    return await pictures.of_turn(tx, first)


def _new(request: Request, plan: Plan, work: Work) -> turns.NewTurn:
    return turns.NewTurn(
        inbox_id=work.claimed.id,
        session_id=request.session.id,
        chat_id=request.chat.id,
        person_id=request.person_id,
        user_text=request.text,
        message_id=request.message_id,
        origin=plan.origin,
        sibling_of=request.sibling_of,
    )


def _failed(error: ModelError, started: float) -> Outcome:
    kinds = {ModelUnavailableError: "unavailable", ModelRequestError: "refused"}
    failure = next((name for kind, name in kinds.items() if isinstance(error, kind)), "bad_answer")
    return Outcome("failed", failure=failure, duration_ms=(time.monotonic() - started) * 1000)
