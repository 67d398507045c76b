"""The page of a lossless fabric: paused links, the tree of a pause, and nothing of it where nobody pauses."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from orchestrator.web import messages
from tests.support import snapshots
from tests.support.canned_map import CannedMap
from tests.support.live_map import click_cable
from tests.support.tab import shown

pytestmark = pytest.mark.integration

LINK = "h002~p0-t0-1"
TREE = [
    "class 3: p0-t0-0, its port to h000 is congested",
    "p0-t0-0 pauses p0-t1-0: class 3 paused 5 %, 12 frames",
    "p0-t1-0 pauses p0-t0-1: class 3 paused 45 %, 12 frames",
    "p0-t0-1 pauses h002: class 3 paused 70 %, 12 frames, now too",
    "p0-t0-1 pauses h003: class 3 paused 60 %, 12 frames, now too",
    "at the end: h002 h003",
]


@pytest.fixture(scope="module")
def canned() -> Iterator[CannedMap]:
    with CannedMap(snapshots.ROCE) as canned:
        yield canned


@pytest.fixture
def page(tab: Page, canned: CannedMap) -> Iterator[Page]:
    canned.show(snapshots.paused())
    with shown(tab, canned.url) as page:
        yield page


def colours(page: Page) -> set[str]:
    """What the canvas of the links is drawn with, of the colours that the style has for the names given."""
    found: list[str] = page.evaluate(
        """() => {
            const canvas = document.querySelector("#map canvas");
            const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            const seen = new Set();
            for (let at = 0; at < data.length; at += 4)
                if (data[at + 3] > 250) seen.add([data[at], data[at + 1], data[at + 2]].join());
            return [...seen];
        }"""
    )
    return set(found)


def drawn(page: Page, what: str) -> str:
    return page.locator(f".pause-tree .{what}").get_attribute("d") or ""


PAUSE = "0,112,107"


def test_a_paused_link_has_a_colour_of_its_own_and_a_place_in_the_legend(page: Page, canned: CannedMap) -> None:
    expect(page.locator("#legend")).to_contain_text("paused (PFC)")
    assert PAUSE in colours(page)
    canned.show(snapshots.busy(snapshots.ROCE, 2))
    expect(page.locator("#panel .pauses li")).to_have_count(0)
    for _ in range(2):
        page.wait_for_function("() => new Promise(done => requestAnimationFrame(() => done(true)))")
    assert PAUSE not in colours(page)


def test_the_tip_says_class_share_and_frames(page: Page, canned: CannedMap) -> None:
    page.keyboard.press("m")
    page.locator(f'[data-part="{LINK}"]').focus()
    expect(page.locator("#map .tip")).to_contain_text("p0-t0-1 pauses h002: class 3 paused 70 %, 12 frames, now too")
    expect(page.locator(":focus")).to_have_attribute(
        "aria-label", re.compile("^link h002~p0-t0-1, up, .* paused 70 %,")
    )
    # The picture may still follow the window; after that it stays, with a tip and without.
    page.wait_for_function(
        """name => {
            const place = document.querySelector(`[data-part="${name}"]`).getAttribute("d");
            window.frames_still = window.place_before === place ? window.frames_still + 1 : 0;
            window.place_before = place;
            return window.frames_still >= 20;
        }""",
        arg=LINK,
    )


def test_the_tree_of_a_link_is_drawn_and_told_from_its_reason_to_who_waits(page: Page, canned: CannedMap) -> None:
    click_cable(page, LINK)
    expect(page.locator("#panel .pauses li")).to_have_text(TREE)
    assert drawn(page, "lanes").count("M") == 4 * 2
    assert drawn(page, "roots").count("M") == 2
    assert drawn(page, "leaves").count("M") == 2 * 2
    page.locator("#panel .pauses button").first.click()
    expect(page.locator("#panel-title")).to_contain_text("T0 p0-t0-0")
    expect(page.locator("#panel .pauses li")).to_have_text(TREE)
    page.locator('[data-part="h000"]').click()
    expect(page.locator("#panel .pauses li").first).to_have_text(TREE[0])
    page.locator('[data-part="h001"]').click()
    expect(page.locator("#panel .pauses li")).to_have_count(0)
    assert (drawn(page, "lanes"), drawn(page, "roots"), drawn(page, "leaves")) == ("", "", "")


def test_nothing_chosen_shows_the_reason_of_every_tree(page: Page, canned: CannedMap) -> None:
    expect(page.locator("#panel .pauses li")).to_have_text([f"{TREE[0]}; at the end h002 h003"])
    page.locator("#panel .pauses button").click()
    expect(page.locator("#panel-title")).to_contain_text("p0-t0-0")


def test_events_are_captions_on_the_axis_of_time_and_lines_of_the_log(page: Page, canned: CannedMap) -> None:
    told = {"wall_s": 1.0, "cause": "paused by h000", "section": "IEEE 802.1Q 36", "cls": 3, "peer": "h000", "port": 0}
    begun = {
        "n": 1,
        "at_ns": 700_000,
        "node": "p0-t0-0",
        "kind": "pause_begun",
        "since_ns": 650_000,
        "frames": 9,
        **told,
    }
    fired = {**begun, "n": 2, "at_ns": 900_000, "kind": "watchdog_fired", "paused_ns": 200_000}
    lines = page.locator("#event-lines li")
    for number in range(2, 7):
        canned.show(snapshots.paused(number=number))
    canned.tell(messages.snapshot(snapshots.paused(number=7)), messages.events([begun, fired], 0))
    expect(lines).to_have_count(2)
    expect(lines.first).to_contain_text("port 0 class 3: paused since 650 us: paused by h000")
    page.locator("#event-filter").select_option("pause")
    expect(lines).to_have_count(2)
    page.locator("#chart").focus()
    for _ in range(60):
        if "watchdog of p0-t0-0 fired" in page.locator("#reading").inner_text():
            break
        page.keyboard.press("ArrowLeft")
    expect(page.locator("#reading")).to_contain_text("watchdog of p0-t0-0 fired")


def test_a_fabric_where_nobody_pauses_looks_as_before(tab: Page) -> None:
    with CannedMap(snapshots.SMALL) as calm:
        calm.show(snapshots.busy(snapshots.SMALL, 1))
        with shown(tab, calm.url) as page:
            expect(page.locator("#legend")).not_to_contain_text("paused")
            expect(page.get_by_text("Pauses, each with its reason")).to_be_hidden()
