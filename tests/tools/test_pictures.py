"""The drawings of the documents are those that the code draws, and are well-formed."""

from xml.etree import ElementTree

import pytest

from tools.pictures import DRAWINGS, FOLDER


@pytest.mark.parametrize("name", sorted(DRAWINGS))
def test_what_is_shown_is_what_is_drawn(name: str) -> None:
    text = DRAWINGS[name]()
    assert (FOLDER / name).read_text() == text, "python -m tools.pictures --write"
    root = ElementTree.fromstring(text)
    assert root.findtext("{http://www.w3.org/2000/svg}title")
