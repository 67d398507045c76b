"""The page of a fabric of RC NICs: what there is instead of EVs."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.support import snapshots
from tests.support.canned_map import CannedMap
from tests.support.tab import shown

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def canned() -> Iterator[CannedMap]:
    with CannedMap(snapshots.ROCE) as canned:
        yield canned


@pytest.fixture
def page(tab: Page, canned: CannedMap) -> Iterator[Page]:
    canned.show(snapshots.paused())
    with shown(tab, canned.url) as page:
        yield page


def test_nothing_is_said_of_evs(page: Page) -> None:
    expect(page.locator("#bad-evs")).to_have_text("0 (0 %)")
    for place in ("#status", "#legend", "#strips", "#panel-body table"):
        expect(page.locator(place)).not_to_contain_text("EV")
    expect(page.locator("#system")).to_have_text("rc")


def test_a_nic_tells_of_its_qps(page: Page) -> None:
    page.locator('[data-part="h002"]').click()
    for row in ("QPs by state4 rts", "rate of a QP, mean and least25 Gb/s, 4 Gb/s", "paused, by plane70 %"):
        expect(page.locator("#panel .figures")).to_contain_text(row)
    expect(page.locator("#panel .figures")).not_to_contain_text("EV")
    expect(page.locator('[data-part="h002"] .paused-time')).not_to_have_attribute("height", "0")
    page.locator('[data-part="plane 0"]').focus()
    page.keyboard.press("Enter")
    expect(page.locator("#panel .figures")).to_contain_text("NIC ports that are paused2")


def test_the_qps_of_a_nic_stand_where_evs_do_elsewhere(page: Page) -> None:
    page.locator('[data-part="h001"]').click()
    expect(page.locator("#strips tbody tr")).to_have_count(3)
    expect(page.locator("#strips tbody tr").first).to_have_text("1h000rts04915212.5 Gb/s1")
    expect(page.locator("#ev-sums")).to_have_text("3 QPs of h001")
