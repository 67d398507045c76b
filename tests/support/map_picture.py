"""The picture of the live map in the documentation: `python -m tests.support.map_picture [FILE]`.

Runs the fabric that `mrcfabric up` runs, with an exchange between all NICs, opens its map in Chromium, cuts a link and
kills a switch by the keys that a reader has, and takes the picture once NICs have retired EVs. Half a minute, more on a
busy machine.
"""

import argparse
import tempfile
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

from tests.page.conftest import FLAGS
from tests.support.live_map import Opened, at_work, click_cable, detached, opened, served
from tests.support.packages import program

IMAGE = Path(__file__).parents[2] / "docs" / "images" / "map.png"
LINK, SWITCH = "p2-t0-0~p2-t1-1", "p5-t1-2"
NIC = "h001"
WAIT_MS = 120_000


def main() -> None:
    """Take it."""
    parser = argparse.ArgumentParser(description="Take the picture of the live map.")
    parser.add_argument("file", nargs="?", type=Path, default=IMAGE)
    parser.add_argument("--dark", action="store_true")
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        detached(Path(folder), []) as run_dir,
        at_work(run_dir, "all_to_all", {"steps": 10_000, "block_bytes": 1 << 17}),
        served(run_dir) as server,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=program("chromium"), args=list(FLAGS))
        scheme = "dark" if given.dark else "light"
        with opened(browser, server.url, width=1280, height=800, color_scheme=scheme) as one:
            _break(one)
            one.page.screenshot(path=given.file)
        browser.close()


def _break(one: Opened) -> None:
    page = one.page
    page.locator(f'[data-part="{NIC}"]').click()
    expect(page.locator("#ev-rows .ev-row")).to_have_count(8, timeout=WAIT_MS)
    page.locator("#event-filter").select_option("ev_transition")
    _work_goes_on(page, 12)
    click_cable(page, LINK)
    page.keyboard.press("f")
    one.state_of(LINK, "down")
    _retired(page, 2)
    _work_goes_on(page, 8)
    page.locator(f'[data-part="{SWITCH}"]').click()
    page.keyboard.press("f")
    one.state_of(SWITCH, "down")
    _retired(page, 5)
    _work_goes_on(page, 8)
    page.locator(f'[data-part="{NIC}"]').click()
    _work_goes_on(page, 1)


def _work_goes_on(page: Page, looks: int) -> None:
    """Wait until the clock of the page has been seen to move so often."""
    for _ in range(looks):
        before = page.locator("#clock").text_content()
        expect(page.locator("#clock")).not_to_have_text(str(before), timeout=WAIT_MS)


def _retired(page: Page, plane: int) -> None:
    bad = page.locator(f'#ev-rows .ev-row[data-plane="{plane}"] .cell.ev-assumed_bad')
    expect(bad.first).to_be_attached(timeout=WAIT_MS)


if __name__ == "__main__":
    main()
