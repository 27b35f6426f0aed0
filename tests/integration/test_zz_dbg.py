import sys
sys.path.insert(0,'/work/main')
import app.demo.talk as talk
talk.NOTICE_TIMEOUT_S=talk.REPLY_TIMEOUT_S=15
talk.wait_for.__defaults__=(15.0,)
from tests.integration.test_demo_person import *
import pytest
async def test_dbg(place, model):
    gateway, talker = place
    model.reply_with(obedient)
    person = Person(talker, WISH, PLOT)
    try:
        print(await talker.heard())
        await person.consent()
        print("consented")
        await person.first_words()
        print("first")
        await person.second_words()
        print(person.story)
        await person.talk_until(lambda: _trains(gateway))
        print(person.story)
    except Exception as e:
        print(repr(e))
        for h in await talker.heard(): print(h.number,h.message_id,h.turn,h.buttons,h.text[:80])
        for r in await gateway.rows("select * from inbox"): print({k:(v if k!='body' else (v or b'')[:300]) for k,v in r.items()})
        for r in await gateway.rows("select * from feedback"): print(r)
        raise
from tests.integration.conftest import *
