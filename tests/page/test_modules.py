"""The page's modules that only reckon, in the browser: the tests themselves stand beside this in `modules/`."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, Route

from tests.support.canned_map import STATIC

SUITES = Path(__file__).parent / "modules"
ADDRESS = "http://page.test"

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def served(tab: Page) -> Page:
    tab.route(f"{ADDRESS}/**", _serve)
    return tab


@pytest.fixture
def page(served: Page) -> Page:
    """With nothing in it of the suite before."""
    served.goto(f"{ADDRESS}/")
    return served


def _serve(route: Route) -> None:
    place = route.request.url.removeprefix(ADDRESS)
    path = STATIC / place.removeprefix("/static/") if place.startswith("/static/") else SUITES / place.lstrip("/")
    if path.is_file():
        route.fulfill(body=path.read_text(), content_type="text/javascript")
    else:
        route.fulfill(body="<!doctype html>", content_type="text/html")


@pytest.mark.parametrize("suite", sorted(path.stem for path in SUITES.glob("test_*.js")))
def test_module(page: Page, suite: str) -> None:
    found = page.evaluate(
        """async suite => {
            const { tests } = await import("/suite.js");
            await import(`/${suite}.js`);
            return tests.map(({ name, body }) => {
                try { body(); return [name, ""]; } catch (error) { return [name, error.stack]; }
            });
        }""",
        suite,
    )
    assert found
    assert not [f"{name}: {why}" for name, why in found if why]
