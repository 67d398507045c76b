"""The sums of UET NICs in words."""

from dataclasses import asdict

from orchestrator.cli.uet_text import uet_text
from orchestrator.live.snapshot import UetView


def test_what_is_not_so_is_not_said() -> None:
    assert uet_text(asdict(UetView(12, 11, 1_536, 0, 0, 0, 0))) == (
        "12 contexts open, 11 at their targets; 1,536 entropies choose paths"
    )


def test_what_is_so_is() -> None:
    assert uet_text(asdict(UetView(1, 2, 30, 4, 5, 6, 7))).endswith(
        "paths: 4 sitting out turns, 5 kept for once more, 6 frozen choices, 7 planes left"
    )
