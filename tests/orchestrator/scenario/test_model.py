"""The shapes follow the catalogues, and hold nothing that the decoder cannot be trusted with."""

from collections.abc import Iterator
from typing import Annotated, Any, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from orchestrator.faults.kinds import KINDS, Target
from orchestrator.scenario.model import DRAWN, ENTRIES, KINDS_OF_WORK, WORKLOADS, ChaosEntry, ScenarioFile
from orchestrator.yamlfile.spelling import spelled


def keys(shape: type[Struct]) -> set[str]:
    return {row.encode_name for row in msgspec.structs.fields(shape)}


def test_every_kind_has_its_figures_as_keys() -> None:
    for shapes in (ENTRIES, DRAWN):
        assert list(shapes) == list(KINDS)
        for kind, row in KINDS.items():
            assert {spelled(figure) for figure in row.figures} <= keys(shapes[kind])
            assert ("direction" in keys(shapes[kind])) == (row.target is Target.LINK)
    assert list(WORKLOADS) == list(KINDS_OF_WORK)
    for name, program in KINDS_OF_WORK.items():
        assert {spelled(figure) for figure in program.figures} <= keys(WORKLOADS[name])


def test_no_figure_is_spelled_like_another_key() -> None:
    for kind, row in KINDS.items():
        names = [spelled(figure) for figure in row.figures]
        assert len(set(names)) == len(names)
        assert not set(names) & {"name", "at", "for", "every", "times", "fault", "selector", "mode", "value", "ramp"}, (
            kind
        )


def test_flaps_flap_and_numbers_ramp() -> None:
    assert {"period", "duty", "count", "jitter"} <= keys(ENTRIES["flap"])
    assert [kind for kind in KINDS if "ramp" in keys(ENTRIES[kind])] == [
        kind for kind, row in KINDS.items() if any("_" in figure for figure in row.figures)
    ]


def walk(shape: Any, listed: bool = False) -> Iterator[tuple[Any, bool]]:
    """Every type within a type, and whether it stands in a list."""
    yield shape, listed
    if isinstance(shape, type) and issubclass(shape, Struct):
        for row in msgspec.structs.fields(shape):
            yield from walk(row.type)
    for inner in get_args(shape):
        yield from walk(inner, listed or get_origin(shape) is list)


def test_no_list_of_texts_with_a_pattern() -> None:
    """Of those the decoder dies at the end of the process, now and then."""
    for shape in (ScenarioFile, ChaosEntry, *ENTRIES.values(), *DRAWN.values(), *WORKLOADS.values()):
        for part, listed in walk(shape):
            if listed and get_origin(part) is Annotated:
                assert not any(isinstance(meta, Meta) and meta.pattern for meta in part.__metadata__)
