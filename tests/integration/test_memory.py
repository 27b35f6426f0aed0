"""From feedback to memory: what a sentence can fix is kept at once, shown, used, taught by an example, and undone."""

import pytest

from tests.fakes.model import ModelServer, faults
from tests.fakes.model.replies import Call
from tests.support.road import Road, Visitor, button, replies
from tests.support.whatsapp import settled

LINE = "End every answer with 'Stay curious!'"


def obedient(call: Call) -> str:
    """A model that follows the line only when it is asked to rewrite or shown an example."""
    follows = LINE in call.system and len(call.messages) > 2
    revising = call.last_user == LINE
    return "Tea is a drink. Stay curious!" if follows or revising else "Tea is a drink."


async def dislike(visitor: Visitor, question: str = "What is tea?") -> str:
    """Ask, vote down, and return the turn."""
    turn = (await visitor.ask(question))["turn"]["id"]
    await visitor.press(f"v:{turn}:d")
    await visitor.told("What was wrong?")
    return str(turn)


@pytest.fixture
async def remembering(visitor: Visitor) -> Visitor:
    """A visitor who allows memory."""
    await visitor.allow("memory")
    return visitor


async def test_a_correction_becomes_memory_rewrite_and_example(
    running: Road, remembering: Visitor, model: ModelServer
) -> None:
    model.reply_with(obedient)
    await dislike(remembering)
    await remembering.say(LINE)
    await remembering.told(f"I'll keep this in mind from now on: “{LINE}”")
    offered = await remembering.told("Did you mean like this?")
    assert "Stay curious!" in offered["plain"]
    assert await running.rows("select 1 from examples") == []  # nothing is learnt before the person says so
    await remembering.press(button(offered, "Like this"), offered["message_id"])
    await remembering.told("This is now the example")
    (example,) = await running.rows("select prompt, bad, good, source from examples")
    assert example == {
        "prompt": "What is tea?",
        "bad": "Tea is a drink.",
        "good": "Tea is a drink. Stay curious!",
        "source": "approved",
    }
    (line,) = await running.rows("select text, kind, state, checker from memory_lines")
    assert line["checker"] == {"all": [{"kind": "ends_with", "value": "Stay curious!"}]}
    reply = await remembering.ask("And coffee?")
    assert reply["plain"].endswith("Stay curious!")
    assert [m["content"] for m in model.calls[-1].messages[1:3]] == [
        f"What is tea?\n\n{LINE}",
        "Tea is a drink. Stay curious!",
    ]
    decisions = await running.rows("select rung, rule, thresholds from ladder_decisions where feedback_id is not null")
    assert (decisions[0]["rung"], decisions[0]["rule"]) == ("memory", "one_sentence_says_it")
    assert decisions[0]["thresholds"]["min_confidence"] == 0.6


async def test_rewrites_that_break_the_line_are_never_offered(
    running: Road, remembering: Visitor, model: ModelServer
) -> None:
    model.reply_with("Tea is a drink.")
    await dislike(remembering)
    model.reply_with(lambda call: f"Tea is something else ({len(call.messages)}).")
    await remembering.say("Always answer in Korean.")  # nothing that a mended reply could do
    await remembering.told("Write the reply the way you want it")
    assert {r["state"] for r in await running.rows("select state from rewrites")} == {"unfit"}
    await remembering.say("차는 마시는 거예요.")
    await remembering.told("This is now the example")
    (example,) = await running.rows("select good, source from examples")
    assert example == {"good": "차는 마시는 거예요.", "source": "written"}


async def test_where_no_rewrite_fits_the_disliked_reply_is_mended(
    running: Road, remembering: Visitor, model: ModelServer
) -> None:
    model.reply_with("Tea is a drink.")
    await dislike(remembering)
    await remembering.say(LINE)
    offered = await remembering.offered("Did you mean like this?", "Like this")
    assert "Tea is a drink. Stay curious!" in offered["plain"]
    assert await running.rows("select 1 from examples") == []


async def test_a_declined_rewrite_leads_to_the_next_and_then_to_writing(
    running: Road, remembering: Visitor, model: ModelServer
) -> None:
    numbers = iter(range(100))
    model.reply_with("Tea is a drink.")
    await dislike(remembering)
    model.reply_with(lambda _: f"Try {next(numbers)}. Stay curious!")
    await remembering.say(LINE)
    for _ in range(4):  # three sampled, one mended
        offered = await remembering.offered("Did you mean like this?", "Not this")
        await remembering.press(button(offered, "Not this"), offered["message_id"])
        await remembering.wait(
            lambda items, seen=offered: not [i for i in items if i.get("id") == seen["id"] and i["buttons"]]
        )
    await remembering.told("Then write the reply the way you want it")
    assert {r["state"] for r in await running.rows("select state from rewrites")} == {"declined"}


async def test_a_personal_fact_is_kept_at_once_and_used(
    running: Road, remembering: Visitor, model: ModelServer
) -> None:
    turn = (await remembering.ask("A recipe, please"))["turn"]["id"]
    reply = next(i for i in replies(await remembering.messages()) if i["turn"]["id"] == turn)
    await remembering.say("I am allergic to nuts", reply_to=reply["message_id"])
    await remembering.told("I'll keep this in mind")
    await remembering.ask("Another one?")
    assert "I am allergic to nuts" in model.calls[-1].messages[0]["content"]
    (line,) = await running.rows("select kind, uses from memory_lines")
    assert line == {"kind": "fact", "uses": 1}


async def test_one_tap_undoes_a_line(running: Road, remembering: Visitor, model: ModelServer) -> None:
    turn = (await remembering.ask("A recipe, please"))["turn"]["id"]
    reply = next(i for i in replies(await remembering.messages()) if i["turn"]["id"] == turn)
    await remembering.say("I am allergic to nuts", reply_to=reply["message_id"])
    told = await remembering.told("I'll keep this in mind")
    await remembering.press(button(told, "Undo"), told["message_id"])
    await remembering.told("I don't use this any more: “I am allergic to nuts”")
    await remembering.ask("Another one?")
    assert "allergic" not in model.calls[-1].messages[0]["content"]
    assert (await running.rows("select excluded from feedback"))[0]["excluded"] is True


async def test_without_consent_nothing_is_kept_and_the_person_is_asked(running: Road, visitor: Visitor) -> None:
    turn = (await visitor.ask("A recipe, please"))["turn"]["id"]
    reply = next(i for i in replies(await visitor.messages()) if i["turn"]["id"] == turn)
    await visitor.say("I am allergic to nuts", reply_to=reply["message_id"])
    told = await visitor.told("you haven't allowed memory")
    assert await running.rows("select 1 from memory_lines") == []
    assert button(told, "Allow").startswith("a:")


async def test_who_then_allows_it_has_their_wish_kept_and_answered_for(
    running: Road, visitor: Visitor, model: ModelServer
) -> None:
    model.reply_with(obedient)
    await dislike(visitor)
    await visitor.say(LINE)
    asked = await visitor.offered("you haven't allowed memory", "Allow")
    data = button(asked, "Allow")
    await visitor.press(data, asked["message_id"])
    offered = await visitor.offered("Did you mean like this?", "Like this")
    assert (await visitor.about_me())["consents"]["memory"]["on"]
    for _ in range(2):  # a client may send a button that is gone
        await visitor.press(data, asked["message_id"])
    await visitor.press(button(offered, "Like this"), offered["message_id"])
    await visitor.told("This is now the example")
    assert await running.rows("select text, state from memory_lines") == [{"text": LINE, "state": "active"}]
    rules = [row["rule"] for row in await running.rows("select rule from ladder_decisions order by at")]
    assert rules[:2] == ["no_memory_consent", "one_sentence_says_it"]
    assert sum("Did you mean like this?" in i.get("plain", "") for i in await visitor.messages()) == 1


async def test_nobody_allows_it_by_anothers_button(running: Road, visitor: Visitor) -> None:
    await dislike(visitor)
    await visitor.say(LINE)
    asked = await visitor.offered("you haven't allowed memory", "Allow")
    async with running.visitor() as other:
        await other.press(button(asked, "Allow"))
        await other.ask("Hello?")
        assert not (await other.about_me())["consents"]["memory"]["on"]
    assert await running.rows("select 1 from memory_lines") == []


async def test_a_wrong_fact_is_thanked_for_with_the_reason_why_nothing_is_learnt(
    running: Road, visitor: Visitor
) -> None:
    await dislike(visitor)
    await visitor.say("That is wrong, Canberra is the capital")
    await visitor.told("I can't check facts myself, so nothing is learnt from this")
    assert await running.rows("select 1 from memory_lines") == []


@pytest.mark.parametrize(("reason", "sentence"), [("once", "just this time"), ("topic", "a new topic")])
async def test_a_chosen_reason_that_teaches_nothing(
    running: Road, remembering: Visitor, reason: str, sentence: str
) -> None:
    turn = await dislike(remembering)
    await remembering.press(f"r:{turn}:{reason}")
    await remembering.told(sentence)
    await remembering.ask("and now a question")
    assert await running.rows("select 1 from memory_lines") == []
    (kept,) = await running.rows("select classified_by, confidence from feedback")
    assert kept == {"classified_by": "person", "confidence": 1.0}


async def test_unclear_words_are_asked_about_and_the_choice_decides(running: Road, remembering: Visitor) -> None:
    turn = await dislike(remembering)
    await remembering.say("like a pirate would")
    asked = await remembering.told("I'm not sure what you meant")
    assert await running.rows("select 1 from memory_lines") == []
    await remembering.press(button(asked, "Style"), asked["message_id"])
    await remembering.told("I'll keep this in mind from now on: “like a pirate would”")
    assert turn


async def test_a_new_question_taken_for_a_correction_is_answered(running: Road, remembering: Visitor) -> None:
    await dislike(remembering)
    await remembering.say("How high is the tower always?")
    told = await remembering.told("I'll keep this in mind")
    await remembering.press(button(told, "new question"), told["message_id"])
    await remembering.wait(lambda items: [i for i in replies(items) if "the tower" in i["plain"]])
    (line,) = await running.rows("select state from memory_lines")
    assert line["state"] == "undone"


async def test_broken_lines_are_counted(running: Road, remembering: Visitor, model: ModelServer) -> None:
    model.reply_with("No idea.")
    await dislike(remembering)
    await remembering.say("Use at most 3 words.")
    await remembering.told("I'll keep this in mind")
    model.reply_with("This reply is far too long for that.")
    await remembering.command("new")
    await remembering.ask("one")
    await remembering.ask("two")
    (line,) = await running.rows("select uses, failures, cardinality(session_ids) sessions from memory_lines")
    assert line == {"uses": 2, "failures": 2, "sessions": 1}


async def test_a_model_that_is_away_during_rewrites_is_no_loss(
    running: Road, remembering: Visitor, model: ModelServer
) -> None:
    await dislike(remembering)
    model.always(faults.Refuse(500))
    await remembering.say(LINE)
    await remembering.told("I'll keep this in mind")
    offered = await remembering.offered("Did you mean like this?", "Like this")
    assert "You said: What is tea? Stay curious!" in offered["plain"]
    assert len(await running.rows("select 1 from memory_lines")) == 1


async def test_memory_is_listed_with_its_progress(remembering: Visitor, model: ModelServer) -> None:
    await remembering.allow("personal_training")
    model.reply_with(obedient)
    await dislike(remembering)
    await remembering.say(LINE)
    offered = await remembering.told("Did you mean like this?")
    await remembering.press(button(offered, "Like this"), offered["message_id"])
    await remembering.told("This is now the example")
    await remembering.ask("And coffee?")
    await remembering.command("memory")
    listed = await remembering.told("What I remember about you")
    assert "1 of 8 uses" in listed["plain"]
    assert "1 of 1 examples" in listed["plain"]
    (line,) = (await remembering.about_me())["memory"]
    assert line["road"] == {"uses": [1, 8], "conversations": [1, 2], "approved": [1, 1]}


async def test_a_line_that_may_not_be_learnt_is_listed_without_a_way_to_an_adapter(
    running: Road, remembering: Visitor, model: ModelServer
) -> None:
    await remembering.allow("personal_training")
    model.reply_with(obedient)
    await dislike(remembering)
    await remembering.say(LINE)
    await remembering.told("Did you mean like this?")
    await running.store_execute("update feedback set excluded = true")
    await remembering.command("memory")
    listed = await remembering.told("What I remember about you")
    assert "uses" not in listed["plain"]
    assert "nothing of it may be learnt" in listed["plain"]
    (line,) = (await remembering.about_me())["memory"]
    assert line["road"] is None


async def test_the_export_holds_what_was_said(running: Road, remembering: Visitor) -> None:
    await remembering.ask("remember the harbour")
    await remembering.command("export")
    await remembering.told("Everything I hold about you")
    item = next(i for i in await remembering.messages() if i.get("file"))
    async with remembering.session.get(running.url + item["file"]["href"]) as answer:
        document = await answer.json(content_type=None)
    assert document["turns"][0]["user_text"] == "remember the harbour"
    assert {e["purpose"] for e in document["consent_events"]} == {"service", "memory"}
    assert "recovery_hash" not in document["person"]
    sent = [part["content"]["text"] for part in document["outbox"]]
    assert "You said: remember the harbour" in sent
    assert any("remember the harbour" in update["body"] for update in document["inbox"])
    await remembering.command("export")
    await remembering.wait(lambda items: len([i for i in items if i.get("file")]) == 2)
    item = [i for i in await remembering.messages() if i.get("file")][-1]
    async with remembering.session.get(running.url + item["file"]["href"]) as answer:
        again = await answer.json(content_type=None)
    assert {part["kind"] for part in again["outbox"]} == {"reply", "notice"}  # no export holds another


async def test_withdrawn_memory_is_not_used(remembering: Visitor, model: ModelServer) -> None:
    turn = (await remembering.ask("A recipe, please"))["turn"]["id"]
    reply = next(i for i in replies(await remembering.messages()) if i["turn"]["id"] == turn)
    await remembering.say("I am allergic to nuts", reply_to=reply["message_id"])
    await remembering.told("I'll keep this in mind")
    await remembering.switch("memory", on=False)
    await remembering.ask("Another one?")
    assert "allergic" not in model.calls[-1].messages[0]["content"]


async def awaiting_example(visitor: Visitor, model: ModelServer) -> None:
    """Correct a reply so that no rewrite fits and the bot waits for one from the person."""
    await dislike(visitor)
    model.reply_with("Tea is something else.")
    await visitor.say("Always answer in Korean.")
    await visitor.told("Write the reply the way you want it")
    model.reply_with(lambda call: f"You said: {call.last_user}")


async def test_an_awaited_example_can_be_declined(running: Road, remembering: Visitor, model: ModelServer) -> None:
    await awaiting_example(remembering, model)
    asked = await remembering.offered("Write the reply the way you want it", "Never mind")
    await remembering.press(button(asked, "Never mind"), asked["message_id"])
    await remembering.told("no example then")
    assert "You said: What is coffee?" in (await remembering.ask("What is coffee?"))["plain"]
    assert await running.rows("select 1 from examples") == []
    (line,) = await running.rows("select state from memory_lines")
    assert line["state"] == "active"


async def test_an_example_that_breaks_its_line_is_asked_for_once_more_and_never_kept(
    running: Road, remembering: Visitor, model: ModelServer
) -> None:
    await awaiting_example(remembering, model)
    await remembering.say("Tea is a leaf.")
    await remembering.offered("does not follow", "Never mind")
    await remembering.say("Tea is green.")
    await remembering.told("stays without an example")
    assert await running.rows("select 1 from examples") == []
    assert "You said: What is coffee?" in (await remembering.ask("What is coffee?"))["plain"]


async def test_an_example_that_fits_at_the_second_try_is_kept(
    running: Road, remembering: Visitor, model: ModelServer
) -> None:
    await awaiting_example(remembering, model)
    await remembering.say("Tea is a leaf.")
    await remembering.told("does not follow")
    await remembering.say("차는 잎이에요.")
    await remembering.told("This is now the example")
    assert await running.rows("select good from examples") == [{"good": "차는 잎이에요."}]


@pytest.mark.parametrize("way", ["undo", "withdraw", "forget"])
async def test_no_example_is_awaited_for_a_line_that_is_gone(
    running: Road, remembering: Visitor, model: ModelServer, way: str
) -> None:
    await awaiting_example(remembering, model)
    if way == "undo":
        await remembering.command("undo")
        await remembering.told("I don't use this any more")
    elif way == "withdraw":
        await remembering.switch("memory", on=False)
    else:
        await remembering.press("f::learnt")
        await remembering.told("Your receipt")
    assert "You said: What is coffee?" in (await remembering.ask("What is coffee?"))["plain"]
    assert await running.rows("select 1 from examples") == []


async def test_a_rewrite_of_a_line_that_was_undone_teaches_nothing(
    running: Road, remembering: Visitor, model: ModelServer
) -> None:
    model.reply_with(obedient)
    await dislike(remembering)
    await remembering.say(LINE)
    offered = await remembering.told("Did you mean like this?")
    await remembering.command("undo")
    await remembering.told("I don't use this any more")
    await remembering.press(button(offered, "Like this"), offered["message_id"])
    await remembering.wait(lambda items: not [i for i in items if i.get("id") == offered["id"] and i["buttons"]])
    assert await running.rows("select 1 from examples") == []


async def test_a_correction_whose_handling_was_cut_off_is_said_once(
    running: Road, remembering: Visitor, model: ModelServer
) -> None:
    model.reply_with(obedient)
    await dislike(remembering)
    await remembering.say(LINE)
    await remembering.told("Did you mean like this?")
    # As after a kill between the memory line and its rewrites.
    await running.rows("delete from rewrites returning id")
    await running.rows(
        "update inbox set state = 'stored' where id = (select inbox.id from inbox join feedback on "
        "feedback.evidence = 'inbox:' || inbox.id) returning id"
    )
    await remembering.wait(lambda items: len([i for i in items if "Did you mean" in i.get("plain", "")]) == 2)
    shown = [i for i in await remembering.messages() if "I'll keep this in mind" in i.get("plain", "")]
    assert len(shown) == 1
    assert len(await running.rows("select 1 from turns")) == 1


async def test_a_reason_pressed_twice_counts_once_and_another_one_takes_its_place(
    running: Road, remembering: Visitor, model: ModelServer
) -> None:
    turn = await dislike(remembering)
    await remembering.say("like a pirate would")
    await remembering.told("I'm not sure what you meant")
    for _ in range(2):
        await remembering.press(f"r:{turn}:style")
    await remembering.told("I'll keep this in mind")
    await remembering.press(f"r:{turn}:once")
    await remembering.told("just this time")
    shown = [i for i in await remembering.messages() if "I'll keep this in mind" in i.get("plain", "")]
    assert len(shown) == 1
    assert [m["state"] for m in await running.rows("select state from memory_lines")] == ["undone"]
    await remembering.press(f"r:{turn}:style")
    await remembering.wait(lambda items: len([i for i in items if "keep this in mind" in i.get("plain", "")]) == 2)
    (kept,) = await running.rows("select excluded from feedback")
    assert kept["excluded"] is False


async def test_who_left_is_not_written_to_for_a_button_that_is_still_there(
    running: Road, visitor: Visitor, model: ModelServer
) -> None:
    model.reply_with(obedient)
    await dislike(visitor)
    await visitor.say(LINE)
    asked = await visitor.offered("you haven't allowed memory", "Allow")
    await visitor.press("o::out")
    left = await visitor.told("come back")
    await visitor.press(button(asked, "Allow"), asked["message_id"])
    await settled(running)
    assert (await visitor.messages())[-1]["id"] == left["id"]
    assert await running.rows("select 1 from memory_lines") == []


async def test_what_was_a_question_after_all_is_not_kept_by_a_later_button(
    running: Road, visitor: Visitor, model: ModelServer
) -> None:
    model.reply_with(obedient)
    await dislike(visitor)
    await visitor.say(LINE)
    asked = await visitor.offered("you haven't allowed memory", "Allow")
    await visitor.press(button(asked, "Allow").replace("a:", "n:"))
    await visitor.press(button(asked, "Allow"), asked["message_id"])
    await settled(running)
    assert await running.rows("select 1 from memory_lines") == []
    assert not (await visitor.about_me())["consents"]["memory"]["on"]


async def test_what_was_a_question_after_all_is_not_learnt_by_a_reason(
    running: Road, remembering: Visitor, model: ModelServer
) -> None:
    model.reply_with(obedient)
    await dislike(remembering)
    await remembering.say("like a pirate would")
    asked = await remembering.told("I'm not sure what you meant")
    await remembering.press(button(asked, "new question"), asked["message_id"])
    await remembering.press(button(asked, "Style"), asked["message_id"])
    await settled(running)
    assert await running.rows("select 1 from memory_lines") == []
