"""The conformance tests can fail: each of these channels has one fault, and the test that names it finds it."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace

import parrot
import pytest
from aiohttp import web
from parrot import ParrotChannel, ParrotPart
from test_parrot import ParrotRig

from app.domain.consent import UNSTATED
from app.errors import DeliveryError
from app.ports import InResponse, Push
from bots.base import RawUpdate
from bots.conformance import ChannelConformance

Fault = Callable[[pytest.MonkeyPatch], None]
parse, raw_update = parrot.parse, parrot.raw_update


def believes_everybody(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(parrot.hmac, "compare_digest", lambda _ours, _theirs: True)


def knows_no_repeats(patch: pytest.MonkeyPatch) -> None:
    count = iter(range(1000))

    def other(body: bytes) -> RawUpdate:
        return replace(raw_update(body), keys=(f"parrot:{next(count)}",))

    patch.setattr(parrot, "raw_update", other)


def takes_the_same_words_for_a_repeat(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(parrot, "raw_update", lambda body: replace(raw_update(body), keys=(f"parrot:{parse(body).text}",)))


def knows_no_people(patch: pytest.MonkeyPatch) -> None:
    def other(body: bytes) -> RawUpdate:
        return replace(raw_update(body), keys=(f"parrot:{parse(body).message_id}",))

    patch.setattr(parrot, "raw_update", other)


def reads_whatever_comes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(parrot, "MAX_BODY", 2**30)


def cuts_what_it_shows(patch: pytest.MonkeyPatch) -> None:
    async def answer(self: ParrotPart, request: web.Request, update: RawUpdate) -> web.StreamResponse:
        ticket = await self._replies.accept(update)
        async with self._replies.to(ticket, parse(update.body).chat, self.channel) as messages:
            response = web.json_response({"messages": [message.text[:100] for message in messages]})
            await parrot.written(request, response)
        return response

    patch.setattr(ParrotPart, "_answer", answer)


def has_one_lane(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(parrot, "raw_update", lambda body: replace(raw_update(body), lane="all"))


def has_a_lane_for_each_message(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(parrot, "raw_update", lambda body: replace(raw_update(body), lane=raw_update(body).keys[0]))


def lets_errors_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ParrotChannel, "parse", lambda _, body: [parrot.json.loads(body)["text"]] and [parse(body)])


def acknowledges_at_once(patch: pytest.MonkeyPatch) -> None:
    async def receive(self: ParrotPart, request: web.Request) -> web.Response:
        try:
            await self._replies.accept(raw_update(await request.read()))
        except parrot.StoreUnavailableError:
            return web.json_response({"messages": []})
        return web.json_response({"messages": []})

    patch.setattr(ParrotPart, "_receive", receive)


def cuts_at(most: int) -> Fault:
    def fault(patch: pytest.MonkeyPatch) -> None:
        def split(_: ParrotChannel, text: str) -> Sequence[str]:
            return [text[start : start + most] for start in range(0, max(len(text), 1), most)]

        patch.setattr(ParrotChannel, "split", split)

    return fault


def drops_the_end(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ParrotChannel, "split", lambda _, text: [text[: parrot.MAX_CHARS]])


def claims(**more: object) -> Fault:
    able = replace(ParrotChannel.capabilities, **more)
    return lambda patch: patch.setattr(ParrotChannel, "capabilities", able)


pretends_to_be_written_to = claims(reply_mode=Push())


def states_no_data_use(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ParrotRig, "package", replace(parrot.PACKAGE, data_use=UNSTATED))


def shows_only_the_first(patch: pytest.MonkeyPatch) -> None:
    async def answer(self: ParrotPart, request: web.Request, update: RawUpdate) -> web.StreamResponse:
        ticket = await self._replies.accept(update)
        async with self._replies.to(ticket, parse(update.body).chat, self.channel) as messages:
            response = web.json_response({"messages": [message.text for message in messages][:1]})
            await parrot.written(request, response)
        return response

    patch.setattr(ParrotPart, "_answer", answer)


CASES: list[tuple[Fault, str]] = [
    (believes_everybody, "test_what_is_forged_is_refused_and_not_stored"),
    (knows_no_repeats, "test_a_repeat_has_no_second_effect"),
    (takes_the_same_words_for_a_repeat, "test_a_repeat_has_no_second_effect"),
    (knows_no_people, "test_the_same_number_of_two_people_is_two_messages"),
    (reads_whatever_comes, "test_what_is_too_long_is_refused_or_its_beginning_set_aside"),
    (cuts_what_it_shows, "test_a_long_reply_is_shown_whole"),
    (has_one_lane, "test_people_are_kept_apart"),
    (has_one_lane, "test_stop_is_a_command_and_overtakes"),
    (has_one_lane, "test_lanes_name_the_chat_so_that_forgetting_finds_them"),
    (has_a_lane_for_each_message, "test_a_chat_keeps_its_order"),
    (lets_errors_out, "test_whatever_the_bytes_are_parsing_them_only_ever_refuses"),
    (acknowledges_at_once, "test_nothing_is_acknowledged_that_is_not_stored"),
    (cuts_at(parrot.MAX_CHARS + 1), "test_parts_are_short_enough_and_lose_nothing"),
    (drops_the_end, "test_parts_are_short_enough_and_lose_nothing"),
    (claims(edits=True), "test_what_it_states_it_can_do_fits_together"),
    (claims(live_edit_s=1.0), "test_what_it_states_it_can_do_fits_together"),
    (claims(reply_mode=InResponse(0)), "test_what_it_states_it_can_do_fits_together"),
    (pretends_to_be_written_to, "test_what_is_sent_is_shown_once"),
    (states_no_data_use, "test_it_says_what_its_data_may_serve"),
    (shows_only_the_first, "test_what_is_due_comes_whole_and_in_order"),
]


# What a channel lets out is found as it is; everything else is an assertion that fails.
LET_OUT = {
    lets_errors_out: (ValueError, LookupError, TypeError, BaseExceptionGroup),
    pretends_to_be_written_to: DeliveryError,
}


@pytest.mark.parametrize(("fault", "name"), CASES, ids=[f"{name}-{n}" for n, (_, name) in enumerate(CASES)])
async def test_a_fault_is_found(fault: Fault, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fault(monkeypatch)
    rig = ParrotRig()
    async with rig.house.serving(rig.part) as rig.url:
        with pytest.raises(LET_OUT.get(fault, AssertionError)):
            await passed(rig, name)


async def passed(rig: ParrotRig, name: str) -> None:
    done = getattr(ChannelConformance(), name)(rig)
    if inspect.isawaitable(done):
        await done
