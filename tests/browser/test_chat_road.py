"""The chat page on the whole gateway: the real dialogue, the instant model server, one lesson from 👎 to example."""

import pytest
from playwright.async_api import Page, expect

from tests.browser.conftest import Watched
from tests.browser.test_chat import say
from tests.fakes.model import ModelServer
from tests.fakes.model.replies import Call
from tests.support.road import road

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

LINE = "End every answer with 'Enjoy your cup!'"


def model_of(call: Call) -> str:
    """A model that follows the line when it sees it."""
    follows = LINE in call.system or call.last_user == LINE
    return "Tea is a drink. Enjoy your cup!" if follows else "Tea is a drink."


async def test_a_lesson_is_given_on_the_page(browser_page: Page, database_url: str) -> None:
    page = browser_page
    async with ModelServer(name="smollm2-135m", script=model_of) as model, road(database_url, model.url) as gateway:
        await page.goto(f"{gateway.url}/chat")
        await expect(page.locator("html[data-ready=yes]")).to_be_attached()
        await page.locator("#welcome [data-purpose=memory]").check()
        await page.locator("#start").click()
        await page.locator("#code-kept").click()
        await expect(page.locator("html[data-known=yes][data-ready=yes]")).to_be_attached()
        await say(page, "What is tea?")
        await page.get_by_label("Not a good answer").click()
        await expect(page.get_by_role("button", name="Style or format")).to_be_visible()
        await page.get_by_label("Correct this").click()
        await say(page, LINE)
        await expect(page.locator("#memory li")).to_contain_text("0 of 1 examples")
        await page.get_by_role("button", name="Like this").click()
        await expect(page.locator("#memory li")).to_contain_text("1 of 1 examples")
        await say(page, "And coffee?")
        await expect(page.locator(".message.reply .rich").last).to_contain_text("Enjoy your cup!")
        await page.locator("#memory li").get_by_role("button", name="Undo").click()
        await expect(page.locator("#memory li")).to_have_count(0)
        await page.get_by_role("button", name="Everything held about me").click()
        await expect(page.get_by_role("link", name="Save mentee-export.json")).to_be_visible()


async def test_the_field_says_that_a_reply_is_to_be_written(browser_page: Page, database_url: str) -> None:
    page, bar = browser_page, browser_page.locator("#correcting")
    async with ModelServer(name="smollm2-135m", script=model_of) as model, road(database_url, model.url) as gateway:
        await page.goto(f"{gateway.url}/chat")
        await expect(page.locator("html[data-ready=yes]")).to_be_attached()
        await page.locator("#welcome [data-purpose=memory]").check()
        await page.locator("#start").click()
        await page.locator("#code-kept").click()
        await expect(page.locator("html[data-known=yes][data-ready=yes]")).to_be_attached()
        await say(page, "What is tea?")
        await page.get_by_label("Correct this").click()
        await say(page, LINE)
        await expect(page.get_by_role("button", name="Not this")).to_be_visible()
        await expect(bar).to_be_hidden()
        await page.get_by_role("button", name="Not this").click()  # the model has no other: all its tries are one
        await expect(bar).to_be_visible()
        await expect(page.locator("#corrected")).to_have_text("Tea is a drink.")
        await expect(page.locator("#text")).to_have_attribute("placeholder", "How should it have been?")
        await page.reload()
        await expect(bar).to_be_visible()
        await say(page, "Tea is hot.")
        await expect(page.get_by_text("once more").first).to_be_visible()
        await expect(bar).to_be_visible()
        await page.locator("#uncorrect").click()
        await expect(bar).to_be_hidden()
        await expect(page.get_by_text("All right, no example then.")).to_be_visible()
        await say(page, "And coffee?")
        await expect(page.locator(".message.reply .rich").last).to_contain_text("Enjoy your cup!")
        await expect(bar).to_be_hidden()


async def test_who_forgets_everything_reads_the_receipt_before_the_welcome(
    browser_page: Page, database_url: str, watched: Watched
) -> None:
    page = browser_page
    watched.expected.append("401")  # the page may read once more before it is told
    async with ModelServer(name="smollm2-135m", script=model_of) as model, road(database_url, model.url) as gateway:
        await page.goto(f"{gateway.url}/chat")
        await expect(page.locator("html[data-ready=yes]")).to_be_attached()
        await page.locator("#start").click()
        await page.locator("#code-kept").click()
        await expect(page.locator("html[data-known=yes][data-ready=yes]")).to_be_attached()
        await page.locator("[data-command=forget]").click()
        await page.get_by_role("button", name="Everything", exact=True).click()
        await expect(page.locator("#gone-words")).to_contain_text("Your receipt:")
        await page.wait_for_timeout(3500)  # longer than a page without a cookie waits
        code = (await page.locator("#gone-words").inner_text()).split("receipt: ")[1].split()[0]
        await page.get_by_role("button", name="I have kept it").click()
        await expect(page.locator("#welcome")).to_be_visible()
        await page.goto(f"{gateway.url}/receipt")
        await page.get_by_label("Receipt code").fill(code)
        await page.get_by_role("button", name="Show").click()
        await expect(page.get_by_role("status")).to_contain_text("Forgotten.")
