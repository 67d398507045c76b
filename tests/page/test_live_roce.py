"""The live map of a RoCE fabric that really runs: a receiver is made slow on the page, and the page shows who waits."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.support.live_map import at_work, detached, opened, served

pytestmark = [pytest.mark.integration, pytest.mark.long]

FLAGS = ["--system", "roce", "--planes", "1", "--t0", "2", "--t1", "2", "--nics-per-t0", "2", "--name", "roce"]
WAIT_MS = 60_000


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with (
        detached(tmp_path_factory.mktemp("roce"), [*FLAGS, "--dilation", "4000"]) as run_dir,
        at_work(run_dir, "incast", {"messages": 100_000, "message_bytes": 1 << 18}),
    ):
        yield run_dir


def test_a_slow_receiver_is_the_root_of_what_waits(browser: Browser, running: Path, tmp_path: Path) -> None:
    with served(running) as server, opened(browser, server.url) as one:
        page = one.page
        expect(page.locator("#system")).to_have_text("roce")
        expect(page.locator("#legend")).to_contain_text("paused (PFC)")
        expect(page.locator("#bad-evs")).to_have_text(re.compile(r"^0 "), timeout=WAIT_MS)
        page.locator('[data-part="h000"]').click()
        expect(page.locator("#panel .figures")).to_contain_text("3 rts", timeout=WAIT_MS)
        expect(page.locator("#strips tbody tr")).to_have_count(3, timeout=WAIT_MS)
        page.get_by_label("Kind of fault").select_option("slow_receiver")
        page.locator("#panel [name=rate_bps]").fill("2e9")
        page.locator("#panel .fail").click()
        tree = page.locator("#panel .pauses li")
        expect(tree.first).to_have_text("class 3: h000, it takes packets more slowly than they come", timeout=WAIT_MS)
        expect(tree.nth(1)).to_have_text(re.compile("^h000 pauses p0-t0-0: class 3 paused "))
        expect(page.locator("#event-lines")).to_contain_text("paused by h000", timeout=WAIT_MS)
        one.picture(tmp_path, "roce")
        assert not one.complaints
        assert not one.strangers(server.origin)
