"""A browser for the tests of the page: one for all tests of a module, in which every test has a page of its own.

Not for longer: as long as it is there this thread has a running event loop, and no other test could have one.
"""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.support import snapshots
from tests.support.canned_map import CannedMap
from tests.support.packages import program

FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    executable = program("chromium")
    expect.set_options(timeout=20_000)  # a machine may be busy with other tests
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def canned() -> Iterator[CannedMap]:
    with CannedMap(snapshots.DEMO) as canned:
        yield canned


@pytest.fixture
def page(browser: Browser, canned: CannedMap) -> Iterator[Page]:
    """A page that shows a fabric at work, all well; nothing may be complained of in its console."""
    canned.asked.clear()
    canned.show(snapshots.busy(snapshots.DEMO, 1))
    page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="light", reduced_motion="reduce")
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    page.goto(canned.url)
    expect(page.locator("#link-state")).to_have_text("live", timeout=20_000)
    yield page
    page.close()
    assert not errors
