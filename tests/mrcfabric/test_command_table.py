"""Untrusted names and arguments become command objects or one line of refusal."""

from dataclasses import dataclass
from typing import Any

import pytest

from mrcfabric.command_table import CommandTable, op_name
from mrcfabric.errors import ConfigError, RefusedError
from mrcfabric.impairment import Impairment
from nicd.core.commands import CreateQp, ModifyQp, RegisterMemory, SetCarrier, SetImpairment
from nicd.core.commands_paths import ModifyEvProfile


@dataclass
class Take:
    """A command with plain data."""

    token: int
    table: dict[str, Any]


PROFILE = CommandTable([ModifyEvProfile])
TABLE = CommandTable([CreateQp, ModifyQp, RegisterMemory, SetCarrier, SetImpairment, Take])


def test_names() -> None:
    assert op_name(SetImpairment) == "set_impairment"
    assert TABLE.names == ["create_qp", "modify_qp", "register_memory", "set_carrier", "set_impairment", "take"]


@pytest.mark.parametrize(
    ("op", "args", "command"),
    [
        ("create_qp", {}, CreateQp(5)),
        ("create_qp", {"qpn": None}, CreateQp(5)),
        ("create_qp", {"qpn": 17}, CreateQp(5, 17)),
        ("create_qp", {"mpr": 8, "trim_nack": False}, CreateQp(5, mpr=8, trim_nack=False)),
        ("modify_qp", {"qpn": 17, "state": "rts"}, ModifyQp(5, 17, "rts")),
        ("set_carrier", {"port": 2, "up": False}, SetCarrier(5, 2, False)),
        ("register_memory", {"va": 1, "length": 2}, RegisterMemory(5, 1, 2)),
        ("take", {"table": {"a": [1, -2, "x", None, True, [0]]}}, Take(5, {"a": [1, -2, "x", None, True, [0]]})),
        ("set_impairment", {"port": 1, "impairment": {"up": False}}, SetImpairment(5, 1, Impairment(up=False))),
    ],
)
def test_commands(op: str, args: dict[str, Any], command: Any) -> None:
    assert TABLE.build(op, args, 5) == command


@pytest.mark.parametrize(
    ("op", "args", "text"),
    [
        ("create_pq", {}, "no command is called create_pq .nearest is create_qp"),
        ("\n", {}, "no command is called '.n'"),
        ("set_carrier", {"port": 2}, "set_carrier needs up"),
        ("set_carrier", {"port": 2, "up": 1}, "set_carrier.up: 1 will not do .wanted: bool"),
        ("set_carrier", {"port": True, "up": True}, "set_carrier.port: True will not do .wanted: int"),
        ("create_qp", {"mpr": True}, "create_qp.mpr: True will not do"),
        ("create_qp", {"trim_nack": 1}, "create_qp.trim_nack: 1 will not do"),
        ("set_carrier", {"port": -1, "up": True}, "out of range"),
        ("set_carrier", {"port": 1 << 64, "up": True}, "out of range"),
        ("set_carrier", {"port": 1, "up": True, "prot": 1}, "no argument prot .nearest is port"),
        ("set_carrier", {"port": 1, "up": True, "token": 1}, "no argument token"),
        ("register_memory", {"va": 1, "length": 2, "memory": b""}, "no argument memory"),
        ("modify_qp", {"qpn": 1, "state": "x" * 1000}, "longer than"),
        ("set_impairment", {"port": 1, "impairment": 3}, "is no table of faults"),
        ("take", {"table": [1]}, "is no table"),
        ("take", {"table": {"a": 1.5}}, "neither a whole number nor a text"),
        ("take", {"table": {"a": 1 << 64}}, "neither a whole number nor a text"),
        ("take", {"table": {"a": [b"x"]}}, "neither a whole number nor a text"),
        ("take", {"table": {"a": ["x" * 1000]}}, "longer than"),
        ("take", {"table": {"a": {4: 1}}}, "a key that is no text"),
        ("take", {"table": {"a": {"b": [[[]]]}}}, "4 deep"),
        ("take", {"table": {"a": [1] * 17000}}, "16384 values"),
    ],
)
def test_refusals(op: str, args: dict[str, Any], text: str) -> None:
    with pytest.raises(RefusedError, match=text):
        TABLE.build(op, args, 5)


def test_an_unknown_fault() -> None:
    with pytest.raises(ConfigError, match="no such fault"):
        TABLE.build("set_impairment", {"port": 1, "impairment": {"los_ppm": 3}}, 5)


def test_lists_of_texts() -> None:
    command = PROFILE.build("modify_ev_profile", {"profile": 1, "evs": ["0x1", "0x2"]}, 5)
    assert command == ModifyEvProfile(5, 1, evs=["0x1", "0x2"])
    assert PROFILE.build("modify_ev_profile", {"profile": 1, "evs": None}, 5) == ModifyEvProfile(5, 1)
    for wrong, text in (("0x1", "a list of texts"), ([1], "a list of texts"), (["x" * 2000], "too long")):
        with pytest.raises(RefusedError, match=text):
            PROFILE.build("modify_ev_profile", {"profile": 1, "evs": wrong}, 5)


def test_arguments_of_a_command() -> None:
    assert TABLE.arguments("set_carrier") == {"port": (int, True), "up": (bool, True)}
