"""One page of a browser for the tests of a module, for each of them as good as new.

A page of its own costs each test a process of the browser, and its scripts are compiled anew: more than what most tests
do with it. So the page goes to another address between two tests, and nothing stays that it keeps itself: storage,
size, place of the mouse, what is listened to.
"""

import contextlib
from collections.abc import Iterator

from playwright.sync_api import Browser, ConsoleMessage, Error, Page, expect

WIDTH, HEIGHT = 1280, 800
LIVE_MS = 20_000
NOWHERE = "about:blank"


@contextlib.contextmanager
def tab_of(browser: Browser) -> Iterator[Page]:
    """The page."""
    page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light", reduced_motion="reduce")
    yield page
    page.close()


@contextlib.contextmanager
def shown(tab: Page, url: str) -> Iterator[Page]:
    """The page at the address of a map, live; nothing may be complained of in its console."""
    tab.set_viewport_size({"width": WIDTH, "height": HEIGHT})
    tab.emulate_media(color_scheme="light", reduced_motion="reduce")
    tab.mouse.move(0, 0)
    errors: list[str] = []

    def raised(error: Error) -> None:
        errors.append(str(error))

    def said(message: ConsoleMessage) -> None:
        if message.type == "error":
            errors.append(message.text)

    tab.on("pageerror", raised)
    tab.on("console", said)
    try:
        tab.goto(url)
        expect(tab.locator("#link-state")).to_have_text("live", timeout=LIVE_MS)
        yield tab
    finally:
        tab.remove_listener("pageerror", raised)
        tab.remove_listener("console", said)
        tab.evaluate("localStorage.clear(); sessionStorage.clear()")
        tab.goto(NOWHERE)
    assert not errors
