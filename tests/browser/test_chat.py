"""The chat page in a real browser: what a person does with it, on a desk and on a phone, in Korean and English."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Page, Route, expect
from sqlalchemy import func, select, text, update

from app.domain.outgoing import Button, Content
from app.store import Store, memory, outbox
from app.store.tables.people import chats, people
from app.store.tables.road import outbox as parts
from app.store.tables.road import turns
from tests.browser.conftest import PHONE, OpenPage, Watched
from tests.support.webchat import ANSWER, WebChat, running_web_chat

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

ATTACKS = [
    "<script>window.hit = 1</script>",
    "<img src=x onerror='window.hit = 1'>",
    "[click](javascript:window.hit=1)",
    "![x](https://evil.example/a.png)",
    "<iframe srcdoc='<script>parent.hit = 1</script>'></iframe>",
    "<svg onload=window.hit=1>",
    '"><script>window.hit=1</script>',
    "{{ 7 * 7 }} ${7 * 7}",
    "</textarea></template><script>window.hit = 1</script>",
]


@pytest.fixture
async def chat(store: Store) -> AsyncIterator[WebChat]:
    async with running_web_chat(store) as running:
        yield running


async def visit(page: Page, chat: WebChat) -> None:
    await page.goto(f"{chat.url}/chat")
    await expect(page.locator("html[data-ready=yes]")).to_be_attached()


async def arrive(page: Page, chat: WebChat, *allowed: str) -> str:
    """Go through the first visit and return the recovery code."""
    await visit(page, chat)
    for purpose in allowed:
        await page.locator(f"#welcome [data-purpose={purpose}]").check()
    await page.locator("#start").click()
    await expect(page.locator("#code-dialog")).to_be_visible()
    code = await page.locator("#code").inner_text()
    await page.locator("#code-kept").click()
    await expect(page.locator("html[data-known=yes][data-ready=yes]")).to_be_attached()
    return code


async def say(page: Page, words: str) -> None:
    await page.locator("#text").fill(words)
    await page.keyboard.press("Enter")


async def ask(page: Page, words: str) -> None:
    """Say something and wait until its answer is complete."""
    before = await page.locator(".theirs .bar").count()
    await say(page, words)
    await expect(page.locator(".theirs .bar")).to_have_count(before + 1)


async def count_turns(store: Store) -> int:
    async with store.begin() as tx:
        return int(await tx.scalar(select(func.count()).select_from(turns)) or 0)


async def test_the_first_visit_asks_with_every_switch_off(browser_page: Page, chat: WebChat) -> None:
    await visit(browser_page, chat)
    switches = browser_page.locator("#welcome [role=switch]")
    await expect(switches).to_have_count(4)
    for number in range(4):
        await expect(switches.nth(number)).not_to_be_checked()
    await arrive(browser_page, chat, "memory")
    await expect(browser_page.locator("#switches [data-purpose=memory]")).to_be_checked()
    await expect(browser_page.locator("#switches [data-purpose=personal_training]")).not_to_be_checked()
    await expect(browser_page.locator("#empty")).to_be_visible()


async def test_the_code_box_is_not_closed_by_accident(browser_page: Page, chat: WebChat) -> None:
    await visit(browser_page, chat)
    await browser_page.locator("#start").click()
    await expect(browser_page.locator("#code-dialog")).to_be_visible()
    await browser_page.keyboard.press("Escape")
    await expect(browser_page.locator("#code-dialog")).to_be_visible()


async def test_a_reply_is_seen_while_it_is_written_and_can_be_stopped(browser_page: Page, chat: WebChat) -> None:
    await arrive(browser_page, chat)
    chat.gate.clear()
    await say(browser_page, "hello")
    await expect(browser_page.locator(".live")).to_contain_text("I can help")
    await expect(browser_page.locator("#send")).to_be_hidden()
    await browser_page.locator("#stop").click()
    await expect(browser_page.locator(".message.stopped .bar")).to_be_visible()
    await expect(browser_page.locator("#send")).to_be_visible()
    assert await browser_page.locator(".message.stopped .rich").inner_text() != ANSWER.replace("*", "")


async def test_a_vote_is_set_switched_and_taken_back_from_the_keyboard(browser_page: Page, chat: WebChat) -> None:
    await arrive(browser_page, chat)
    await ask(browser_page, "hello")
    up, down = browser_page.get_by_label("Good answer", exact=True), browser_page.get_by_label("Not a good answer")
    await up.focus()
    await browser_page.keyboard.press("Enter")
    await expect(up).to_have_attribute("aria-pressed", "true")
    await browser_page.keyboard.press("Tab")
    await expect(down).to_be_focused()
    await browser_page.keyboard.press("Space")
    await expect(down).to_have_attribute("aria-pressed", "true")
    await expect(up).to_have_attribute("aria-pressed", "false")
    # The question why comes with the 👎, as ordinary buttons of the message.
    await expect(browser_page.get_by_role("button", name="Just this time")).to_be_visible()
    await browser_page.reload()
    await expect(down).to_have_attribute("aria-pressed", "true")
    await down.click()
    await expect(down).to_have_attribute("aria-pressed", "false")
    await expect(browser_page.get_by_role("button", name="Just this time")).to_be_hidden()


async def test_of_two_votes_the_later_wins_however_slow_the_first_request_is(browser_page: Page, chat: WebChat) -> None:
    await arrive(browser_page, chat)
    await ask(browser_page, "hello")
    on_the_road: list[str | None] = []

    async def hold_the_first(route: Route) -> None:
        on_the_road.append(route.request.post_data)
        if len(on_the_road) == 1:
            await asyncio.sleep(0.5)
        await route.continue_()

    await browser_page.route("**/api/updates", hold_the_first)
    await browser_page.get_by_label("Good answer", exact=True).click()
    await browser_page.get_by_label("Not a good answer").click()
    await expect(browser_page.get_by_role("button", name="Just this time")).to_be_visible()
    await browser_page.unroute("**/api/updates")
    await browser_page.reload()
    await expect(browser_page.get_by_label("Not a good answer")).to_have_attribute("aria-pressed", "true")


async def test_a_correction_becomes_a_memory_that_one_tap_takes_back(browser_page: Page, chat: WebChat) -> None:
    await arrive(browser_page, chat, "memory")
    await ask(browser_page, "hello")
    await browser_page.get_by_label("Correct this").click()
    await expect(browser_page.locator("#corrected")).to_contain_text("I can help with that")
    await say(browser_page, "Use short words")
    line = browser_page.locator("#memory li")
    await expect(line).to_contain_text("Use short words")
    await expect(line).to_contain_text("0 of 8 uses")
    await expect(browser_page.locator("#correcting")).to_be_hidden()
    await expect(browser_page.locator(".mine")).to_have_count(2)
    await line.get_by_role("button", name="Undo").click()
    await expect(line).to_have_count(0)


async def test_a_button_inside_a_message_does_what_it_says(browser_page: Page, chat: WebChat) -> None:
    await arrive(browser_page, chat, "memory")
    await ask(browser_page, "hello")
    await browser_page.get_by_label("Correct this").click()
    await say(browser_page, "Use short words")
    await expect(browser_page.locator("#memory li")).to_have_count(1)
    await browser_page.locator(".choices button", has_text="Undo").click()
    await expect(browser_page.locator("#memory li")).to_have_count(0)


async def test_the_page_says_what_the_bundled_model_cannot(open_page: OpenPage, chat: WebChat) -> None:
    page = await open_page(locale="ko-KR")
    await visit(page, chat)
    await expect(page.locator("#welcome")).to_contain_text("아주 작고 영어만")
    await arrive(page, chat)
    await ask(page, "안녕하세요")
    await ask(page, "한 번 더요")
    await expect(page.get_by_text("한국어는 거의 알아듣지 못합니다")).to_have_count(1)


async def test_what_one_writes_is_seen_wherever_one_was_reading(browser_page: Page, chat: WebChat) -> None:
    await arrive(browser_page, chat)
    await ask(browser_page, "\n".join(f"line {number}" for number in range(80)))
    await browser_page.locator("#scroll").evaluate("box => box.scrollTo(0, 0)")
    await say(browser_page, "and this")
    await expect(browser_page.get_by_text("and this", exact=True)).to_be_in_viewport()


async def test_answering_again_shows_both(browser_page: Page, chat: WebChat) -> None:
    await arrive(browser_page, chat)
    await ask(browser_page, "hello")
    await browser_page.get_by_label("Answer again").click()
    await expect(browser_page.locator(".theirs .bar")).to_have_count(2)
    await expect(browser_page.locator(".mine")).to_have_count(1)
    await expect(browser_page.locator(".theirs").last).to_contain_text("another answer")


async def test_what_was_not_kept_is_not_offered_to_be_answered_again(
    browser_page: Page, chat: WebChat, store: Store
) -> None:
    await arrive(browser_page, chat)
    await ask(browser_page, "hello")
    await expect(browser_page.get_by_label("Answer again")).to_have_count(1)
    async with store.begin() as tx:
        await tx.execute(update(turns).values(user_text=None, reply_text=None))
        await tx.execute(update(parts).values(content={}))
    await visit(browser_page, chat)
    await expect(browser_page.get_by_text("Not kept: memory was off after this conversation.")).to_have_count(2)
    await expect(browser_page.get_by_label("Answer again")).to_have_count(0)


async def test_which_checkpoint_answered_is_one_tap_away(browser_page: Page, chat: WebChat) -> None:
    await arrive(browser_page, chat)
    await ask(browser_page, "hello")
    await browser_page.locator(".author summary").click()
    await expect(browser_page.locator(".author dl")).to_contain_text("none: the base model alone")
    await expect(browser_page.locator(".author dl")).to_contain_text("smollm2-135m")


async def test_a_new_conversation_starts_empty_and_the_old_one_comes_back(browser_page: Page, chat: WebChat) -> None:
    await arrive(browser_page, chat)
    await ask(browser_page, "in the first")
    await browser_page.get_by_label("New conversation").click()
    await expect(browser_page.get_by_text("A fresh conversation")).to_be_visible()
    await expect(browser_page.get_by_text("in the first")).to_be_hidden()
    await browser_page.get_by_role("button", name="Earlier conversation").click()
    await expect(browser_page.get_by_text("in the first")).to_be_visible()
    await expect(browser_page.locator(".divider")).to_have_count(2)


async def test_the_language_changes_at_once_and_stays(browser_page: Page, chat: WebChat) -> None:
    await arrive(browser_page, chat)
    await ask(browser_page, "hello")
    async with browser_page.expect_response("**/api/language"):
        await browser_page.locator("#panel [data-language=ko]").click()
    await expect(browser_page.get_by_label("좋은 답변")).to_be_visible()
    await expect(browser_page.locator("#text")).to_have_attribute("placeholder", "메시지를 입력하세요")
    await browser_page.reload()
    await expect(browser_page.locator("html")).to_have_attribute("lang", "ko")


async def test_a_korean_browser_is_greeted_in_korean(open_page: OpenPage, chat: WebChat) -> None:
    page = await open_page(locale="ko-KR")
    await visit(page, chat)
    await expect(page.get_by_role("button", name="대화 시작")).to_be_visible()


async def test_enter_belongs_to_the_syllable_that_is_being_written(browser_page: Page, chat: WebChat) -> None:
    await arrive(browser_page, chat)
    field = browser_page.locator("#text")
    await field.fill("안녕하세")
    await field.evaluate(
        "f => f.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', isComposing: true, bubbles: true}))"
    )
    await expect(field).to_have_value("안녕하세")
    await expect(browser_page.locator(".mine")).to_have_count(0)


async def test_what_could_not_be_sent_is_sent_once(
    browser_page: Page, chat: WebChat, store: Store, watched: Watched
) -> None:
    watched.expected += ["ERR_FAILED", "Failed to load resource"]
    await arrive(browser_page, chat)
    sent: list[str | None] = []

    async def lose_the_answer(route: Route) -> None:
        sent.append(route.request.post_data)
        if len(sent) == 1:
            await route.fetch()  # it arrives, but its acknowledgement is lost
            await route.abort()
        elif len(sent) == 2:
            await route.abort()
        else:
            await route.continue_()

    await browser_page.route("**/api/updates", lose_the_answer)
    await say(browser_page, "only once")
    await expect(browser_page.locator(".theirs .bar")).to_have_count(1)
    await browser_page.unroute("**/api/updates")
    await ask(browser_page, "and again")
    await browser_page.reload()
    await expect(browser_page.locator(".mine")).to_have_count(2)
    assert len(set(sent)) == 1
    assert await count_turns(store) == 2


async def test_a_gateway_that_is_away_is_said_and_the_words_are_kept(
    browser_page: Page, chat: WebChat, watched: Watched
) -> None:
    watched.expected += ["ERR_FAILED", "Failed to load resource", "ERR_INTERNET_DISCONNECTED", "net::"]
    await arrive(browser_page, chat)
    await browser_page.context.set_offline(True)
    await say(browser_page, "kept for later")
    await expect(browser_page.locator(".state.failed")).to_contain_text("does not answer")
    await browser_page.context.set_offline(False)
    await expect(browser_page.locator(".theirs .bar")).to_have_count(1)
    await expect(browser_page.locator(".mine")).to_have_count(1)


async def test_someone_else_starts_afresh_and_the_code_brings_back(
    browser_page: Page, chat: WebChat, watched: Watched
) -> None:
    # A page whose cookie is gone may just be reading when that happens.
    watched.expected.append("401")
    code = await arrive(browser_page, chat)
    await ask(browser_page, "mine alone")
    await browser_page.get_by_role("button", name="Someone else on this machine").click()
    await browser_page.get_by_role("button", name="Yes").click()
    await expect(browser_page.locator("html[data-known=no][data-ready=yes]")).to_be_attached()
    await arrive(browser_page, chat)
    await expect(browser_page.get_by_text("mine alone")).to_be_hidden()
    await browser_page.context.clear_cookies()
    await visit(browser_page, chat)
    await browser_page.get_by_role("button", name="I have a recovery code").click()
    await browser_page.locator("#recover input").fill(code.lower().replace("-", ""))
    await browser_page.locator("#recover button.primary").click()
    await expect(browser_page.get_by_text("mine alone")).to_be_visible()


async def test_a_wrong_code_says_so(browser_page: Page, chat: WebChat, watched: Watched) -> None:
    watched.expected.append("404")
    await visit(browser_page, chat)
    await browser_page.get_by_role("button", name="I have a recovery code").click()
    await browser_page.locator("#recover input").fill("AAAA-BBBB-CCCC-DDDD")
    await browser_page.locator("#recover button.primary").click()
    await expect(browser_page.locator("#recover [role=alert]")).to_contain_text("Nobody has this code")


async def test_everything_held_can_be_saved(browser_page: Page, chat: WebChat) -> None:
    await arrive(browser_page, chat)
    await browser_page.get_by_role("button", name="Everything held about me").click()
    async with browser_page.expect_download() as download:
        await browser_page.get_by_role("link", name="Save mentee.json").click()
    assert (await download.value).suggested_filename == "mentee.json"


async def test_on_a_phone_the_panel_is_a_drawer(open_page: OpenPage, chat: WebChat) -> None:
    page = await open_page(viewport=PHONE, has_touch=True, is_mobile=True)
    await arrive(page, chat)
    await expect(page.locator("#panel")).to_be_hidden()
    await page.get_by_label("Memory and settings").first.tap()
    await expect(page.locator("#panel")).to_be_visible()
    await expect(page.locator("#panel-close")).to_be_focused()
    await page.locator("#switches [data-purpose=memory]").tap()
    await expect(page.locator("#switches [data-purpose=memory][aria-busy=false]")).to_be_checked()
    await page.keyboard.press("Escape")
    await expect(page.locator("#panel")).to_be_hidden()


@pytest.mark.parametrize("width", [320, 390, 900, 1280])
async def test_nothing_runs_over_the_edge(open_page: OpenPage, chat: WebChat, width: int) -> None:
    page = await open_page(viewport={"width": width, "height": 700})
    await arrive(page, chat)
    chat.answers["wide"] = (
        f"{'w' * 300}\n\n```\n{'c' * 300}\n```\n\n|{'t' * 80}|{'u' * 80}|\n|---|---|\n|a|b|\n\n# {'가' * 90}"
    )
    await ask(page, "wide")
    await ask(page, "x" * 400)
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert await page.evaluate(
        "document.getElementById('scroll').scrollWidth <= document.getElementById('scroll').clientWidth"
    )


async def test_hostile_text_is_only_text_wherever_it_stands(open_page: OpenPage, store: Store) -> None:
    async with running_web_chat(store, identity=ATTACKS[0]) as chat:
        page = await open_page()
        await arrive(page, chat, "memory")
        for attack in ATTACKS:
            chat.answers[attack] = attack
            await ask(page, attack)
        async with store.begin() as tx:
            person = (await tx.execute(select(people.c.id))).scalar_one()
            room = (await tx.execute(select(chats.c.id))).scalar_one()
            for attack in ATTACKS:
                await memory.add(tx, person, kind="preference", text=attack, checker=None, feedback_id=None)
                await outbox.put(tx, room, Content(attack, ((Button(attack, "s:memory:1"),),)))
                await outbox.put(tx, room, Content("body", file_name=attack), kind="file")
            await tx.execute(text("update turns set base_id = :attack, failure = :attack"), {"attack": ATTACKS[1]})
        for attack in ATTACKS:
            await chat.channel.answer_press(f"{room}:1", attack)
        await expect(page.locator("#memory li")).to_have_count(len(ATTACKS))
        await expect(page.locator(".save")).to_have_count(len(ATTACKS))
        await page.get_by_label("Correct this").first.click()
        await page.reload()
        await expect(page.locator(".save")).to_have_count(len(ATTACKS))
        assert (
            await page.locator("#timeline script, #timeline img, #timeline iframe, #memory script, #memory img").count()
            == 0
        )
        assert await page.evaluate("window.hit ?? 0") == 0
        # What the person wrote is shown letter by letter.
        assert await page.locator(".mine .plain-text").all_inner_texts() == ATTACKS
