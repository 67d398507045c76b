"""Reads a page as a browser would: every element closed in order, and the text of it all."""

from html.parser import HTMLParser

VOID = {"meta", "br", "link", "img", "input"}


class Nesting(HTMLParser):
    """Checks that every element is closed in order; collects the text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def parsed(page: str) -> Nesting:
    """A whole page."""
    nesting = Nesting()
    nesting.feed(page)
    nesting.close()
    return nesting
