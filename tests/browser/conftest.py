"""A headless Chromium for the pages. Every page is watched: an error in the console or a breach of the content policy
fails the test, whatever it was about.
"""

import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect

FOUND = (shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))
CHROMIUM = os.environ.get("CHROMIUM") or next(filter(None, FOUND), "")
PHONE = {"width": 390, "height": 844}
DESKTOP = {"width": 1280, "height": 860}
# Set before any script of the page runs: what the browser refused is kept where the test can read it.
WATCH = """
window.refused = [];
document.addEventListener("securitypolicyviolation", (event) => window.refused.push(`${event.violatedDirective} ${event.blockedURI}`));
"""


# A test's server may stop before its pages are closed, and then the page rightly complains.
STOPPED = ("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET")


@dataclass
class Watched:
    """What went wrong on the pages of a test. `expected` are pieces of messages that the test provokes on purpose."""

    problems: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def watch(self, page: Page) -> None:
        """Keep the page's errors."""
        page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        page.on("console", lambda line: line.type == "error" and self.problems.append(f"console: {line.text}"))

    @property
    def unexpected(self) -> list[str]:
        """The problems that no test asked for."""
        return [p for p in self.problems if not any(piece in p for piece in (*STOPPED, *self.expected))]


# A busy machine is slow, not wrong.
PATIENCE_MS = 20_000
expect.set_options(timeout=PATIENCE_MS)

OpenPage = Callable[..., Awaitable[Page]]


@pytest.fixture
async def chromium() -> AsyncIterator[Browser]:
    """A browser; the test is skipped on machines without one."""
    if not CHROMIUM:
        pytest.skip("no Chromium here: install one or set CHROMIUM to its path")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        await browser.close()


@pytest.fixture
def watched() -> Watched:
    """The problems of this test's pages."""
    return Watched()


@pytest.fixture
async def open_page(chromium: Browser, watched: Watched) -> AsyncIterator[OpenPage]:
    """A function that opens a page with cookies of its own, with Playwright's context options (viewport, locale, ...)."""
    contexts: list[BrowserContext] = []

    async def opened(**options: Any) -> Page:  # noqa: ANN401 - Playwright's own options
        context = await chromium.new_context(**({"viewport": DESKTOP, "locale": "en-US"} | options))
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        await context.add_init_script(WATCH)
        page = await context.new_page()
        watched.watch(page)
        return page

    yield opened
    refused = [line for c in contexts for page in c.pages for line in await page.evaluate("window.refused ?? []")]
    for context in contexts:
        await context.close()
    assert not refused
    assert not watched.unexpected


@pytest.fixture
async def browser_page(open_page: OpenPage) -> Page:
    """One page, desktop size, English."""
    return await open_page()
