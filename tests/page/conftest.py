"""A browser for the tests of the page: one for all tests of a module, and so is the page in which most of them look.

Not for longer: as long as it is there this thread has a running event loop, and no other test could have one.
"""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.support import snapshots
from tests.support.canned_map import CannedMap
from tests.support.packages import program
from tests.support.tab import shown, tab_of

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


@pytest.fixture(scope="module")
def tab(browser: Browser) -> Iterator[Page]:
    with tab_of(browser) as tab:
        yield tab


@pytest.fixture
def page(tab: Page, canned: CannedMap) -> Iterator[Page]:
    """A page that shows a fabric at work, all well; nothing may be complained of in its console."""
    canned.asked.clear()
    canned.show(snapshots.busy(snapshots.DEMO, 1))
    with shown(tab, canned.url) as page:
        yield page
