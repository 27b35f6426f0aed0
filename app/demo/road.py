"""The demonstration from start to end: one method a stage, in the order of `report.STAGES`.

    start ─► base rate ─► consent · talk · correct · graduate ─► train ─► gate ─► release ─► served
          ─► four cells ─► bad adapters ─► go back ─► forget ─► traces

Everything a person does goes over their channel; everything that is learnt is the product's own workers' doing.
"""

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

from app.demo import bad, traces
from app.demo.cells import Cells, Served, first_unmet
from app.demo.generate import Plot, Wish, normal, overlaps
from app.demo.installation import DemoError, Installation
from app.demo.person import Person, Story, allow
from app.demo.report import Report, Stage, identical
from app.demo.show import Show
from app.demo.talk import Heard, Talker, after, ask, newest, wait_for
from app.demo.talk_web import WebTalker
from app.demo.waiting import Watcher
from app.domain.consent import Purpose
from app.domain.messages import text as say
from app.domain.press import Press, long_id
from app.domain.profiles import profile
from learner.gate.suite import load_suite

MOST_TRAININGS = 3
ROLLBACK_LIMIT_S = 10.0
FORGET_TIMEOUT_S = 600.0


class Road:
    """One demonstration on one installation."""

    def __init__(self, installation: Installation, plot: Plot, report: Report, show: Show) -> None:
        self._installation = installation
        self._plot = plot
        self._report = report
        self._show = show
        self._cells = Cells(installation)
        self._watch: Watcher
        self._wish: Wish
        self._system = ""
        self._person_id: UUID
        self._news: Heard

    async def run(self, learner: Talker, other: Talker) -> None:
        """Go the whole road; what is found is in the report, also when it ends early."""
        self._watch = await Watcher.open(self._installation)
        try:
            await self._base_rate()
            person = Person(learner, self._wish, self._plot)
            await self._talk(person, other)
            adapter, checkpoint_id = await self._learn(person)
            await self._served(person, other, adapter)
            await self._four_cells(other)
            await self._bad_adapters(checkpoint_id)
            await self._go_back(person)
            await self._forget(learner, adapter)
        finally:
            await self._watch.close()
            await self._cells.close()

    @asynccontextmanager
    async def _stage(self, name: str) -> AsyncIterator[Stage]:
        async with stage(self._report, self._show, name) as entered:
            yield entered

    async def _base_rate(self) -> None:
        """Take the first wish that the base does not meet by itself; one that it meets would measure nothing."""
        async with self._stage("base_rate") as now:
            bot_id = await self._watch.value("select id from bots where channel = 'web'")
            self._system = await self._cells.system(bot_id)
            wish, rates = await first_unmet(self._cells, self._system, self._plot)
            self._wish, self._report.wish = wish, wish.words
            now.n, now.figures = len(self._plot.calibration), {"rates": rates, "family": wish.family}
            self._show.line("wish", wish=wish.words, rate=rates[wish.family])

    async def _talk(self, person: Person, other: Talker) -> None:
        async with self._stage("consent") as now:
            await person.consent()
            await other.arrive()
            for purpose in (Purpose.MEMORY, Purpose.PERSONAL_TRAINING):
                await allow(other, purpose)
            now.n, now.figures = 2, {"channels": [person.talker.channel, other.channel]}
        async with self._stage("talk") as now:
            for question in self._plot.other[:2]:
                reply = await ask(other, question)
                await other.press(Press("v", str(reply.turn), "u").data(), reply)
            now.n = 2
        async with self._stage("correct") as now:
            disliked = await person.first_words()
            self._person_id = await self._watch.person_of(long_id(str(disliked.turn)))
            await person.second_words()
            now.n, now.figures = len(person.story.examples), _told(person.story)
            if "written" not in person.story.examples:
                raise DemoError("no example was written by the person")
        async with self._stage("graduate") as now:
            await person.talk_until(self._queued)
            now.n, now.figures = person.story.replies, {**_told(person.story), **await self._decision()}

    async def _queued(self) -> bool:
        return await self._watch.job(self._person_id, "train") is not None

    async def _decision(self) -> dict[str, object]:
        """Return the ladder's decision that sent the lesson to training."""
        query = """select rule, figures::text, thresholds::text from ladder_decisions
                   where person_id = $1 and rung = 'adapter' order by at desc limit 1"""
        found = await self._watch.rows(query, self._person_id)
        if not found:
            raise DemoError("a training was queued without a decision of the ladder")
        return dict(found[0])

    async def _learn(self, person: Person) -> tuple[str, UUID]:
        """Wait for training, gate and release; where a gate says no, talk on until the product tries again."""
        for attempt in range(1, MOST_TRAININGS + 1):
            await self._train(attempt)
            if await self._gate(attempt):
                return await self._release()
            if attempt < MOST_TRAININGS:
                self._show.line("again", attempt=attempt)
                first = await self._watch.job(self._person_id, "train")

                async def another(known: Mapping[str, Any] | None = first) -> bool:
                    latest = await self._watch.job(self._person_id, "train")
                    return bool(latest and known and latest["id"] != known["id"])

                await person.new_conversation()
                await person.talk_until(another)
        raise DemoError(f"the gates let none of {MOST_TRAININGS} candidates through")

    async def _train(self, attempt: int) -> None:
        async with self._stage("train") as now:
            ended = await self._watch.ended(self._person_id, "train", self._show.note)
            query = """select r.settings::text, r.metrics::text, (select count(*) from training_steps s where s.run_id = r.id)
                       as steps from training_runs r where r.person_id = $1 order by r.started_at desc limit 1"""
            found = (await self._watch.rows(query, self._person_id) or [{}])[0]
            now.n, now.figures = int(found.get("steps") or 0), {"attempt": attempt, "metrics": found.get("metrics")}
            if ended.state != "done":
                raise DemoError(f"the training ended as {ended.state}: {ended.error}")

    async def _gate(self, attempt: int) -> bool:
        """Wait for the gates; whether they let the candidate through."""
        async with self._stage("gate") as now:
            await self._watch.ended(self._person_id, "evaluate", self._show.note)
            verdict, table, failure = await self._watch.gates(self._person_id)
            self._report.gates = table
            now.n, now.figures = len(table), {"attempt": attempt, "verdict": verdict, "failure": failure}
            self._show.gates(table)
        return verdict == "passed"

    async def _release(self) -> tuple[str, UUID]:
        async with self._stage("release") as now:
            ended = await self._watch.ended(self._person_id, "release", self._show.note)
            if ended.state != "done":
                raise DemoError(f"the release ended as {ended.state}: {ended.error}")
            query = """select c.id, c.name from releases r join checkpoints c on c.id = r.checkpoint_id
                       where r.person_id = $1 and r.state = 'live'"""
            found = await self._watch.rows(query, self._person_id)
            if not found:
                raise DemoError("nothing went live")
            now.n, now.figures = 1, {"adapter": found[0]["name"]}
            return found[0]["name"], found[0]["id"]

    async def _served(self, person: Person, other: Talker, adapter: str) -> None:
        """See over the channels that the adapter answers its own person, without memory, and nobody else."""
        async with self._stage("served") as now:
            await person.new_conversation()
            before = await newest(person.talker)
            reply = await person.ask()
            made = await self._watch.turn(long_id(str(reply.turn)))
            if made["adapter"] != adapter or made["lines"]:
                raise DemoError("the first reply of a new conversation did not come from the adapter without memory")
            told = after(before, lambda m: m.button("k", "back") is not None)
            self._news = await wait_for(person.talker, told, "what was learnt")
            elsewhere = await ask(other, self._plot.other[2])
            theirs = await self._watch.turn(long_id(str(elsewhere.turn)))
            if theirs["adapter"] is not None:
                raise DemoError("another person was answered by the adapter")
            now.n, now.figures = (
                2,
                {"held": self._wish.holds(reply.text), "other_held": self._wish.holds(elsewhere.text)},
            )

    async def _four_cells(self, other: Talker) -> None:
        async with self._stage("cells") as now:
            await self._disjoint()
            plot, wish, cells = self._plot, self._wish, self._cells
            last = next(m for m in reversed(list(await other.heard())) if m.turn)
            mine, theirs = await self._as_served(self._person_id), await self._as_served_in(long_id(str(last.turn)))
            if mine.model == cells.base or mine.lines:
                raise DemoError("the product does not route the adapter without memory")
            if theirs.model != cells.base or theirs.lines:
                raise DemoError("the other person is not answered by the bare base")
            found = [await cells.cell("base", cells.plain(self._system), plot.held_out, wish.holds)]
            recalled = await cells.with_memory(self._person_id, self._system)
            found.append(await cells.cell("memory", recalled, plot.held_out, wish.holds))
            found += await cells.mixed(("other", "adapter"), (theirs, mine), plot.held_out, wish.holds)
            self._report.cells = {cell.name: cell for cell in found}
            base, elsewhere = self._report.cells["base"], self._report.cells["other"]
            now.n = len(plot.held_out)
            now.figures = {"identical": identical(base.tokens, elsewhere.tokens)}
        self._show.cells(self._report)

    async def _as_served(self, person_id: UUID) -> Served:
        turn = await self._watch.value(
            "select id from turns where person_id = $1 order by number desc limit 1", person_id
        )
        return await self._as_served_in(UUID(str(turn)))

    async def _as_served_in(self, turn_id: UUID) -> Served:
        query = """select t.person_id, t.session_id, c.bot_id from turns t join chats c on c.id = t.chat_id where t.id = $1"""
        row = (await self._watch.rows(query, turn_id))[0]
        return await self._cells.served(row["person_id"], row["session_id"], row["bot_id"])

    async def _disjoint(self) -> None:
        """Check by text that held-out prompts were never seen, trained on or measured by the product.

        Raises:
            DemoError: two sets share a prompt.
        """
        suite = load_suite(profile(self._installation.settings.model).languages)
        parts = (suite.regression, suite.safety, suite.probes, suite.drift)
        said = await self._watch.rows("select user_text, s.split from turns t join sessions s on s.id = t.session_id")
        split = {
            name: tuple(
                {normal(r["user_text"]): r["user_text"] for r in said if r["user_text"] and r["split"] == name}.values()
            )
            for name in ("train", "heldout")
        }
        shared = overlaps({"held out": self._plot.held_out, "gates": [i.prompt for p in parts for i in p], **split})
        if shared:
            raise DemoError(f"prompts are not disjoint: {shared}")

    async def _bad_adapters(self, checkpoint_id: UUID) -> None:
        async with self._stage("bad_adapters") as now:
            found = await bad.refused(self._installation, self._cells.model, self._person_id, checkpoint_id)
            for kind, gates in found.items():
                failed = [r.gate for r in gates.results if r.outcome == "failed"]
                self._report.bad[kind] = {"verdict": gates.verdict, "failed": failed}
                self._show.line("bad", kind=kind, verdict=gates.verdict, failed=", ".join(failed) or "–")
            now.n = len(found)
            if any(gates.verdict != "refused" for gates in found.values()):
                raise DemoError("a bad adapter was not refused by the gates")

    async def _go_back(self, person: Person) -> None:
        async with self._stage("go_back") as now:
            before, began = await newest(person.talker), time.monotonic()
            await person.talker.press(str(self._news.button("k", "back")), self._news)
            told = say("en", "release_undone")
            await wait_for(person.talker, after(before, lambda m: m.text == told), "that it went back")
            seconds = time.monotonic() - began
            routed = await self._as_served(self._person_id)
            reply = await person.ask()
            made = await self._watch.turn(long_id(str(reply.turn)))
            now.n, now.figures = 1, {"seconds": round(seconds, 2), "held": self._wish.holds(reply.text)}
            if routed.model != self._cells.base or made["adapter"] is not None or not made["lines"]:
                raise DemoError("after going back the base with memory should answer, and it does not")
            if seconds > ROLLBACK_LIMIT_S:
                raise DemoError(f"going back took {seconds:.1f} s")

    async def _forget(self, learner: Talker, adapter: str) -> None:
        wanted = traces.forms(self._plot.planted, await self._token_ids(self._plot.planted))
        async with self._stage("forget") as now:
            held = await self._search(wanted)
            if not held.tables:
                raise DemoError("the planted word was nowhere before forgetting, so not finding it would prove nothing")
            before = await newest(learner)
            await learner.command("forget")
            asked = after(before, lambda m: m.button("f", "all") is not None)
            question = await wait_for(learner, asked, "what to forget")
            await learner.press(str(question.button("f", "all")), question)
            await self._receipt(learner)
            now.n, now.figures = held.found, {"before": held.document()}
        async with self._stage("traces") as now:
            left = await self._search(wanted)
            listed = {served.name for served in await self._cells.model.models()}
            now.n, now.figures = left.found, left.document()
            if left.found or adapter in listed:
                raise DemoError("something is left after forgetting; see the JSON for where")

    async def _search(self, wanted: tuple[str, ...]) -> traces.Traces:
        place = self._installation
        return await traces.search(place.database_url, place.broker_url, place.home, wanted)

    async def _token_ids(self, word: str) -> tuple[int, ...]:
        """Return the ids of a word inside a sentence, by what two otherwise equal prompts do not share."""
        with_word = await self._cells.model.token_ids(self._cells.base, [{"role": "user", "content": f"a {word} b"}])
        without = await self._cells.model.token_ids(self._cells.base, [{"role": "user", "content": "a b"}])
        head = next(i for i, pair in enumerate(zip(with_word, without, strict=False)) if pair[0] != pair[1])
        return with_word[head : head + len(with_word) - len(without)]

    async def _receipt(self, learner: Talker) -> None:
        """Wait until the receipt says that weights and files are gone as well, and the person is unknown."""
        deadline = time.monotonic() + FORGET_TIMEOUT_S
        query = "select state from forget_receipts order by created_at desc limit 1"
        while await self._watch.value(query) != "done":
            if time.monotonic() > deadline:
                raise DemoError("the receipt of forgetting never said that it is done")
            await self._watch.pause()
        if await self._watch.value("select count(*) from people where id = $1", self._person_id):
            raise DemoError("the person is still there after forgetting")
        if isinstance(learner, WebTalker) and await learner.known():
            raise DemoError("the cookie of a forgotten person still works")


@asynccontextmanager
async def stage(report: Report, show: Show, name: str) -> AsyncIterator[Stage]:
    """Enter a stage of the report; it counts as done where nothing was raised. A repeated one adds its seconds up."""
    entered = report.stages.setdefault(name, Stage(name))
    entered.ok = False
    began = time.monotonic()
    show.entering(name)
    try:
        yield entered
        entered.ok = True
    finally:
        entered.seconds = round(entered.seconds + time.monotonic() - began, 1)
        show.left(entered)


def _told(story: Story) -> dict[str, object]:
    return {
        "replies": story.replies,
        "held": story.held,
        "conversations": story.conversations,
        "offered": story.offered,
        "declined": story.declined,
        "examples": list(story.examples),
    }
