"""The kinds of programs: all of them run, and a mistake is named before anything begins."""

import dataclasses
from typing import Any

import pytest

from mrcfabric.errors import ConfigError
from nicd.programs.catalogue import PROGRAMS, check, part_of
from tests.support.hosted import program

GIVEN: dict[str, dict[str, Any]] = {"trace": {"messages": [[0, 1, 9, 0], [1, 0, 5, 7]]}}
"""Figures that a kind cannot do without."""


@pytest.mark.parametrize("kind", PROGRAMS)
def test_peers_and_memory_agree_at_all_ranks(kind: str) -> None:
    row = PROGRAMS[kind]
    for ranks in (row.ranks_least, 6, 16):
        work = program(kind, ranks, GIVEN.get(kind))
        check(work)
        parts = [part_of(work, number) for number in range(ranks)]
        assert len({(part.inbound_bytes, part.noise) for part in parts}) == 1
        for number, part in enumerate(parts):
            assert list(part.peers) == sorted(set(part.peers) - {number})
            assert all(number in parts[peer].peers for peer in part.peers)


def test_a_name_is_one_line() -> None:
    with pytest.raises(ConfigError, match=r"program.name: 'two\\nlines' will not do"):
        check(dataclasses.replace(program("p2p", 2, None), name="two\nlines"))


@pytest.mark.parametrize("kind", PROGRAMS)
def test_every_figure_is_explained_and_its_default_will_do(kind: str) -> None:
    row = PROGRAMS[kind]
    assert row.meaning.endswith(".")
    for name, figure in row.figures.items():
        assert figure.meaning.endswith("."), name
        if name not in row.required:
            figure.check(name, figure.default)


@pytest.mark.parametrize(
    ("kind", "ranks", "figures", "text"),
    [
        ("p2q", 2, {}, "program work.kind.*p2q"),
        ("p2p", 3, {}, "program work.ranks.*pairs"),
        ("training", 2, {"steps": 0}, "program work.steps.*out of range"),
        ("broadcast", 4, {"root": 4}, "program work.root.*no rank 4"),
        ("trace", 2, {"messages": [[0, 2, 9, 0]]}, r"program work.messages\[0\].*to rank 2"),
        ("trace", 2, {"messages": [[1, 1, 9, 0]]}, "from rank 1 to rank 1"),
        ("training", 1, {}, "program work.ranks"),
    ],
)
def test_mistakes_are_named(kind: str, ranks: int, figures: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        check(program(kind, ranks, figures))
