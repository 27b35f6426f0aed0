"""The panel in a real browser: keys, hostile text that must not run, every page on a phone, in the dark, in Korean."""

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Page, expect
from sqlalchemy import text

from app.admin.auth import create_admin_link
from app.store import Store, admins
from tests.browser.conftest import DESKTOP, PHONE, OpenPage, Watched
from tests.support.panel import PASSWORD, PanelServer, serving
from tests.support.panel_world import World, build

pytestmark = [pytest.mark.browser]
NAMES = ("", "feedback", "checkpoints", "people", "switches", "identity", "audit")


@pytest.fixture
async def world(store: Store) -> World:
    return await build(store)


@pytest.fixture
async def panel(store: Store, world: World) -> AsyncIterator[PanelServer]:
    async with serving(store) as server:
        yield server


async def sign_in(page: Page, panel: PanelServer) -> None:
    async with panel.store.begin() as tx:
        await admins.put_admin(tx, "mina", await panel.passwords.hash(PASSWORD), "owner")
    await page.goto(f"{panel.base}admin/")
    await page.fill("[name=login]", "mina")
    await page.fill("[name=password]", PASSWORD)
    await page.click(".gate button.primary")
    await page.wait_for_url("**/admin/")


async def state_of(store: Store, world: World) -> str:
    async with store.begin() as tx:
        query = text("select review_state from feedback where id = :id").bindparams(id=world.correction)
        return str(await tx.scalar(query))


async def test_from_the_one_time_link_to_the_overview(panel: PanelServer, open_page: OpenPage) -> None:
    page = await open_page()
    await page.goto(f"{panel.base}admin/link/{await create_admin_link(panel.store, 'first_admin')}")
    await page.fill("[name=login]", "mina")
    await page.fill("[name=password]", PASSWORD)
    await page.click("text=Save and go to sign-in")
    await page.fill("[name=login]", "mina")
    await page.fill("[name=password]", PASSWORD)
    await page.click("text=Sign in >> visible=true >> nth=-1")
    await expect(page.locator("nav [aria-current]")).to_have_text("Overview")


async def test_a_reviewer_needs_no_mouse(panel: PanelServer, open_page: OpenPage, world: World, store: Store) -> None:
    page = await open_page()
    await sign_in(page, panel)
    await page.goto(f"{panel.base}admin/feedback")
    current = page.locator(".rows [aria-current]")
    first = await current.get_attribute("href")
    await page.keyboard.press("j")
    await expect(current).not_to_have_attribute("href", first or "")
    await page.keyboard.press("k")
    await expect(current).to_have_attribute("href", first or "")
    await page.keyboard.press("r")
    await expect(page.locator("[name=reason]")).to_be_focused()
    assert await state_of(store, world) == "new", "no reason, no decision"
    await page.keyboard.type("not their own words")
    await page.keyboard.press("Enter")
    await expect(page.locator(".note.undo")).to_contain_text("rejected")
    assert await state_of(store, world) == "rejected"
    assert "done=" in page.url, "the address follows"
    await page.keyboard.press("u")
    await expect(page.locator(".note.undo")).to_contain_text("New")
    assert await state_of(store, world) == "new"
    await page.goto(f"{panel.base}admin/feedback")
    await page.keyboard.press("a")
    await expect(page.locator(".note.undo")).to_contain_text("approved")
    assert await state_of(store, world) == "approved"


async def test_keys_typed_into_a_field_decide_nothing(
    panel: PanelServer, open_page: OpenPage, world: World, store: Store
) -> None:
    page = await open_page()
    await sign_in(page, panel)
    await page.goto(f"{panel.base}admin/feedback")
    await page.click("[name=reason]")
    await page.keyboard.type("arqlujk")
    assert await page.input_value("[name=reason]") == "arqlujk"
    assert await state_of(store, world) == "new"


async def test_hostile_text_does_not_run(panel: PanelServer, open_page: OpenPage, world: World) -> None:
    page = await open_page()
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    await sign_in(page, panel)
    await page.goto(f"{panel.base}admin/feedback?state=&item={world.hostile}")
    await expect(page.locator(".msg.rated")).to_contain_text("<img src=x onerror=alert(1)>")
    assert await page.locator(".talk img, .talk script").count() == 0
    assert dialogs == []


async def test_the_overview_refreshes_itself(panel: PanelServer, open_page: OpenPage, store: Store) -> None:
    page = await open_page()
    await sign_in(page, panel)
    async with store.begin() as tx:
        await tx.execute(text("update switches set reason = 'all is well again'"))
    await page.evaluate("htmx.ajax('GET', '/admin/live', {target: '#live', swap: 'outerHTML'})")
    await expect(page.locator("#live")).to_contain_text("all is well again")


async def test_an_error_in_place_is_shown_in_place(
    panel: PanelServer, open_page: OpenPage, watched: Watched, world: World, store: Store
) -> None:
    watched.expected.append("409")
    watched.expected.append("Response Status Error Code")
    page = await open_page()
    await sign_in(page, panel)
    await page.goto(f"{panel.base}admin/feedback")
    async with store.begin() as tx:
        change = text("update feedback set review_state = 'approved' where id = :id")
        await tx.execute(change.bindparams(id=world.correction))
    await page.keyboard.press("a")
    await expect(page.locator("#work")).to_contain_text("Somebody else changed this first")


@pytest.mark.parametrize("locale", ["en-US", "ko-KR"])
@pytest.mark.parametrize(("viewport", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")])
async def test_every_page_fits(
    panel: PanelServer, open_page: OpenPage, world: World, locale: str, viewport: dict[str, int], scheme: str
) -> None:
    page = await open_page(locale=locale, viewport=viewport, color_scheme=scheme)
    await sign_in(page, panel)
    more = (f"feedback?item={world.correction}", f"checkpoints/{world.checkpoint}", f"people/{world.open_person}")
    for name in (*NAMES, *more):
        await page.goto(f"{panel.base}admin/{name}")
        assert await page.evaluate("document.documentElement.lang") == locale[:2]
        wide = await page.evaluate("document.documentElement.scrollWidth")
        assert wide <= viewport["width"], (name, wide)
        unlabelled = "[...document.querySelectorAll('input:not([type=hidden]), select, textarea')].filter(e => !e.labels.length && !e.ariaLabel).length"
        assert await page.evaluate(unlabelled) == 0, name


async def test_consents_and_acts_are_seen_on_a_phone(panel: PanelServer, open_page: OpenPage) -> None:
    """No column is pushed out of the window."""
    page = await open_page(locale="ko-KR", viewport=PHONE)
    await sign_in(page, panel)
    for name, shown in (("people", ".marks .mark"), ("audit", "td[data-label]")):
        await page.goto(f"{panel.base}admin/{name}")
        boxes = [await each.bounding_box() for each in await page.locator(shown).all() if await each.is_visible()]
        assert boxes
        assert all(box and box["x"] + box["width"] <= PHONE["width"] for box in boxes), name
    await expect(page.locator("tbody tr").first).to_contain_text("로그인")


async def test_without_scripts_everything_still_works(
    panel: PanelServer, open_page: OpenPage, world: World, store: Store
) -> None:
    page = await open_page(java_script_enabled=False)
    await sign_in(page, panel)
    await page.goto(f"{panel.base}admin/feedback")
    await page.fill("[name=reason]", "planted")
    await page.click("button[value=quarantine]")
    await expect(page.locator(".note.undo")).to_contain_text("quarantined")
    assert await state_of(store, world) == "quarantined"
