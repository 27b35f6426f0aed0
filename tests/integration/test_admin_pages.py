"""What the panel shows and does: texts only by consent of this moment, decisions with their audit entry, hostile text."""

from collections.abc import AsyncIterator
from uuid import UUID

import pytest
from sqlalchemy import text

from app.admin.routes import ROUTES
from app.store import Store
from tests.support.panel import Admin, PanelServer, serving
from tests.support.panel_world import World, build, consent


@pytest.fixture
async def panel(store: Store) -> AsyncIterator[PanelServer]:
    async with serving(store) as server:
        yield server


@pytest.fixture
async def world(store: Store) -> World:
    return await build(store)


@pytest.fixture
async def owner(panel: PanelServer, world: World) -> AsyncIterator[Admin]:
    async with panel.browser() as admin:
        await admin.sign_in("owner", "mina")
        yield admin


async def one(store: Store, query: str, **values: object) -> dict[str, object]:
    async with store.begin() as tx:
        return dict((await tx.execute(text(query), values)).mappings().one())


async def audited(store: Store, event: str) -> dict[str, object]:
    return await one(store, "select * from audit_log where event = :event order by id desc limit 1", event=event)


def pages(world: World) -> list[str]:
    ids = {
        "/checkpoints/{id}": [world.checkpoint, world.refused],
        "/people/{id}": [world.open_person, world.closed_person],
        "/people/{id}/forget": [world.open_person],
        "/identity/{id}": [world.bot],
    }
    found = [r.path for r in ROUTES if r.method == "GET" and "{" not in r.path and r.path not in {"", "/login"}]
    found += [path.replace("{id}", str(one)) for path, some in ids.items() for one in some]
    found += [f"/feedback?state=&item={item}" for item in (*world.feedback, world.hostile, world.group_feedback)]
    return found


@pytest.mark.parametrize("language", ["en", "ko"])
async def test_every_page_in_both_languages(owner: Admin, world: World, language: str) -> None:
    await owner.post("/language", {"language": language, "next": "/admin/switches"})
    for path in pages(world):
        answer = await owner.get(path)
        assert answer.status == 200, path
        assert f'lang="{language}"' in answer.text or path == "/live", path
        assert "admin." not in answer.text, path


async def test_every_page_of_an_empty_panel(panel: PanelServer) -> None:
    async with panel.browser() as admin:
        await admin.sign_in()
        for route in ROUTES:
            if route.method == "GET" and "{" not in route.path and route.path:
                assert (await admin.get(route.path)).status == 200, route.path


async def test_closed_words_are_nowhere(owner: Admin, world: World) -> None:
    for path in pages(world):
        shown = (await owner.get(path)).text
        for words in ("my closed", "group words", "reply to the group", "group correction"):
            assert words not in shown, path


async def test_consent_counts_at_this_moment(owner: Admin, world: World, store: Store) -> None:
    address = f"/feedback?state=&item={world.correction}"
    assert "boil an egg" in (await owner.get(address)).text
    assert "short sentences" in (await owner.get(f"/people/{world.open_person}")).text
    async with store.begin() as tx:
        await consent(tx, world.open_person, ["human_review"], "withdrawn")
    assert "boil an egg" not in (await owner.get(address)).text
    assert "short sentences" not in (await owner.get(f"/people/{world.open_person}")).text
    async with store.begin() as tx:
        await consent(tx, world.closed_person, ["human_review"])
    assert "my closed correction" in (await owner.get(f"/feedback?state=&item={world.closed_feedback}")).text


async def test_a_given_and_a_withdrawn_consent_of_the_same_instant_is_none(
    owner: Admin, world: World, store: Store
) -> None:
    from app.clock import now

    moment = now()
    async with store.begin() as tx:
        await consent(tx, world.open_person, ["human_review"], "withdrawn", moment)
        await consent(tx, world.open_person, ["human_review"], "given", moment)
    assert "boil an egg" not in (await owner.get(f"/feedback?state=&item={world.correction}")).text


async def test_forwarded_words_are_not_the_person_s_to_show(owner: Admin, world: World, store: Store) -> None:
    async with store.begin() as tx:
        await tx.execute(
            text("""update turns set flags = '{"forwarded": true}' where user_text like '%boil an egg%'""")
        )
    shown = (await owner.get(f"/feedback?state=&item={world.correction}")).text
    assert "so that the yolk stays soft?" not in shown
    assert "let it simmer" in shown


async def test_a_correction_in_somebody_else_s_words_is_not_shown_and_not_approved(
    owner: Admin, world: World, store: Store
) -> None:
    assert "six minutes" in (await owner.get(f"/feedback?state=&item={world.correction}")).text
    async with store.begin() as tx:
        await tx.execute(
            text("""update feedback set flags = '{"forwarded": true}' where id = :id"""), {"id": world.correction}
        )
    shown = (await owner.get(f"/feedback?state=&item={world.correction}")).text
    assert "six minutes" not in shown
    answer = await owner.post(f"/feedback/{world.correction}", {"decision": "approve", "seen": "new"})
    assert answer.status == 403


async def test_hostile_text_is_text(owner: Admin, world: World) -> None:
    shown = (await owner.get(f"/feedback?state=&item={world.hostile}")).text
    assert "<img src=x" not in shown
    assert "<script>alert" not in shown
    assert "&lt;img src=x onerror=alert(1)&gt;" in shown
    assert "{{ 7*7 }}" in shown
    assert "\u202e" not in shown
    assert "\u200b" not in shown
    assert "U+202E" in shown


async def test_the_correction_is_a_word_diff(owner: Admin, world: World) -> None:
    shown = (await owner.get(f"/feedback?state=&item={world.correction}")).text
    assert "<ins>six minutes</ins>" in shown
    assert "<del>" in shown
    korean = (await owner.get(f"/feedback?state=&item={world.feedback[1]}")).text
    assert "<del>여섯</del><ins>아홉</ins>" in korean


WHY = {
    "approve": "Read: the person's own wish, fit to be learnt from",
    "relabel": "Read: it belongs to another class",
}


@pytest.mark.parametrize(
    ("decision", "state", "more"),
    [
        ("approve", "approved", {}),
        ("reject", "rejected", {"reason": "not their words"}),
        ("quarantine", "quarantined", {"reason": "looks planted"}),
        ("relabel", "relabelled", {"new_class": "one_off"}),
    ],
)
async def test_a_decision_is_stored_followed_up_and_audited(
    owner: Admin, world: World, store: Store, panel: PanelServer, decision: str, state: str, more: dict[str, str]
) -> None:
    await owner.get("/feedback")
    answer = await owner.post(f"/feedback/{world.correction}", {"decision": decision, "seen": "new", **more})
    assert answer.path.startswith("/admin/feedback?state=new&done=")
    row = await one(store, 'select *, "class" as kind_of from feedback where id = :id', id=world.correction)
    assert (row["review_state"], row["reviewed_by"]) == (state, "mina")
    assert row["review_reason"] == more.get("reason", WHY.get(decision))
    assert row["quarantined"] == (state == "quarantined")
    assert row["class"] == more.get("new_class", "style")
    assert panel.actions.reviewed == [(world.correction, state)]
    entry = await audited(store, f"feedback:review:{decision}")
    assert entry["reason"] == row["review_reason"]
    assert (entry["actor"], entry["subject"]) == ("mina", f"feedback:{world.correction}")
    assert entry["before_digest"] != entry["after_digest"]
    assert "egg" not in repr(entry), "digests, not texts"


async def test_the_next_item_of_the_queue_follows_and_a_decision_can_be_taken_back(
    owner: Admin, world: World, store: Store
) -> None:
    await owner.get("/feedback")
    answer = await owner.post(
        f"/feedback/{world.correction}", {"decision": "approve", "seen": "new", "kind": "rewrite", "state": "new"}
    )
    assert "Nothing here" in answer.text
    back = await owner.post(f"/feedback/{world.correction}", {"decision": "reopen", "seen": "approved"})
    assert f"item={world.correction}" in back.path
    row = await one(store, "select review_state, reviewed_by from feedback where id = :id", id=world.correction)
    assert row == {"review_state": "new", "reviewed_by": None}


async def test_two_reviewers_do_not_overwrite_each_other(owner: Admin, world: World, store: Store) -> None:
    await owner.get("/feedback")
    form = {"decision": "approve", "seen": "new"}
    await owner.post(f"/feedback/{world.correction}", form)
    late = {"decision": "reject", "seen": "new", "reason": "late"}
    assert (await owner.post(f"/feedback/{world.correction}", late)).status == 409
    row = await one(store, "select review_state from feedback where id = :id", id=world.correction)
    assert row["review_state"] == "approved"


@pytest.mark.parametrize(("language", "words"), [("en", "chose this class themself"), ("ko", "직접 고른")])
async def test_the_class_that_a_person_chose_is_not_relabelled(
    owner: Admin, world: World, store: Store, language: str, words: str
) -> None:
    async with store.begin() as tx:
        await tx.execute(text("update feedback set classified_by = 'person' where id = :id"), {"id": world.correction})
    await owner.post("/language", {"language": language, "next": "/admin/feedback"})
    await owner.get("/feedback")
    address, relabel = f"/feedback/{world.correction}", {"decision": "relabel", "seen": "new"}
    refused = await owner.post(address, relabel | {"new_class": "one_off"})
    assert refused.status == 409
    assert words in refused.text
    assert (await owner.post(address, relabel | {"new_class": "style"})).status == 200
    row = await one(store, 'select "class", classified_by from feedback where id = :id', id=world.correction)
    assert row == {"class": "style", "classified_by": "person"}


HALF_DECISIONS = [
    ({"decision": "reject"}, 400),
    ({"decision": "quarantine", "reason": "  "}, 400),
    ({"decision": "relabel", "new_class": "no_such"}, 400),
    ({"decision": "relabel"}, 400),
    ({"decision": "delete"}, 400),
    ({}, 400),
    ({"decision": "approve", "seen": "approved"}, 409),
]


async def test_half_decisions_are_refused(owner: Admin, world: World) -> None:
    await owner.get("/feedback")
    for form, status in HALF_DECISIONS:
        assert (await owner.post(f"/feedback/{world.correction}", {"seen": "new"} | form)).status == status, form


async def test_what_may_not_be_read_cannot_be_approved(owner: Admin, world: World) -> None:
    await owner.get("/feedback")
    address = f"/feedback/{world.closed_feedback}"
    assert (await owner.post(address, {"decision": "approve", "seen": "new"})).status == 403
    assert (await owner.post(address, {"decision": "quarantine", "seen": "new", "reason": "unseen"})).status == 200


FILTERS = [
    ("kind=rewrite", 1),
    ("class=personal_fact", 1),
    ("language=ko", 1),
    ("channel=telegram", 0),
    ("readable=no", 2),
    ("class=style&readable=yes", 2),
    ("state=approved", 0),
]


async def test_filters_live_in_the_address(owner: Admin) -> None:
    for query, expected in FILTERS:
        shown = (await owner.get(f"/feedback?{query}")).text
        assert shown.count('<li><a href="/admin/feedback?') == expected, query


WRONG_ADDRESSES = [
    "state=x",
    "class='",
    "page=-1",
    "page=99999999999999999999999",
    "item=1",
    "kind=vote&kind=vote",
    "sort=1",
]


async def test_addresses_are_closed(owner: Admin) -> None:
    for query in WRONG_ADDRESSES:
        assert (await owner.get(f"/feedback?{query}")).status == 400, query


async def test_the_overview_says_why_a_server_gets_no_adapters(owner: Admin) -> None:
    shown = (await owner.get("/")).text
    assert "came from another adapter&#39;s weights. (8 of 12 differ)" in shown
    assert "Release is paused." in shown
    assert "new gate thresholds under review" in shown
    assert shown.count('class="interval"') == 2
    assert "restarted 2 times" in shown


@pytest.mark.parametrize(
    ("language", "line", "reasons"),
    [
        (
            "en",
            "Asked how a reply was, 30 days: 1 of 3 answered.",
            ("long silence&nbsp;1/2", "new checkpoint&nbsp;0/1"),
        ),
        ("ko", "3번 중 1번 답변", ("오랜 침묵&nbsp;1/2", "새 체크포인트&nbsp;0/1")),
    ],
)
async def test_the_overview_shows_what_asking_yields(
    owner: Admin, store: Store, language: str, line: str, reasons: tuple[str, ...]
) -> None:
    reason = "case when n = 1 then 'new_checkpoint' else 'long_silence' end"
    asked = f"""
        insert into asks (turn_id, person_id, reason, answered_at, answer, asked_at)
        select id, person_id, {reason}, case when n = 2 then now() end, case when n = 2 then 'up' end,
               now() - make_interval(days => case when n = 4 then 31 else 0 end)
        from (select id, person_id, row_number() over (order by number) as n from turns where person_id is not null) t
        where n <= 4
    """  # noqa: S608 - a test's own words
    assert line not in (await owner.get("/")).text
    async with store.begin() as tx:
        await tx.execute(text(asked))
    await owner.post("/language", {"language": language, "next": "/admin/"})
    shown = (await owner.get("/")).text
    assert line in shown
    for one_reason in reasons:
        assert one_reason in shown


@pytest.mark.parametrize(("channel", "counts"), [("whatsapp", True), ("telegram", False)])
async def test_the_overview_shows_what_waits_for_a_person_and_what_arrived(
    owner: Admin, store: Store, channel: str, *, counts: bool
) -> None:
    before = (await owner.get("/")).text
    assert "next word" not in before
    assert "arrived" not in before
    async with store.begin() as tx:
        await tx.execute(
            text("""
                with bot as (insert into bots (channel, external_id) values (:channel, '1') returning id),
                chat as (insert into chats (bot_id, external_id) select id, '71' from bot returning id)
                insert into outbox (chat_id, state, delivery, sent_at)
                select chat.id, v.state, v.delivery, now()
                from chat, (values ('sent', 'read'), ('sent', 'delivered'), ('sent', null), ('held', null)) v(state, delivery)
            """),
            {"channel": channel},
        )
    shown = (await owner.get("/")).text
    assert 'Waiting for a person&#39;s next word</th><td class="num">1</td>' in shown
    assert ("24 h: 2 of 3 arrived" in shown) == counts


async def test_a_checkpoint_shows_its_whole_way(owner: Admin, world: World) -> None:
    shown = (await owner.get(f"/checkpoints/{world.checkpoint}")).text
    for piece in (
        "16a0eeb0",
        "12 updates",
        "96 rollouts",
        "Drift · length",
        "prompts kept apart",
        "0.139",
        "all gates passed",
        "Roll back",
        str(world.correction),
    ):
        assert piece in shown, piece
    refused = (await owner.get(f"/checkpoints/{world.refused}")).text
    assert "Drifted too far." in refused
    assert "Roll back" not in refused


async def test_rolling_back_needs_a_reason_and_is_audited(owner: Admin, world: World, store: Store) -> None:
    await owner.get(f"/checkpoints/{world.checkpoint}")
    address = f"/releases/{world.release}/rollback"
    assert (await owner.post(address, {"checkpoint": str(world.checkpoint)})).status == 400
    done = await owner.post(address, {"checkpoint": str(world.checkpoint), "reason": "answers got curt"})
    assert "rolled back" in done.text
    assert (await audited(store, "release:live:roll_back"))["reason"] == "answers got curt"


async def test_a_person_s_page_shows_consents_with_their_history(owner: Admin, world: World) -> None:
    shown = (await owner.get(f"/people/{world.open_person}")).text
    assert "withdrawn" in shown
    assert "never asked" in shown
    assert "견과류" in shown
    assert "person-4f9a12c07be1" in shown


async def test_people_are_found_by_id_and_by_channel_id(owner: Admin, world: World) -> None:
    for search in (str(world.closed_person), str(world.closed_person)[:8], "leo"):
        shown = (await owner.get(f"/people?search={search}")).text
        assert str(world.closed_person) in shown
        assert str(world.open_person) not in shown
    assert "Nobody matches" in (await owner.get("/people?search=%25")).text
    assert "Nobody matches" in (await owner.get("/people?search=le")).text


async def test_forgetting_shows_what_goes_and_needs_confirmation(
    owner: Admin, world: World, panel: PanelServer
) -> None:
    address = f"/people/{world.open_person}/forget"
    assert "Memory lines" in (await owner.get(address)).text
    assert (await owner.post(address, {"reason": "asked by mail", "confirm": "wrong"})).status == 400
    assert (await owner.post(address, {"confirm": str(world.open_person)[:8]})).status == 400
    assert panel.actions.forgotten == []
    done = await owner.post(address, {"reason": "asked by mail", "confirm": str(world.open_person)[:8]})
    assert "7KQ4-M2XW-9RTD" in done.text
    assert panel.actions.forgotten == [world.open_person]


async def test_switches_pause_and_resume_with_a_reason(owner: Admin, store: Store) -> None:
    await owner.get("/switches")
    assert (await owner.post("/switches/training", {"position": "paused"})).status == 400
    assert (await owner.post("/switches/nothing", {"position": "paused", "reason": "x"})).status == 404
    await owner.post("/switches/training", {"position": "paused", "reason": "disk is full"})
    row = await one(store, "select paused, reason, changed_by from switches where name = 'training'")
    assert row == {"paused": True, "reason": "disk is full", "changed_by": "mina"}
    await owner.post("/switches/training", {"position": "running", "reason": "disk is bigger"})
    assert (await one(store, "select paused from switches where name = 'training'")) == {"paused": False}
    paused, resumed = await audited(store, "switch:training:pause"), await audited(store, "switch:training:resume")
    assert paused["after_digest"] == resumed["before_digest"]


def identity(**more: str) -> dict[str, str]:
    return {
        "seen_version": "2",
        "name": "Mentee",
        "system_prompt": "Be kind.",
        "privacy_notice": "We keep what you say.",
        "facts": "place: Busan",
        "contact": "",
        "languages": "ko",
        "reason": "kinder",
        **more,
    }


async def test_an_edited_identity_is_a_new_version(owner: Admin, world: World, store: Store) -> None:
    address = f"/identity/{world.bot}"
    await owner.get(address)
    shown = await owner.post(address, identity())
    assert "version 3" in shown.text
    row = await one(store, "select * from bot_identities where version = 3")
    assert (row["system_prompt"], row["languages"], row["facts"]) == ("Be kind.", ["ko"], {"place": "Busan"})
    assert row["created_by"] == "mina"
    entry = await audited(store, "bot:identity:change")
    assert (entry["detail"], entry["reason"]) == ({"version": 3}, "kinder")
    assert (await owner.post(address, identity())).status == 409, "the form was made for version 2"


NEEDED = ["name", "system_prompt", "privacy_notice", "languages", "reason"]


async def test_an_identity_needs_its_parts(owner: Admin, world: World) -> None:
    address = f"/identity/{world.bot}"
    await owner.get(address)
    for missing in NEEDED:
        form = {name: value for name, value in identity().items() if name != missing}
        assert (await owner.post(address, form)).status == 400, missing


async def test_facts_are_names_and_values(owner: Admin, world: World) -> None:
    await owner.get(f"/identity/{world.bot}")
    assert (await owner.post(f"/identity/{world.bot}", identity(facts="no colon here"))).status == 400


async def test_the_audit_log_can_be_filtered_and_paged(owner: Admin, store: Store) -> None:
    async with store.begin() as tx:
        await tx.execute(
            text(
                "insert into audit_log (actor, event, subject) "
                "select 'leo', 'feedback:review:approve', 'feedback:' || n from generate_series(1, 60) n"
            )
        )
    first = (await owner.get("/audit?actor=leo")).text
    assert first.count("feedback:review:approve") == 50
    older = first.split('class="pager"')[1].split('href="')[1].split('"')[0].replace("&amp;", "&")
    assert (await owner.get(f"/audit{older}")).text.count("feedback:review:approve") == 10
    assert "Nothing matches" in (await owner.get("/audit?event=%25")).text


async def test_unknown_ids_look_like_missing_pages(owner: Admin) -> None:
    for path in ("/people/", "/checkpoints/", "/identity/"):
        for name in (UUID(int=0), "1", "%27%3B+drop+table+people+--", "..%2f", "%00"):
            assert (await owner.get(f"{path}{name}")).status == 404, (path, name)


async def test_a_database_that_is_away_is_a_sentence() -> None:
    broken = Store("postgresql://postgres@127.0.0.1:1/none")
    try:
        async with serving(broken) as away, away.browser() as admin:
            answer = await admin.get("/", headers={"Cookie": "mentee_admin=x", "Accept": "text/html"})
    finally:
        await broken.close()
    assert answer.status == 503
    assert "A part that this needs is away" in answer.text
    assert "postgres" not in answer.text.lower()
