"""The page as a reader uses it, over a server that tells made-up snapshots; a real fabric's page: `test_live_map`."""

import re
from dataclasses import replace

import pytest
from playwright.sync_api import Browser, Page, expect

from orchestrator.report import frame
from orchestrator.web import messages
from tests.support import snapshots
from tests.support.canned_map import EVENTS, STATIC, TOKEN, CannedMap, ev_rows
from tests.support.live_map import click_cable
from tests.support.tab import shown
from tests.support.wait import eventually_blocking

pytestmark = pytest.mark.integration

LINK = "p0-t0-0~p0-t1-0"


def part(page: Page, name: str) -> str:
    return page.locator(f'[data-part="{name}"]').get_attribute("data-state") or ""


def test_it_shows_the_fabric_and_asks_nobody_else(page: Page, canned: CannedMap) -> None:
    topology = snapshots.DEMO
    expect(page.locator("#name")).to_have_text("demo")
    expect(page.locator("#valid")).to_have_text("✓ faithful")
    expect(page.locator("#goodput")).to_have_text(re.compile(r"^\d.* Tb/s$"))
    parts = topology.link_count + topology.switches + topology.nics * (topology.planes + 1) + topology.planes
    assert page.locator("#map [data-part]").count() == parts
    loaded = page.evaluate("performance.getEntriesByType('resource').map(one => new URL(one.name).origin)")
    assert set(loaded) == {page.evaluate("location.origin")}
    assert TOKEN not in page.url


def test_it_says_which_nodes_it_shows_as_they_were(page: Page, canned: CannedMap) -> None:
    canned.show(replace(snapshots.busy(snapshots.DEMO, 2), late=("h001", "p0-t0-0")))
    expect(page.locator("#valid")).to_have_text("✓ faithful, 2 late")
    expect(page.locator("#valid")).to_have_attribute("title", re.compile("up to 2 s ago.*: h001 p0-t0-0$"))
    canned.show(snapshots.busy(snapshots.DEMO, 3))
    expect(page.locator("#valid")).to_have_text("✓ faithful")


def test_a_click_on_a_link_shows_it_and_buttons_break_and_heal_it(page: Page, canned: CannedMap) -> None:
    click_cable(page, LINK)
    expect(page.locator("#panel-title")).to_contain_text(LINK)
    expect(page.locator("#panel .heal").first).to_be_disabled()
    page.locator("#panel .fail").click()
    expect(page.locator("#said")).to_have_text(f"link_down on {LINK} is f1")
    assert canned.asked[-1] == ("POST", "/api/faults", {"kind": "link_down", "targets": [LINK], "figures": {}})
    canned.show(snapshots.broken(snapshots.DEMO, 2))
    expect(page.locator(f'[data-part="{LINK}"]')).to_have_attribute("data-state", "down")
    expect(page.locator("#panel-title .state")).to_have_text("down")
    page.locator("#panel form .heal").click()
    expect(page.locator("#said")).to_have_text("healed: f1")
    assert canned.asked[-1][:2] == ("DELETE", "/api/faults?target=p0-t0-0~p0-t1-0")


def test_the_kind_the_direction_and_the_length_can_be_chosen(page: Page, canned: CannedMap) -> None:
    click_cable(page, LINK)
    page.get_by_label("Kind of fault").select_option("loss")
    page.get_by_label("Direction").select_option("down")
    page.locator("#panel [name=for]").fill("300")
    page.locator("#panel [name=share_ppm]").fill("2000")
    page.locator("#panel .fail").click()
    expect(page.locator("#said")).to_contain_text("is f1")
    body = {"kind": "loss", "targets": ["p0-t1-0>p0-t0-0"], "figures": {"share_ppm": 2000}, "for_ns": 300_000}
    assert canned.asked[-1] == ("POST", "/api/faults", body)


def test_the_keyboard_alone_is_enough(page: Page, canned: CannedMap) -> None:
    page.keyboard.press("m")
    page.keyboard.press("ArrowDown")
    expect(page.locator(":focus")).to_have_attribute("data-part", re.compile("^p0-t1-"))
    page.keyboard.press("ArrowDown")
    link = page.locator(":focus").get_attribute("data-part") or ""
    assert "~" in link
    expect(page.locator(":focus")).to_have_attribute("aria-label", re.compile(r"^link .*, up, up \d+ %, down \d+ %$"))
    page.keyboard.press("Enter")
    expect(page.locator("#panel-title")).to_contain_text(link)
    page.keyboard.press("f")
    expect(page.locator("#said")).to_have_text(f"link_down on {link} is f1")
    page.keyboard.press("h")
    expect(page.locator("#said")).to_have_text("healed: f1")
    page.keyboard.press("Escape")
    expect(page.locator("#panel-title")).to_have_text("Nothing chosen: the whole fabric")
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#help")).not_to_be_visible()


def test_parts_tell_their_state_by_word_and_letter(page: Page, canned: CannedMap) -> None:
    canned.show(snapshots.broken(snapshots.DEMO, 2))
    frozen = page.locator('[data-part="p7-t1-3"]')
    expect(frozen).to_have_attribute("data-state", "frozen")
    expect(frozen.locator(".letter")).to_have_text("F")
    expect(frozen).to_have_attribute("aria-label", "T1 p7-t1-3, frozen")
    assert (part(page, "p7-t1-0"), part(page, "h001:7"), part(page, "plane 7")) == ("down", "down", "impaired")
    assert (part(page, "h000~p0-t0-0"), part(page, "h002:7")) == ("impaired", "up")
    expect(page.locator("#fault-count")).to_have_text("6")


def test_strips_show_the_evs_of_a_qp(page: Page, canned: CannedMap) -> None:
    eventually_blocking(lambda: ("watch", "", [{"nic": "h000", "qpn": 4}]) in canned.asked, 10)
    rows = page.locator(".ev-row")
    canned.tell(messages.evs("h000", 4, ev_rows(snapshots.DEMO)))
    expect(rows).to_have_count(8)
    assert page.locator(".ev-row .cell").count() == 160
    expect(rows.nth(7)).to_have_attribute("data-assumed_bad", "0")
    canned.tell(messages.evs("h000", 4, ev_rows(snapshots.DEMO, [7])))
    expect(rows.nth(7)).to_have_attribute("data-assumed_bad", "20")
    expect(rows.nth(7)).to_have_attribute("aria-label", "plane 7: 0 good, 0 skip, 20 assumed bad, 0 denied")
    page.locator("#strip-qp").select_option("3")
    eventually_blocking(lambda: canned.asked[-1] == ("watch", "", [{"nic": "h000", "qpn": 3}]), 10)


def test_a_busy_server_is_told_of(page: Page, canned: CannedMap) -> None:
    expect(page.locator("#pace")).to_be_hidden()
    canned.tell(messages.snapshot(snapshots.busy(snapshots.DEMO, 2), 1.5))
    expect(page.locator("#pace")).to_be_visible()
    expect(page.locator("#looks")).to_have_text("1.50 of 4")
    canned.tell(messages.snapshot(snapshots.busy(snapshots.DEMO, 3), 3.9))
    expect(page.locator("#pace")).to_be_hidden()


def test_the_log_tells_reasons_and_sections(page: Page, canned: CannedMap) -> None:
    canned.tell(messages.snapshot(snapshots.busy(snapshots.DEMO, 2)), messages.events(EVENTS, 0))
    expect(page.locator("#event-lines li")).to_have_count(len(EVENTS))
    expect(page.locator("#event-lines li").first).to_contain_text("good → assumed bad: no acknowledgement in time")
    expect(page.locator("#event-lines li .section").first).to_have_text("MRC 1.0 7.4.2")
    page.locator('[data-part="h001"]').click()
    page.locator("#event-filter").select_option("part")
    expect(page.locator("#event-lines li")).to_have_count(0)
    page.locator('[data-part="h000"]').click()
    expect(page.locator("#event-lines li")).to_have_count(len(EVENTS))


def test_faults_are_listed_each_with_its_remedy(page: Page, canned: CannedMap) -> None:
    canned.show(snapshots.broken(snapshots.DEMO, 2))
    page.keyboard.press("b")
    line = page.locator('#fault-list [data-fault="f4"]')
    expect(line).to_contain_text("switch_freeze: p7-t1-3")
    line.get_by_role("button").click()
    expect(page.locator("#said")).to_have_text("healed: f1")
    assert canned.asked[-1][:2] == ("DELETE", "/api/faults/f4")
    canned.show(snapshots.busy(snapshots.DEMO, 5))
    expect(line).to_contain_text("over at")


def test_a_scenario_is_run_and_watched(page: Page, canned: CannedMap) -> None:
    page.keyboard.press("r")
    page.locator("#run-scenario").select_option("big.yaml")
    expect(page.locator("#run-start")).to_be_disabled()
    page.locator("#run-scenario").select_option("cut.yaml")
    page.locator("#run-seed").fill("7")
    page.locator("#run-start").click()
    expect(page.locator("#said")).to_have_text("A cable is cut is being run")
    assert canned.asked[-1] == ("POST", "/api/runs", {"scenario": "cut.yaml", "seed": "7"})
    run = {"number": 1, "scenario": "cut.yaml", "name": "A cable is cut", "exit_code": None, "verdict": None}
    going = {**run, "phase": "running", "error": "", "report": None}
    canned.tell(messages.run(going, [{"event": "step", "at_ns": 5000, "program": "train", "finished": 2}], 0))
    expect(page.locator("#run-lines li")).to_have_text(["5 us  train: step 2 finished"])
    expect(page.locator("#run-start")).to_be_disabled()
    page.locator("#run-stop").click()
    eventually_blocking(lambda: canned.asked[-1][:2] == ("DELETE", "/api/runs"), 10)
    over = {**going, "phase": "ended", "verdict": "pass", "exit_code": 0, "report": "report.html"}
    canned.tell(messages.run(over, [], 0))
    expect(page.locator("#run-state")).to_have_text("A cable is cut: pass report")
    expect(page.locator("#run-start")).to_be_enabled()


def test_a_server_that_goes_away_is_said_and_waited_for(browser: Browser) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    with CannedMap(snapshots.SMALL) as first:
        first.show(snapshots.busy(snapshots.SMALL, 1))
        page.goto(first.url)
        expect(page.locator("#link-state")).to_have_text("live")
    expect(page.locator("#link-state")).to_have_text("lost")
    expect(page.locator("#notice")).to_contain_text("The server does not answer")
    with CannedMap(snapshots.SMALL, first.port) as second:
        second.show(snapshots.broken(snapshots.SMALL, 2))
        expect(page.locator("#link-state")).to_have_text("live", timeout=10_000)
        expect(page.locator("#notice")).to_be_hidden()
        expect(page.locator("#fault-count")).not_to_have_text("0")
        page.close()


def test_trouble_of_the_server_is_shown_until_it_is_over(page: Page, canned: CannedMap) -> None:
    canned.tell(messages.error("the agent is gone"))
    expect(page.locator("#notice")).to_have_text("The fabric does not answer: the agent is gone")
    canned.show(snapshots.busy(snapshots.DEMO, 2))
    expect(page.locator("#notice")).to_be_hidden()


def test_without_the_token_there_is_only_looking(browser: Browser, canned: CannedMap) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(canned.url.split("#")[0])
    expect(page.locator("#link-state")).to_have_text("live")
    page.locator('[data-part="h000"]').click()
    expect(page.locator("#panel .fail")).to_be_disabled()
    expect(page.locator("#panel")).to_contain_text("Only to look at")
    page.close()


def test_a_token_that_is_refused_is_said(browser: Browser, canned: CannedMap) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(canned.url + "x")
    page.locator('[data-part="h000"]').click()
    page.locator("#panel .fail").click()
    expect(page.locator("#said")).to_have_text("the token is missing or another one")
    page.close()


def test_light_and_dark_follow_the_system_until_one_is_chosen(page: Page) -> None:
    root = page.locator("html")
    expect(root).to_have_attribute("data-theme", "light")
    page.emulate_media(color_scheme="dark")
    expect(root).to_have_attribute("data-theme", "dark")
    page.keyboard.press("t")
    expect(root).to_have_attribute("data-theme", "light")
    page.reload()
    expect(root).to_have_attribute("data-theme", "light")
    expect(page.locator("#link-state")).to_have_text("live")


@pytest.mark.parametrize(
    ("topology", "condition"),
    [(snapshots.SMALL, "quiet"), (snapshots.SMALL, "all_broken"), (snapshots.LARGE, "broken")],
    ids=["nothing goes on", "all is broken", "300 nodes"],
)
def test_any_fabric_in_any_condition_is_drawn(tab: Page, topology: snapshots.Topology, condition: str) -> None:
    with CannedMap(topology) as canned:
        canned.show(getattr(snapshots, condition)(topology, 1))
        with shown(tab, canned.url) as page:
            expect(page.locator("#clock")).not_to_have_text("-", timeout=20_000)
            painted = page.evaluate(
                """() => {
                    const canvas = document.querySelector("#map canvas");
                    const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
                    return data.some(byte => byte > 0);
                }"""
            )
            assert painted
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_colours_are_those_of_the_reports() -> None:
    light, dark = (STATIC / "style.css").read_text().split(':root[data-theme="dark"]')
    reports = frame._STYLE.split("@media")
    for own, theirs in ((light, reports[0]), (dark, reports[1])):
        wanted = dict(re.findall(r"--(good|skip|bad|denied|c\d|pass|fail|invalid):(#\w+)", theirs))
        found = dict(re.findall(r"--(\w+): (#\w+);", own))
        assert wanted
        assert {name: found[name] for name in wanted} == wanted
