"""The end of a turn: reply, parts, what they used and the end of the update in one commit; then the question how it was.

The first part is handed to the deliverer as it is stored; what cannot go out at once waits in the outbox.
"""

from collections.abc import Sequence

from app.config import Settings
from app.domain.asking import Limits, reason
from app.domain.outgoing import Content
from app.domain.policy import Route
from app.domain.turn import Outcome, Turn
from app.failpoints import reach
from app.services import asking
from app.services.deliver import Deliverer
from app.services.lanes import LeaseLostError, Work
from app.services.replies import as_shown, failure_content, release_news, reply_parts
from app.services.request import Learning, Plan, Request
from app.store import Store, Tx, ending, memory, outbox
from app.telemetry import FIRST_TOKEN, REPLY, TURNS, Log

log = Log(__name__)


class Finisher:
    """Stores what came of turns. One instance per gateway."""

    def __init__(self, store: Store, learning: Learning, deliverer: Deliverer, settings: Settings) -> None:
        """Take the database, graduation and news of releases, who sends what is due, and limits."""
        self._store = store
        self._learning = learning
        self._deliverer = deliverer
        self._settings = settings
        self._limits = Limits(
            settings.ask_per_day, settings.ask_after_silent_replies, settings.ask_new_checkpoint_replies
        )

    async def finish(self, request: Request, turn: Turn, plan: Plan, outcome: Outcome, work: Work) -> None:
        """Store a reply, or why there is none, and end its update. Raises `LeaseLostError`: then nothing is stored."""
        with self._deliverer.slot(work.claimed.bot_id) as sender:
            whole = self._ending(request, turn, plan, outcome, work, sender)
            ended = await self._end(request, plan, outcome, whole)
            reach("converse:stored")
            if ended.due:
                self._deliverer.take(ended.due)
        if not work.finished:
            work.ended("done")
            work.last = not ended.more
        if len(whole.parts) > 1 or not ended.due:
            self._deliverer.wake()
        _measure(request.channel.name, outcome)
        log.info(
            "turn:reply:stored", turn=turn.id, state=outcome.state, failure=outcome.failure, ms=outcome.duration_ms
        )
        await self._ask(request, turn, ended)

    def _ending(
        self, request: Request, turn: Turn, plan: Plan, outcome: Outcome, work: Work, sender: str | None
    ) -> ending.Ending:
        return ending.Ending(
            turn_id=turn.id,
            chat_id=request.chat.id,
            person_id=request.person_id,
            outcome=outcome,
            parts=_parts(request, turn, outcome),
            update=work.claimed,
            held_by=None if work.finished else work.owner,
            sender=sender,
            look_back=self._look_back(request, plan, outcome),
        )

    async def _end(self, request: Request, plan: Plan, outcome: Outcome, whole: ending.Ending) -> ending.Ended:
        alone = not plan.memory and not _news(plan.route, outcome)
        async with self._store.single() if alone else self._store.begin() as tx:
            ended = await ending.end(tx, whole)
            if ended.lost:
                raise LeaseLostError
            if ended.first and not alone:
                await self._count(tx, request, plan, outcome)
                if route := _news(plan.route, outcome):
                    await self._tell_what_was_learnt(tx, request, route)
        return ended

    async def _tell_what_was_learnt(self, tx: Tx, request: Request, route: Route) -> None:
        learnt = await self._learning.announce(tx, route.release_id)
        if learnt:
            for content in as_shown(request.channel, release_news(request.language, route.release_id, learnt)):
                await outbox.put(tx, request.chat.id, content)

    async def _count(self, tx: Tx, request: Request, plan: Plan, outcome: Outcome) -> None:
        if outcome.state != "done" or request.person_id is None or not outcome.reply_text or not plan.memory:
            return  # without a line in its prompt a reply can earn nothing
        used = [line for line in plan.memory if line.state == "active"]
        await memory.used(tx, [line.id for line in used], request.session.id)
        await memory.failed(tx, [line.id for line in used if line.broken_by(outcome.reply_text)])
        await self._learning.after_reply(tx, request.person_id)

    def _look_back(self, request: Request, plan: Plan, outcome: Outcome) -> ending.LookBack | None:
        """Return what it depends on whether a reply is asked about; None for one that is not whole or says more already."""
        whole = outcome.state == "done" and request.chat.private and request.person_id is not None
        if not whole or request.greeted or _news(plan.route, outcome) or not self._limits.per_day:
            return None
        return ending.LookBack(self._limits.lately, self._settings.session_idle_minutes)

    async def _ask(self, request: Request, turn: Turn, ended: ending.Ended) -> None:
        """Ask how a reply was where that is worth it."""
        why = reason(ended.signals, self._limits) if ended.signals else None
        if why is None or request.person_id is None:
            return
        reply = asking.Reply(request.channel, request.chat, request.language, request.person_id, turn.id)
        async with self._store.begin() as tx:
            await asking.ask(tx, reply, why)
        self._deliverer.wake()


def _parts(request: Request, turn: Turn, outcome: Outcome) -> Sequence[Content]:
    if outcome.state == "failed":
        return as_shown(request.channel, failure_content(request.language, turn.id, outcome.failure))
    return reply_parts(request.channel, request.language, turn.id, outcome)


def _news(route: Route | None, outcome: Outcome) -> Route | None:
    """Return the route whose release is to be told of."""
    return route if route and outcome.state == "done" and not route.announced else None


def _measure(channel: str, outcome: Outcome) -> None:
    TURNS.labels(channel, outcome.state, outcome.failure or "").inc()
    if outcome.first_token_ms is not None:
        FIRST_TOKEN.labels(channel).observe(outcome.first_token_ms / 1000)
    if outcome.state == "done" and outcome.duration_ms is not None:
        REPLY.labels(channel).observe(outcome.duration_ms / 1000)
