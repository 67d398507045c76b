"""The live map of a fabric that really runs and works: broken, healed and watched in a browser."""

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.orchestrator.running import SMALL_FLAGS
from tests.support.live_map import Opened, Served, at_work, click_cable, detached, opened, served

pytestmark = pytest.mark.integration

LINK = "p0-t0-0~p0-t1-0"
SWITCH = "p1-t1-1"
PORT = "h000:1"
BAD, BAD_OF_PLANE_0, BAD_OF_PLANE_1 = (
    f".ev-row{plane} .cell.ev-assumed_bad" for plane in ("", '[data-plane="0"]', '[data-plane="1"]')
)
WAIT_MS = 60_000
CALM = ["--dilation", "4000", "--pack", "cores"]
"""Slow enough, and in as few processes, that the machine is left to the browser."""
SCENARIO = """
name: a-short-cut
description: A cable is cut for a while.
length: 300rtt
workload:
  - {name: shuffle, kind: all_to_all, steps: 4, block_bytes: 16KiB}
method:
  - {name: cut, at: 20rtt, for: 40rtt, fault: link_down, selector: {tier: t0-t1}, mode: one}
expect:
  - {measure: bytes_wrong, at_most: 0}
"""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where a fabric runs whose two NICs send to each other without end."""
    with (
        detached(tmp_path_factory.mktemp("live"), [*SMALL_FLAGS, *CALM]) as run_dir,
        at_work(run_dir, "all_to_all", {"steps": 10_000, "block_bytes": 1 << 18}),
    ):
        yield run_dir


@pytest.fixture(scope="module")
def server(running: Path) -> Iterator[Served]:
    (running / "scenarios").mkdir()
    (running / "scenarios" / "short.yaml").write_text(SCENARIO)
    with served(running, "--scenarios", str(running / "scenarios")) as one:
        yield one


@pytest.fixture
def map_page(browser: Browser, server: Served) -> Iterator[Opened]:
    """An open page; it may complain of nothing and ask nobody else."""
    with opened(browser, server.url, color_scheme="light") as one:
        yield one
        assert not one.complaints
        assert not one.strangers(server.origin)
        assert any(url.startswith("ws") for url in one.asked)


def seen_good(page: Page) -> None:
    """Wait until the QP that is shown sends over every plane."""
    expect(page.locator(".ev-row")).to_have_count(2, timeout=WAIT_MS)
    expect(page.locator(BAD)).to_have_count(0, timeout=WAIT_MS)


def test_a_link_is_cut_by_a_click_and_evs_go_and_return(map_page: Opened, tmp_path: Path) -> None:
    page = map_page.page
    seen_good(page)
    expect(page.locator("#goodput")).to_have_text(re.compile(r"^[1-9]"))
    click_cable(page, LINK)
    expect(page.locator("#panel-title")).to_contain_text(LINK)
    page.locator("#panel .fail").click()
    map_page.state_of(LINK, "down")
    expect(page.locator(BAD_OF_PLANE_0).first).to_be_attached(timeout=WAIT_MS)
    gone = page.locator('#event-lines li[data-kind="ev_transition"]', has_text="→ assumed bad").first
    expect(gone).to_contain_text("plane 0 path 0")
    expect(gone.locator(".section")).to_have_text(re.compile(r"^MRC 1\.0 \d"))
    expect(gone.locator("p .soft")).to_have_text(re.compile(r"^: \w+"))  # why
    told_of_fault = page.locator('#event-lines li[data-kind="fault"]').last
    expect(told_of_fault).to_contain_text(LINK)
    map_page.picture(tmp_path, "light")
    page.emulate_media(color_scheme="dark")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    map_page.picture(tmp_path, "dark")
    page.locator("#panel form .heal").click()
    map_page.state_of(LINK, "up")
    seen_good(page)
    expect(page.locator('#event-lines li[data-kind="ev_transition"]', has_text="→ good").last).to_be_attached()
    page.locator("#tab-faults").click()
    line = page.locator("#fault-list li", has_text=LINK).first
    expect(line).to_contain_text("over at")
    box = page.locator("#chart").bounding_box()
    assert box is not None
    for tenth in range(99, 0, -1):
        page.mouse.move(box["x"] + box["width"] * tenth / 100, box["y"] + box["height"] / 2)
        if LINK in (page.locator("#reading").text_content() or ""):
            return
    pytest.fail("the timeline shows no fault")


def test_the_same_by_keyboard_alone(map_page: Opened) -> None:
    page = map_page.page
    seen_good(page)
    for key in ("m", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    link = page.locator(":focus").get_attribute("data-part") or ""
    assert "~" in link
    for key in ("Enter", "f"):
        page.keyboard.press(key)
    map_page.state_of(link, "down")
    expect(page.locator(BAD_OF_PLANE_0).first).to_be_attached(timeout=WAIT_MS)
    page.keyboard.press("h")
    map_page.state_of(link, "up")
    seen_good(page)


def test_a_port_and_a_switch_are_failed_and_healed(map_page: Opened) -> None:
    page = map_page.page
    seen_good(page)
    page.locator(f'[data-part="{PORT}"]').click()
    page.locator("#panel .fail").click()
    map_page.state_of(PORT, "down")
    # The EVs of a port that its own NIC knows to be down are good and not used.
    expect(page.locator('[data-part="plane 1"]')).to_have_attribute("aria-label", "plane 1, impaired")
    expect(page.locator("#event-lines li", has_text="port of plane 1 lost carrier").last).to_be_attached(
        timeout=WAIT_MS
    )
    page.locator("#panel form .heal").click()
    map_page.state_of(PORT, "up")
    page.locator(f'[data-part="{SWITCH}"]').click()
    page.locator("#panel .fail").click()
    map_page.state_of(SWITCH, "down")
    expect(page.locator(BAD_OF_PLANE_1).first).to_be_attached(timeout=WAIT_MS)
    page.locator("#panel form .heal").click()
    map_page.state_of(SWITCH, "up")
    seen_good(page)


def test_a_scenario_is_chosen_run_and_judged(map_page: Opened) -> None:
    page = map_page.page
    page.locator("#tab-run").click()
    page.locator("#run-scenario").select_option(label="a-short-cut")
    expect(page.locator("#run-description")).to_have_text("A cable is cut for a while.")
    page.locator("#run-start").click()
    expect(page.locator("#run-lines li", has_text="link_down").first).to_be_attached(timeout=WAIT_MS)
    expect(page.locator("#run-state [data-verdict]")).to_have_attribute("data-verdict", "held", timeout=WAIT_MS)
    with page.expect_popup() as popup:
        page.locator("#run-state a").click()
    expect(popup.value.locator("h1")).to_contain_text("a-short-cut")
    popup.value.close()


@pytest.mark.long(30)
def test_a_server_that_is_killed_is_waited_for_and_its_faults_heal(
    browser: Browser, server: Served, running: Path, map_page: Opened
) -> None:
    with served(running, "--port", "0") as mortal, opened(browser, mortal.url) as other:
        page = other.page
        click_cable(page, LINK)
        page.locator("#panel .fail").click()
        map_page.state_of(LINK, "down")
        mortal.process.send_signal(signal.SIGKILL)
        expect(page.locator("#link-state")).to_have_text("lost")
        expect(page.locator("#notice")).to_contain_text("The server does not answer")
        map_page.state_of(LINK, "up")
        with served(running, "--port", str(mortal.port)):
            expect(page.locator("#link-state")).to_have_text("live", timeout=WAIT_MS)
            expect(page.locator("#notice")).to_be_hidden()
            other.state_of(LINK, "up")
            page.locator("#panel .fail").click()
            expect(page.locator("#said")).to_contain_text("open the address that the command printed")
        # Who is asked before the server that is back has found the fabric is refused, and asks again.
        expected = ("Failed to load resource", "ERR_CONN", "Unexpected response code: 409")
        assert all(any(part in one for part in expected) for one in other.complaints), other.complaints
