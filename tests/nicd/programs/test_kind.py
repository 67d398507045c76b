"""Figures of kinds: what is checked, and how a mistake is named."""

from typing import Any

import pytest

from mrcfabric.errors import ConfigError
from nicd.programs.kind import Figure, Kind, Part, TraceFigure


def no_part(*_: Any) -> Part:
    raise NotImplementedError


KIND = Kind(
    "A kind.",
    {
        "size_bytes": Figure(64, "Size.", 4, 1024, 4),
        "loud": Figure(False, "Whether."),
        "how": Figure("well", "How.", choices=("well", "badly")),
        "for_ns": Figure(None, "Perhaps."),
        "messages": TraceFigure("What."),
    },
    no_part,
    ranks_least=2,
    ranks_most=8,
    even=True,
    required=frozenset({"messages"}),
)
TRACE = [[0, 1, 10, 0]]


def test_defaults_are_filled_in() -> None:
    assert KIND.checked("w", {"messages": TRACE, "loud": True}, 4) == {
        "size_bytes": 64, "loud": True, "how": "well", "for_ns": None, "messages": TRACE,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("figures", "ranks", "text"),
    [
        ({"size": 4}, 4, "w.size.*no figure of this kind"),
        ({}, 4, "w.messages.*is missing"),
        ({"size_bytes": 6}, 4, "not a multiple of 4"),
        ({"size_bytes": 2048}, 4, "out of range"),
        ({"size_bytes": True}, 4, "not a whole number"),
        ({"size_bytes": None}, 4, "not a whole number"),
        ({"loud": 1}, 4, "neither true nor false"),
        ({"how": "so"}, 4, "not known"),
        ({"messages": []}, 4, "no list of messages"),
        ({"messages": [[0, 1, 10]]}, 4, r"messages\[0\]"),
        ({"messages": [[0, 1, 10, True]]}, 4, r"messages\[0\]"),
        ({"messages": [[0, 1, 0, 0]]}, 4, "a message of 0 bytes"),
        ({"messages": TRACE}, 3, "pairs"),
        ({"messages": TRACE}, 10, "ranks: 10 will not do"),
    ],
)
def test_mistakes_are_named(figures: dict[str, Any], ranks: int, text: str) -> None:
    given = figures if "messages" in figures or "is missing" in text else {"messages": TRACE, **figures}
    with pytest.raises(ConfigError, match=text):
        KIND.checked("w", given, ranks)
