"""The page to its readers: nothing covers anything, all can be read, the focus stays, and an hour costs no more."""

from dataclasses import replace

import pytest
from playwright.sync_api import Page, expect

from orchestrator.live.snapshot import FaultView
from orchestrator.web import messages
from tests.support import snapshots
from tests.support.canned_map import EVENTS, CannedMap, ev_rows

pytestmark = pytest.mark.integration

SIZES = [(1024, 768), (1100, 800), (1280, 800), (1920, 1080)]
SMALLEST_PX = 11
TEXT_RATIO = 4.5
MARK_RATIO = 3.0
MARKS_ON_BACKGROUND = ("u0", "u1", "u2", "u3", "u4", "u5", "u6", "bad", "denied", "skip-edge", "edge", "good", "c2")
MARKS_ON_CARDS = ("good", "bad", "denied", "skip-edge", "edge", *(f"c{place}" for place in range(8)))

FRAMES = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done))))"
TEXTS = """() => {
    const found = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const element = walker.currentNode.parentElement;
        if (!walker.currentNode.textContent.trim() || !element.checkVisibility({ visibilityProperty: true })) continue;
        if (element.closest("option, script, .skip, dialog, .tip")) continue;
        const range = document.createRange();
        range.selectNodeContents(walker.currentNode);
        const style = getComputedStyle(element);
        const inPicture = element.ownerSVGElement !== undefined && element.ownerSVGElement !== null;
        let behind = element;
        const clear = one => getComputedStyle(one).backgroundColor === "rgba(0, 0, 0, 0)";
        while (!inPicture && clear(behind) && behind !== document.body) behind = behind.parentElement;
        for (const box of range.getClientRects())
            if (box.width > 0) found.push({
                text: walker.currentNode.textContent.trim(), x: box.x, y: box.y, w: box.width, h: box.height,
                size: parseFloat(style.fontSize), colour: inPicture ? style.fill : style.color,
                behind: getComputedStyle(inPicture ? document.body : behind).backgroundColor,
                disabled: element.closest(":disabled") !== null,
                scrolls: element.closest("#event-lines, #panel, #ev-rows, #fault-list") !== null,
            });
    }
    return found;
}"""


def _luminance(colour: tuple[float, ...]) -> float:
    parts = [value / 255 for value in colour]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def ratio(one: str, other: str) -> float:
    """The contrast of two colours, as WCAG has it; `rgb(1, 2, 3)` or `#123456` each."""
    dark, light = sorted(_luminance(_parsed(colour)) for colour in (one, other))
    return (light + 0.05) / (dark + 0.05)


def _parsed(colour: str) -> tuple[float, ...]:
    if colour.startswith("#"):
        digits = colour[1:] if len(colour) == 7 else "".join(digit * 2 for digit in colour[1:])
        return tuple(int(digits[place : place + 2], 16) for place in (0, 2, 4))
    return tuple(float(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3])


def show_trouble(page: Page, canned: CannedMap) -> None:
    """Everything that can stand in the page stands in it."""
    expect(page.locator("#strip-qp")).to_have_value(str(snapshots.QPS))  # EVs told before are of a QP nobody watches
    evs = messages.evs("h000", snapshots.QPS, ev_rows(snapshots.DEMO, [7]))
    canned.tell(messages.snapshot(snapshots.broken(snapshots.DEMO, 2)), evs, messages.events(EVENTS, 0))
    expect(page.locator(".ev-row")).to_have_count(8)
    expect(page.locator("#fault-count")).to_have_text("6")


def test_no_text_covers_another_or_is_too_small_to_read(page: Page, canned: CannedMap) -> None:
    show_trouble(page, canned)
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate(FRAMES)  # the picture follows the window
        texts = page.evaluate(TEXTS)
        assert not {one["text"] for one in texts if one["size"] < SMALLEST_PX}
        fixed = [one for one in texts if not one["scrolls"]]
        covered = [
            (one["text"], other["text"])
            for place, one in enumerate(fixed)
            for other in fixed[:place]
            if abs(one["x"] + one["w"] / 2 - other["x"] - other["w"] / 2) < (one["w"] + other["w"]) / 2 - 1
            and abs(one["y"] + one["h"] / 2 - other["y"] - other["h"] / 2) < (one["h"] + other["h"]) / 2 - 3
        ]
        assert not covered, (width, height)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        over = [one["text"] for one in fixed if one["x"] + one["w"] > width or one["y"] + one["h"] > height]
        assert not over, (width, height)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_texts_and_marks_stand_out(page: Page, canned: CannedMap, theme: str) -> None:
    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    expect(page.locator("html")).to_have_attribute("data-theme", theme)
    show_trouble(page, canned)
    faint = {
        one["text"]: round(ratio(one["colour"], one["behind"]), 2)
        for one in page.evaluate(TEXTS)
        if not one["disabled"] and ratio(one["colour"], one["behind"]) < TEXT_RATIO
    }
    assert not faint
    names = {"bg", "card", *MARKS_ON_BACKGROUND, *MARKS_ON_CARDS}
    colours = page.evaluate(
        """names => {
            const style = getComputedStyle(document.documentElement);
            return Object.fromEntries(names.map(name => [name, style.getPropertyValue(`--${name}`).trim()]));
        }""",
        sorted(names),
    )
    for behind, marks in (("bg", MARKS_ON_BACKGROUND), ("card", MARKS_ON_CARDS)):
        weak = {mark: round(ratio(colours[mark], colours[behind]), 2) for mark in marks}
        assert not {mark: value for mark, value in weak.items() if value < MARK_RATIO}, behind


def test_what_is_broken_is_said_where_nothing_is_chosen(page: Page, canned: CannedMap) -> None:
    verdict = page.locator("#panel .verdict")
    expect(verdict).to_have_text("✓ Every part is up, and there is no fault")
    show_trouble(page, canned)
    expect(verdict).to_have_text("✗ Not up: 2 switches, 1 NIC port, 5 links (1 only impaired)")
    expect(page.locator("#panel .troubles li").first).to_have_text("downp7-t1-0and its 2 links")
    expect(page.locator('[data-part="plane 7"] .amiss')).to_have_text("✗ 4 not up")
    expect(page.locator('[data-part="plane 1"] .amiss')).to_have_text("")


def test_the_focus_stays_in_its_box_when_what_had_it_goes(page: Page, canned: CannedMap) -> None:
    show_trouble(page, canned)
    page.locator("#panel .faults .heal").nth(1).focus()
    canned.show(snapshots.broken(snapshots.DEMO, 3))
    expect(page.locator("#clock")).to_have_text("600 us")
    expect(page.locator("#panel .faults .heal").nth(1)).to_be_focused()
    canned.show(snapshots.busy(snapshots.DEMO, 4))
    expect(page.locator("#panel .faults li")).to_have_count(0)
    expect(page.locator("#panel-title")).to_be_focused()
    canned.show(snapshots.broken(snapshots.DEMO, 5))
    page.get_by_role("button", name="p7-t1-3", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.locator("#panel-title")).to_contain_text("T1 p7-t1-3")
    expect(page.locator("#panel-title")).to_be_focused()


def test_evs_are_walked_and_named_by_keys_and_stay_while_looks_arrive(page: Page, canned: CannedMap) -> None:
    show_trouble(page, canned)
    page.locator("#strip-qp").focus()
    page.keyboard.press("Tab")
    cell = page.locator(".cell:focus")
    expect(cell).to_have_attribute("aria-label", "EV 0x4000, path 0, good, in use")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowUp")
    expect(cell).to_have_attribute("aria-label", "EV 0x4020, path 0, good, in use")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#ev-sums")).to_have_text("plane 1, EV 0x4021, path 0, good, in use")
    canned.tell(messages.evs("h000", snapshots.QPS, ev_rows(snapshots.DEMO, [1])))
    expect(page.locator("#ev-sums")).to_have_text("plane 1, EV 0x4021, path 0, assumed bad, in use")
    expect(cell).to_have_attribute("aria-label", "EV 0x4021, path 0, assumed bad, in use")
    page.keyboard.press("End")
    expect(cell).to_have_attribute("aria-label", "EV 0x409f, path 3, good, reserve")
    canned.tell(messages.evs("h000", snapshots.QPS, [], "h000 does not answer"))
    expect(page.locator("#strip-nic")).to_be_focused()


def test_the_chart_is_read_by_keys(page: Page, canned: CannedMap) -> None:
    for number in range(2, 6):
        canned.show(snapshots.busy(snapshots.DEMO, number))
    expect(page.locator("#clock")).to_have_text("1,000 us")
    page.locator("#chart").focus()
    page.keyboard.press("Home")
    reading = page.locator("#reading")
    expect(reading).to_contain_text("200 us: planes ")
    said = reading.text_content()
    canned.show(snapshots.busy(snapshots.DEMO, 6))
    expect(page.locator("#clock")).to_have_text("1,200 us")
    assert reading.text_content() == said


def test_the_log_does_not_carry_off_who_reads_back(page: Page, canned: CannedMap) -> None:
    expect(page.locator("#no-events")).to_be_visible()
    canned.tell(messages.events(EVENTS, 0))
    lines, follow = page.locator("#event-lines"), page.locator("#event-follow")
    expect(lines.locator("li")).to_have_count(len(EVENTS))
    expect(page.locator("#no-events")).to_be_hidden()
    lines.evaluate("lines => { lines.scrollTop = 40; }")
    expect(follow).not_to_be_checked()
    canned.tell(messages.events([{**EVENTS[-1], "n": len(EVENTS) + 1}], 0))
    expect(lines.locator("li")).to_have_count(len(EVENTS) + 1)
    assert lines.evaluate("lines => lines.scrollTop") == 40
    lines.evaluate("lines => { lines.scrollTop = lines.scrollHeight; }")
    expect(follow).to_be_checked()


def test_with_less_motion_wanted_nothing_moves(page: Page) -> None:
    moving = page.evaluate(
        """[...document.querySelectorAll("*")].filter(one => {
            const style = getComputedStyle(one);
            return style.transitionDuration !== "0s" || style.animationName !== "none";
        }).length"""
    )
    assert moving == 0


@pytest.mark.long
def test_a_long_film_does_not_grow_the_page(page: Page, canned: CannedMap) -> None:
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")

    def measured() -> tuple[float, float]:
        session.send("HeapProfiler.collectGarbage")
        found = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
        return found["Nodes"], found["JSHeapUsedSize"]

    seen = snapshots.busy(snapshots.DEMO, 1)
    evs = messages.evs("h000", snapshots.QPS, ev_rows(snapshots.DEMO))

    def play(numbers: range) -> None:
        for number in numbers:
            faults = tuple(
                FaultView(f"f{number}-{more}", "link_down", "", ("p0-t0-0~p0-t1-0",), "", number * 1000, None, True)
                for more in range(4)
            )
            told = replace(seen, number=number, at_ns=snapshots.SPAN_NS * number, faults=faults)
            log = [{**EVENTS[0], "n": number * 40 + more} for more in range(40)]
            canned.tell(messages.snapshot(told), evs, messages.events(log, 0))
        expect(page.locator("#clock")).to_have_text(f"{snapshots.SPAN_NS * numbers[-1] // 1000:,} us", timeout=20_000)

    play(range(10, 70))  # as many events and faults as are kept, and more
    nodes, heap = measured()
    play(range(70, 130))
    nodes_later, heap_later = measured()
    assert nodes_later <= nodes * 1.02
    assert heap_later <= heap * 1.1
