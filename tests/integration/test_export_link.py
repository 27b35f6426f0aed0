"""Where a channel takes no files, /export gives a link to the file; it opens for an hour and for nobody else's data."""

import json
import re
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import aiohttp
import pytest

from app import clock
from app.errors import NotFoundError
from app.services.export import LINK_S, link_token, person_of
from tests.fakes.twilio import TwilioServer
from tests.support.road import Road
from tests.support.whatsapp import PUBLIC, settled, until

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
KEY = b"k" * 40


async def fetched(road: Road, token: str) -> tuple[int, str, str]:
    async with aiohttp.ClientSession() as session, session.get(f"{road.url}/export/{token}") as answer:
        return answer.status, await answer.text(), answer.headers.get("Content-Disposition", "")


async def test_on_whatsapp_the_file_is_behind_a_link(whatsapp: Road, twilio_server: TwilioServer) -> None:
    ann, ben = twilio_server.person(), twilio_server.person()
    for person, words in ((ann, "the words of ann"), (ben, "the words of ben")):
        await person.say(words)
        await until(person, f"You said: {words}")
    await ann.say("/export")
    said = await until(ann, "/export/")
    found = re.search(rf"{re.escape(PUBLIC)}/export/(\S+)", said.body)
    assert found
    status, text, disposition = await fetched(whatsapp, found[1])
    assert (status, disposition) == (200, 'attachment; filename="mentee-export.json"')
    assert "the words of ann" in text
    assert "the words of ben" not in text
    assert json.loads(text)["exported_at"]
    assert found[1] not in text  # whoever is given the file is not given the next one
    await settled(whatsapp)
    await whatsapp.store_execute("delete from people")
    assert (await fetched(whatsapp, found[1]))[0] == 404


@pytest.mark.parametrize("token", ["x", "A" * 54, "%00", "é", "ab" * 40, "A" * 6000])
async def test_a_token_that_is_not_ours_leads_nowhere(running: Road, token: str) -> None:
    assert (await fetched(running, token))[0] == 404


async def test_who_asks_for_the_head_alone_is_sent_nothing_that_another_could_read(running: Road) -> None:
    """An answer to HEAD has no body: what came as one would be read as the next answer, by whoever shares the connection."""
    async with running.visitor() as visitor, aiohttp.ClientSession() as session:
        await visitor.ask("hello")
        (person,) = await running.rows("select id from people")
        secret = running.settings.mentee_secret
        assert secret
        token = link_token(secret.get_secret_value().encode(), person["id"], clock.now())
        async with session.head(f"{running.url}/export/{token}") as answer:
            assert answer.status == 405
        for _ in range(2):
            async with session.get(f"{running.url}/export/{token}") as answer:
                assert json.loads(await answer.text())["person"]["id"] == str(person["id"])


def test_a_token_opens_what_it_names_until_its_end() -> None:
    person = uuid4()
    token = link_token(KEY, person, NOW)
    assert person_of(KEY, token, NOW + timedelta(seconds=LINK_S - 1)) == person
    changed = ("1" if token[0] == "0" else "0") + token[1:]
    for wrong, key, moment in (
        (token, KEY, NOW + timedelta(seconds=LINK_S + 1)),
        (token, b"another key", NOW),
        (changed, KEY, NOW),
        (token[:-2], KEY, NOW),
        ("", KEY, NOW),
    ):
        with pytest.raises(NotFoundError):
            person_of(key, wrong, moment)
