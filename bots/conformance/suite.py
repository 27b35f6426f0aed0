"""What holds for every channel. Each test has its own rig; derive, give a `rig`, and leave the rest as it is."""

import asyncio
import contextlib
from collections.abc import Sequence

import aiohttp
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.config import Settings
from app.domain.consent import UNSTATED, DataUse, Purpose
from app.domain.event import MessageEvent
from app.domain.messages import LANGUAGES
from app.domain.outgoing import Button, Content
from app.errors import (
    ChannelAwayError,
    DeliveryError,
    DeliveryRetryError,
    DeliveryUncertainError,
    InvalidInputError,
    RecipientGoneError,
)
from app.ports import InResponse, PartHealth, Push, SingleCallback
from bots.conformance.rig import Rig, Trouble

OK, REFUSED = range(200, 300), range(400, 500)
AT_ONCE_S = 3.0
# A test waits no longer, however long a platform does.
GIVEN_S = 10.0
TOO_LONG = 1_000_000  # more letters than any platform posts for one message
KEPT = 65_536  # of what is too long, bytes at most
# Nothing that a markup gives a meaning to.
WORDS = st.lists(st.text("abcdefghXYZ가나다라마바사0123456789👍🏽é", min_size=1, max_size=40), min_size=1, max_size=30)
some = settings(deadline=None, suppress_health_check=list(HealthCheck))
few = settings(some, max_examples=max(settings().max_examples // 5, 10))


class ChannelConformance:
    """The tests. `rig` is what a derived class gives."""

    @pytest.fixture
    def rig(self) -> Rig:
        """The channel under test and its platform."""
        raise NotImplementedError

    # ---- what it states ------------------------------------------------------------------------------------------

    def test_its_names_agree(self, rig: Rig) -> None:
        assert rig.part.channel.name == rig.package.name

    def test_what_it_states_it_can_do_fits_together(self, rig: Rig) -> None:
        can = rig.part.channel.capabilities
        assert can.max_units > 0
        assert can.live_edit_s is None or can.edits, "what is shown while it is written is edited"
        match can.reply_mode:
            case InResponse(limit_s=limit):
                assert limit > 0
            case SingleCallback(deadline_s=deadline, uses=uses):
                assert deadline > 0
                assert uses > 0
        if not isinstance(can.reply_mode, Push):
            assert not can.edits, "what cannot be written to cannot be edited"
            assert not can.typing

    def test_it_says_what_its_data_may_serve(self, rig: Rig) -> None:
        assert isinstance(rig.package.data_use, DataUse)
        assert rig.package.data_use is not UNSTATED, "look up the platform's terms, and state what they allow"
        assert rig.package.data_use.serves(Purpose.SERVICE)

    def test_people_can_be_listed_as_the_example_says(self, rig: Rig) -> None:
        rule = rig.package.identity
        if rule is not None:
            channel, _, name = rule.example.partition(":")
            assert channel == rig.package.name
            assert rule.listed.fullmatch(name)

    # ---- what comes in -------------------------------------------------------------------------------------------

    @pytest.mark.asyncio
    async def test_a_message_is_stored_and_says_who_wrote_what(self, rig: Rig) -> None:
        assert await rig.say("hello there") in OK
        (event,) = self._messages(rig)
        assert event.text == "hello there"
        assert event.sender.external_id
        assert event.chat == rig.chat()
        assert event.chat.kind == "private"
        assert event.message_id
        assert event.command is None

    @pytest.mark.asyncio
    async def test_people_are_kept_apart(self, rig: Rig) -> None:
        await rig.say("one", who="ann", number="1")
        await rig.say("two", who="ben", number="2")
        ann, ben = self._messages(rig)
        assert ann.sender.external_id != ben.sender.external_id
        assert ann.chat != ben.chat
        assert len({update.lane for update in rig.house.stored}) == 2  # noqa: PLR2004 - two people

    @pytest.mark.asyncio
    async def test_the_same_number_of_two_people_is_two_messages(self, rig: Rig) -> None:
        if rig.numbers == "bot":
            pytest.skip("this platform gives no id twice")
        await rig.say("one", who="ann", number="7")
        await rig.say("two", who="ben", number="7")
        assert [event.text for event in self._messages(rig)] == ["one", "two"], (
            "the person or chat belongs into the key"
        )

    @pytest.mark.asyncio
    async def test_what_is_too_long_is_refused_or_its_beginning_set_aside(self, rig: Rig) -> None:
        try:
            status = await rig.say("x" * TOO_LONG)
        except aiohttp.ClientError:
            status = 413  # the connection was closed before all of it was written
        assert status in (OK if rig.house.stored else REFUSED)
        for update in rig.house.stored:
            assert len(update.body) < KEPT
            with pytest.raises(InvalidInputError):
                rig.part.channel.parse(update.body)

    @pytest.mark.asyncio
    async def test_a_repeat_has_no_second_effect(self, rig: Rig) -> None:
        assert await rig.say("once", number="7") in OK
        assert await rig.say("once", number="7") in OK
        assert len(rig.house.stored) == 1
        await rig.say("once", number="8")
        assert len(rig.house.stored) == 2  # noqa: PLR2004 - the same words again are no repeat

    @pytest.mark.asyncio
    async def test_a_chat_keeps_its_order(self, rig: Rig) -> None:
        for number in range(5):
            await rig.say(f"word {number}", number=str(number))
        assert [event.text for event in self._messages(rig)] == [f"word {number}" for number in range(5)]
        assert len({update.lane for update in rig.house.stored}) == 1

    @pytest.mark.asyncio
    async def test_lanes_name_the_chat_so_that_forgetting_finds_them(self, rig: Rig) -> None:
        await rig.say("hello")
        assert f":{rig.chat().external_id}:" in f":{rig.house.stored[0].lane}:"

    @pytest.mark.asyncio
    async def test_stop_is_a_command_and_overtakes(self, rig: Rig) -> None:
        await rig.say("tell me everything", number="1")
        await rig.say("/stop", number="2")
        talk, stop = self._messages(rig)
        assert (talk.command, stop.command) == (None, "stop")
        assert rig.house.stored[0].lane != rig.house.stored[1].lane

    @pytest.mark.asyncio
    async def test_what_is_forged_is_refused_and_not_stored(self, rig: Rig) -> None:
        status = await rig.forge("hello")
        if status is None:
            pytest.skip("nothing is posted to this channel")
        assert status in REFUSED
        assert rig.house.stored == []

    @pytest.mark.asyncio
    async def test_nothing_is_acknowledged_that_is_not_stored(self, rig: Rig) -> None:
        rig.house.away = True
        assert await rig.say("hello", number="1") not in OK
        rig.house.away = False
        assert await rig.say("hello", number="1") in OK
        assert len(rig.house.stored) == 1

    @pytest.mark.asyncio
    async def test_whatever_the_bytes_are_parsing_them_only_ever_refuses(self, rig: Rig) -> None:
        await rig.say("a message of this platform")
        real = rig.house.stored[0].body
        cuts = st.tuples(st.integers(0, len(real)), st.integers(0, len(real)), st.binary(max_size=20))
        bent = cuts.map(lambda cut: real[: cut[0]] + cut[2] + real[cut[1] :])

        @some
        @given(st.one_of(st.binary(max_size=300), bent))
        def holds(body: bytes) -> None:
            with contextlib.suppress(InvalidInputError, ChannelAwayError):
                for event in rig.part.channel.parse(body):
                    assert event.chat.kind in {"private", "group", "channel"}

        holds()

    # ---- what goes out -------------------------------------------------------------------------------------------

    def test_parts_are_short_enough_and_lose_nothing(self, rig: Rig) -> None:
        channel = rig.part.channel
        most = channel.capabilities.max_units

        @few
        @given(WORDS, st.sampled_from(["", " ", "\n", "\n\n"]), st.sampled_from([0.1, 1.0, 2.5]))
        def holds(words: Sequence[str], gap: str, share: float) -> None:
            once = gap.join(words) + gap
            text = (once * (int(most * share) // len(once) + 1)).strip()
            parts = channel.split(text)
            assert all(rig.units(part) <= most for part in parts)
            assert _in_order(text, "".join(rig.read(part) for part in parts))

        holds()
        assert len(channel.split("")) == 1

    @pytest.mark.asyncio
    async def test_what_is_sent_is_shown_once(self, rig: Rig) -> None:
        self._only_written_to(rig)
        first = await rig.part.channel.send(rig.chat(), Content("first"))
        second = await rig.part.channel.send(rig.chat(), Content("second"))
        assert first
        assert first != second
        assert rig.shown() in (None, ["first", "second"])

    @pytest.mark.asyncio
    async def test_an_edit_shows_if_edits_are_claimed_and_does_no_harm_if_not(self, rig: Rig) -> None:
        self._only_written_to(rig)
        channel = rig.part.channel
        message_id = await channel.send(rig.chat(), Content("before"))
        for _ in range(2):  # already showing it is success
            await channel.edit(rig.chat(), message_id, Content("after"))
        assert rig.shown() in (None, ["after" if channel.capabilities.edits else "before"])

    @pytest.mark.asyncio
    async def test_formats_show_if_they_are_claimed(self, rig: Rig) -> None:
        self._only_written_to(rig)
        if not rig.part.channel.capabilities.formatting:
            pytest.skip("this channel shows plain text")
        await rig.part.channel.send(rig.chat(), Content("**bold** and [tea](https://example.org/)"))
        shown = rig.shown()
        if shown is not None:
            assert "bold" in shown[-1]
            assert "**" not in shown[-1]
            assert "](" not in shown[-1]

    @pytest.mark.asyncio
    async def test_buttons_show_if_they_are_claimed(self, rig: Rig) -> None:
        self._only_written_to(rig)
        await rig.part.channel.send(rig.chat(), Content("well?", ((Button("Yes", "k:x:1"), Button("No", "k:x:0")),)))
        shown = rig.shown()
        if shown is not None:
            assert "well?" in shown[-1]
            assert list(rig.labels()) == (["Yes", "No"] if rig.part.channel.capabilities.buttons else [])

    @pytest.mark.asyncio
    async def test_files_go_if_they_are_claimed(self, rig: Rig) -> None:
        self._only_written_to(rig)
        file = Content("everything", file_name="everything.txt")
        if rig.part.channel.capabilities.files:
            assert await rig.part.channel.send(rig.chat(), file)
        else:
            with pytest.raises(DeliveryError):
                await rig.part.channel.send(rig.chat(), file)

    @pytest.mark.asyncio
    @pytest.mark.parametrize(
        ("kind", "means"),
        [
            ("wait", DeliveryRetryError),
            ("refused", DeliveryError),
            ("gone", RecipientGoneError),
            ("lost", DeliveryUncertainError),
        ],
    )
    async def test_trouble_has_its_name(self, rig: Rig, kind: Trouble, means: type[DeliveryError]) -> None:
        self._only_written_to(rig)
        if not rig.trouble(kind):
            pytest.skip("the platform knows no such trouble")
        with pytest.raises(means) as raised:
            await rig.part.channel.send(rig.chat(), Content("hello"))
        if isinstance(raised.value, DeliveryRetryError):
            assert raised.value.retry_after_s > 0
        if kind == "refused":
            other = (DeliveryRetryError, DeliveryUncertainError, RecipientGoneError)
            assert not isinstance(raised.value, other), "what is refused is not tried again, and closes no chat"

    @pytest.mark.asyncio
    async def test_what_cannot_be_written_to_says_so(self, rig: Rig) -> None:
        if isinstance(rig.part.channel.capabilities.reply_mode, Push):
            pytest.skip("this channel is written to")
        with pytest.raises(DeliveryError):
            await rig.part.channel.send(rig.chat(), Content("hello"))
        await rig.part.channel.edit(rig.chat(), "1", Content("hello"))

    @pytest.mark.asyncio
    async def test_what_is_due_comes_whole_and_in_order(self, rig: Rig) -> None:
        self._only_answering(rig)
        rig.house.says += [Content("first"), Content("second")]
        await self._ask(rig, "hello", "1")
        called = isinstance(rig.part.channel.capabilities.reply_mode, SingleCallback)
        whole = ["first\n\nsecond"] if called else ["first", "second"]
        assert rig.shown() == whole
        assert len(rig.house.given_to) == 1
        await rig.say("hello again", number="2")
        assert rig.shown() == whole

    @pytest.mark.asyncio
    async def test_a_long_reply_is_shown_whole(self, rig: Rig) -> None:
        channel = rig.part.channel
        text = " ".join(f"word{number}" for number in range(int(2.5 * channel.capabilities.max_units) // 8))
        parts = [Content(part) for part in channel.split(text)]
        if isinstance(channel.capabilities.reply_mode, Push):
            for part in parts:
                await channel.send(rig.chat(), part)
        else:
            rig.house.says += parts
            for number in range(len(parts)):  # an address may take no more than one
                if rig.house.says:
                    await self._ask(rig, "and then?", str(number))
            assert rig.house.says == []
        shown = rig.shown()
        assert shown is None or _in_order(text, "".join(shown))

    @pytest.mark.asyncio
    async def test_what_was_shown_before_a_failure_is_not_shown_again(self, rig: Rig) -> None:
        channel = rig.part.channel
        mode = channel.capabilities.reply_mode
        if not isinstance(mode, SingleCallback) or mode.uses == 1:
            pytest.skip("nothing goes one by one to this channel")
        parts = channel.split("word " * channel.capabilities.max_units)[:2]
        rig.house.says += [Content(part) for part in parts]
        rig.house.fails_at = 1
        with pytest.raises(AssertionError, match="ended with an error"):
            await self._ask(rig, "hello", "1")
        rig.house.fails_at = None
        await self._ask(rig, "and then?", "2")
        assert rig.house.says == []
        shown = rig.shown()
        if shown is not None:
            assert len(shown) == len(parts), "say `await messages.shown()` after each that was taken"
            assert _in_order("".join(parts), "".join(shown))

    @pytest.mark.asyncio
    async def test_a_repeat_is_not_answered_anew(self, rig: Rig) -> None:
        self._only_answering(rig)
        rig.house.says.append(Content("first"))
        await self._ask(rig, "hello", "7")
        rig.house.says.append(Content("second"))
        assert await rig.say("hello", number="7") in OK
        if isinstance(rig.part.channel.capabilities.reply_mode, SingleCallback):
            assert all(ticket.new for ticket in rig.house.asked), (
                "the address of a repeat was used: look at `ticket.new`"
            )
        await self._ask(rig, "and then?", "8")
        assert all(ticket.new for ticket in rig.house.given_to)
        shown = rig.shown() or ["second"]
        assert shown[-1] == "second"
        assert list(shown).count("second") == 1

    @pytest.mark.asyncio
    async def test_small_signs_never_fail(self, rig: Rig) -> None:
        channel = rig.part.channel
        await channel.typing(rig.chat())
        await channel.answer_press("a press that is long over", "noted")
        link, notices = channel.private_link(), [channel.own_notice(language) for language in LANGUAGES]
        assert link == "" or link.startswith(": ")
        assert all(notice is None or notice.strip() for notice in notices)

    # ---- how it is ------------------------------------------------------------------------------------------------

    @pytest.mark.asyncio
    async def test_it_says_how_it_is_at_once(self, rig: Rig) -> None:
        health = await asyncio.wait_for(rig.part.health(), AT_ONCE_S)
        assert isinstance(health, PartHealth)
        assert health.name == rig.package.name

    @pytest.mark.asyncio
    async def test_the_doctor_speaks_of_it_where_it_is_off(self, rig: Rig) -> None:
        off = rig.package.settings.model_construct()
        for language in LANGUAGES:
            found = await rig.package.doctor(off, Settings.model_construct(), language)
            assert all(finding.what and finding.detail for finding in found)
            if not off.on:
                assert {finding.state for finding in found} == {"skip"}

    # ---------------------------------------------------------------------------------------------------------------

    @staticmethod
    def _messages(rig: Rig) -> list[MessageEvent]:
        return [event for event in rig.house.events(rig.part.channel) if isinstance(event, MessageEvent)]

    @staticmethod
    def _only_answering(rig: Rig) -> None:
        if isinstance(rig.part.channel.capabilities.reply_mode, Push):
            pytest.skip("this channel is written to")

    @staticmethod
    async def _ask(rig: Rig, words: str, number: str) -> None:
        """Let Ann write where something is due, and wait until it is given."""
        mode = rig.part.channel.capabilities.reply_mode
        assert not isinstance(mode, Push)
        rig.house.ended.clear()
        rig.house.asked.clear()
        rig.house.lost = None
        assert await rig.say(words, number=number) in OK
        await _given(rig, min(mode.limit_s if isinstance(mode, InResponse) else mode.deadline_s, GIVEN_S))

    @staticmethod
    def _only_written_to(rig: Rig) -> None:
        if not isinstance(rig.part.channel.capabilities.reply_mode, Push):
            pytest.skip("this channel shows only what it asks for")


async def _given(rig: Rig, seconds: float) -> None:
    """Wait until what was due is given; where it is not, say how far the channel came."""
    house = rig.house
    try:
        await asyncio.wait_for(house.ended.wait(), seconds)
    except TimeoutError:
        last = "is still inside its block" if house.asked else "was never entered; did its task die?"
        pytest.fail(f"nothing was given within {seconds} s: `replies.to` {last}")
    if house.lost is not None:
        raise AssertionError("the block of `replies.to` ended with an error, so nothing was given") from house.lost


def _in_order(text: str, shown: str) -> bool:
    """Whether every visible sign of `text` is among those shown, in its order."""
    signs = iter(shown)
    return all(sign in signs for sign in text if not sign.isspace())
