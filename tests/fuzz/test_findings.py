"""Inputs that once broke something, each with what it broke."""

import pytest

from fuzz.targets import TARGETS
from nicd.verbs_codec import pack

FINDINGS = {
    "a completion that is no list": ("session", pack((0, "cqe", 7))),
    "an error report of one field": ("session", pack((0, "qp_error", [1]))),
    "an answer whose number is a list": ("session", pack(([1], None, None))),
}


@pytest.mark.parametrize("name", FINDINGS)
def test_what_once_broke_is_mended(name: str) -> None:
    target, data = FINDINGS[name]
    TARGETS[target].run(data)
