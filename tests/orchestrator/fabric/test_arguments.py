"""What a script gives to a fabric: values that will do come back, all others are named in one line."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.units import NEVER
from nicd.programs.program import Program
from orchestrator.fabric import Fabric, arguments
from tests.orchestrator.running import SMALL


@pytest.mark.parametrize(
    ("read", "value", "result"),
    [
        (arguments.instant, 0, 0),
        (arguments.instant, NEVER - 1, NEVER - 1),
        (arguments.wall_s, 2, 2),
        (arguments.wall_s, float("inf"), float("inf")),
        (arguments.text, "", ""),
        (arguments.table, None, {}),
        (arguments.table, {"steps": 2}, {"steps": 2}),
        (arguments.folder, None, None),
        (arguments.folder, "out/x", Path("out/x")),
        (arguments.texts, "h000", ["h000"]),
        (arguments.plain, {"a": [1, None, 2.5, True, ("x", {})]}, {"a": [1, None, 2.5, True, ["x", {}]]}),
        (arguments.texts, ("h000", "h001"), ["h000", "h001"]),
    ],
)
def test_what_will_do_comes_back(read: Callable[[str, Any], Any], value: Any, result: Any) -> None:
    assert read("it", value) == result


@pytest.mark.parametrize(
    ("read", "value"),
    [
        *((arguments.instant, value) for value in (1.5, 5e5, True, "5us", None, -1, NEVER, float("nan"))),
        *((arguments.wall_s, value) for value in ("5", True, None, -1, float("nan"))),
        *((arguments.text, value) for value in (None, 3, b"h000", "a\udcff")),
        *((arguments.plain, value) for value in (b"a", object(), {3: 4}, {b"a": 1}, ["\ud800"], [[{1}]])),
        *((arguments.table, value) for value in (3, "steps", [("steps", 2)], {3: 4})),
        *((arguments.folder, value) for value in (3, b"out", ["out"])),
        *((arguments.texts, value) for value in (None, 3, b"h000", [3], ["h000", None])),
    ],
)
def test_anything_else_is_named(read: Callable[[str, Any], Any], value: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        read("it", value)
    assert str(caught.value).startswith("it: ")


def test_a_value_within_tables_is_named_by_its_way() -> None:
    with pytest.raises(ConfigError, match=r"^args\.a\.b: "):
        arguments.plain("args", {"a": [{"b": {1}}]})


def test_an_instant_may_have_a_least() -> None:
    with pytest.raises(ConfigError, match="at least 1"):
        arguments.instant("over_ns", 0, least=1)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"topology": "small.yaml"}, "topology: 'small.yaml' is none"),
        ({"pack": "box"}, "pack: 'box' is no such packing"),
        ({"system": 3}, "system: 3 is no text"),
        ({"limit_ns": 1e3}, "limit_ns: 1000.0 will not do"),
        ({"limit_ns": -1}, "limit_ns: -1 will not do"),
        ({"trace": object()}, "trace: <object object at"),
        ({"trace": 1}, "trace: 1 will not do"),
        ({"port_base": "40000"}, "port_base: '40000' is no port"),
        ({"cluster": "hosts.yaml"}, "cluster: 'hosts.yaml' is none"),
        ({"http_host": 3}, "http_host: 3 is no text"),
    ],
)
async def test_a_launch_of_something_else_starts_nothing(tmp_path: Path, wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        async with Fabric.launch(**({"topology": SMALL, "run_dir": str(tmp_path / "run")} | wrong)):
            raise AssertionError("it was launched")
    assert str(caught.value).startswith(said)
    assert os.listdir(tmp_path) == []


PROGRAM: Any = Program("w", "p2p", 0, (0, 1), 0, "seed")


@pytest.mark.parametrize(
    "value",
    [
        None,
        3,
        {"name": "w"},
        replace(PROGRAM, name=3),
        replace(PROGRAM, ranks=None),
        replace(PROGRAM, ranks=((0,), (1,))),
        replace(PROGRAM, ranks=([0], [1])),
        replace(PROGRAM, figures=5),
        replace(PROGRAM, figures={"messages": object()}),
    ],
)
def test_what_is_no_program_is_named(value: Any) -> None:
    with pytest.raises(ConfigError, match=r"^program"):
        arguments.program("program", value)
    with pytest.raises(ConfigError, match=r"^program"):
        arguments.nics(SMALL, value)


def test_the_nics_of_a_program_are_those_that_there_are() -> None:
    assert arguments.program("program", PROGRAM) == PROGRAM
    assert arguments.nics(SMALL, replace(PROGRAM, ranks=(1, 7))) == ["h001"]


@pytest.mark.integration
async def test_no_nic_is_given_what_is_no_program(served: Fabric) -> None:
    odd: tuple[Any, ...] = (None, 3, {"name": "w"})
    async with Fabric.attach(run_dir=served.folder.path) as attached:
        for value in odd:
            asked = [one.load(value, at_ns) for one in (served, attached) for at_ns in (None, 10**9)]
            for one in (*asked, served.stop_work(value), attached.stop_work(value), attached.claim(value)):
                with pytest.raises(ConfigError, match=r"^program: "):
                    await one


@pytest.mark.integration
async def test_what_no_daemon_can_be_asked_is_named_at_once(fabric: Fabric) -> None:
    odd: tuple[Any, ...] = (None, 3, b"h000", "\udcff", ["h000"], object())
    for value in odd:
        for asked in (fabric.call(value, "status"), fabric.call("h000", value), fabric.metrics(value)):
            with pytest.raises(ConfigError, match="is no text"):
                await asked
        with pytest.raises(ConfigError, match="args"):
            await fabric.call("h000", "ev_table", {"qpn": value} if value in (b"h000", "\udcff") else {3: value})
        with pytest.raises(ConfigError, match="seed: "):
            await fabric.start("p2p", seed=b"x" if value is None else value)
