"""Operators who ask for anything at any time, and mean nothing by it: `nic-commands`, `switch-commands`.

The bytes choose commands by name and their arguments, as the control channel lets them through. Each must be carried
out or refused in one line, answered exactly once, and the result must not depend on how time is cut.
"""

import dataclasses
from collections.abc import Callable
from functools import cache
from typing import Any

from fuzz.script import Script
from fuzz.stage import PIECE, SOURCE_VA, TARGET_VA, TOPOLOGY, VICTIM, commands_of, config_of_switch
from mrcfabric.command_table import CommandTable
from mrcfabric.errors import ConfigError, RefusedError
from mrcfabric.impairment import Impairment
from mrcfabric.node import Input, Node, Rank
from mrcfabric.rng import Rng
from nicd.compose import nic_config
from nicd.core.events import CommandDone as NicDone
from nicd.core.settings import NicConfig
from nicd.daemon import NicDaemon
from nicd.programs.catalogue import PROGRAMS
from nicd.programs.hosted_nic import HostedNic
from nicd.programs.program import Program
from switchd.core.events import CommandDone as SwitchDone
from switchd.core.switch import Switch
from switchd.daemon import SwitchDaemon

COMMANDS_MAX = 24
_SPARED = 250
"""Of 256 arguments that must be given so many are."""
LINE_CHARS_MAX = 2_000
_STEP_NS = 5_000
_CUTS = 8
_NUMBERS = (
    0, 1, 2, 3, 7, 8, 10, 14, 20, 21, 30, 64, 127, 128, 255, 256, 900, 4_096, 20_000, 0xFFFF, 0x1_0000, 0xFFFFF0,
    0xFFFFFF, 0x100_0000, 0xFFFF_FFFF, 0x1_0000_0000, (1 << 64) - 1,
)  # fmt: skip
_TEXTS = (
    "rts", "error", "rtr", "init", "offline", "online", "auto", "explicit", "generated", "ecmp", "stev", "srv6",
    "srv6_srh", "16", "32,16,16", "16:0:0xff", "1,2/32:0:0xf", "0x10", "0x10@1", "::1@2", "fcbb:bb00::@1",
    "32:0xfcbbbb00 16:0x1000:0x7:1:5 16:0 16:0 48:0", "", "x" * 200, "1:2:3:4:5:6:7", "-1", "0/0",
)  # fmt: skip


@cache
def _evs() -> tuple[int, ...]:
    """EVs of the QPs that the NIC has."""
    node = HostedNic(_config())
    _run(node, [(at_ns, command) for at_ns, command in commands_of(VICTIM) if at_ns < 10], [10])
    return tuple(int(row["ev"]) for row in (*node.ev_table(20), *node.ev_table(30)))


@cache
def _config() -> NicConfig:
    """The victim of the stage, with bounds that a command can reach."""
    small = {"region_bytes_max": 1 << 20, "regions_max": 8, "qps_max": 6, "events_max": 4_096, "deny_entries_max": 8}
    return nic_config(dataclasses.replace(TOPOLOGY, nic={**TOPOLOGY.nic, **small}), VICTIM)


def nic(data: bytes) -> None:
    """One NIC with two QPs and work to do, and nobody at the other end."""
    table = NicDaemon.commands
    plan = _plan(Script(data), table)
    own = [(at_ns, command) for at_ns, command in commands_of(VICTIM) if at_ns < 10]
    _play(lambda: HostedNic(_config()), lambda: [*own_again(own), *plan], NicDone, len(data), data)


def own_again(own: list[tuple[int, Any]]) -> list[tuple[int, Any]]:
    """The same commands with memory of their own."""
    return [(at_ns, dataclasses.replace(command, memory=memoryview(bytearray(command.memory))))
            if getattr(command, "memory", None) is not None else (at_ns, command)
            for at_ns, command in own]  # fmt: skip


def switch(data: bytes) -> None:
    """One switch without traffic."""
    table = SwitchDaemon.commands
    plan = _plan(Script(data), table)
    _play(lambda: Switch(config_of_switch("p0-t0-0")), lambda: plan, SwitchDone, len(data), data)


def seeds() -> list[bytes]:
    """Every command once with small numbers, and some drawn at random."""
    rng = Rng("command seeds")
    simple = [bytes([1, number, *[3] * 12]) for number in range(len(NicDaemon.commands.names))]
    return [b"", *simple, *(bytes(rng.below(256) for _ in range(size)) for size in (16, 64, 128, 256, 400))]


def _plan(script: Script, table: CommandTable) -> list[tuple[int, Any]]:
    """(instant, command) in order; what the control channel refuses is left out."""
    found: list[tuple[int, Any]] = []
    at_ns = 100
    while script.left and len(found) < COMMANDS_MAX:
        at_ns += script.number() * _STEP_NS // 64
        op = script.one_of(table.names)
        args = {
            name: _value(script, name, hint)
            for name, (hint, required) in table.arguments(op).items()
            if (script.number() < _SPARED if required else not script.number() & 3)
        }
        try:
            found.append((at_ns, table.build(op, args, len(found) + 1)))
        except (RefusedError, ConfigError) as error:
            assert len(str(error)) < LINE_CHARS_MAX, "a refusal is a line"
    return found


_LIKELY: dict[str, tuple[Any, ...]] = {
    "qpn": (20, 30, 16, 17), "peer_qpn": (21, 31, 40), "port": (0, 1), "plane": (0, 1), "path": (0, 1),
    "peer_index": (2, 3, 1), "profile": (1, 2, 0), "mpr": (1,), "peer_mpr": (1, 8), "max_wimm": (32, 8),
    "psn_send": (5, 0xFFFFFF), "psn_receive": (5,), "local_region": (14, 16), "local_va": (SOURCE_VA,),
    "length": (1, 300, PIECE), "remote_va": (TARGET_VA,), "r_key": (1,), "va": (SOURCE_VA,), "count": (8, 4, 16),
    "reserve": (0, 4), "min_active": (0, 2), "period_ns": (5_000, 20_000), "rounds": (1, 5), "region_id": (14, 16, 15),
    "timeout_exponent": (8,), "format": ("stev", "srv6", "srv6_srh", "ecmp"), "wr_id": (1, 2),
    "mode": ("auto", "explicit", "generated"), "state": ("rts", "offline", "online", "init", "error"),
}  # fmt: skip
"""Arguments that a NIC in this state would take, by name."""


def _value(script: Script, name: str, hint: Any) -> Any:
    """A value of about the right kind, more often than not one that makes sense."""
    text = str(hint)
    choice = script.number()
    if name in _LIKELY and choice & 3:
        return _LIKELY[name][(choice >> 2) % len(_LIKELY[name])]
    if name in ("ev", "value") and choice & 3:
        found = _evs()
        return found[(choice >> 2) % len(found)] if name == "ev" else hex(found[(choice >> 2) % len(found)])
    if "Impairment" in text:
        name = script.one_of([field.name for field in dataclasses.fields(Impairment)])
        return {
            "up": bool(choice & 1),
            "loss_ppm": script.number(3),
            name: script.number(2) if choice & 2 else [choice],
        }
    if "dict" in text:
        return _program(script, choice)
    if "list" in text:
        return [_TEXTS[script.below(len(_TEXTS))] for _ in range(choice % 5)]
    if "bool" in text:
        return bool(choice & 1)
    if "str" in text:
        return _TEXTS[choice % len(_TEXTS)]
    return _NUMBERS[choice % len(_NUMBERS)]


def _program(script: Script, choice: int) -> dict[str, Any]:
    """A program that the NIC has a rank in, more often than not."""
    kind = script.one_of(list(PROGRAMS))
    own = TOPOLOGY.nic_index(VICTIM)
    figures = {name: script.number(2) for name in PROGRAMS[kind].figures if not script.number() & 3}
    if kind == "trace":
        figures["messages"] = [[script.below(3), script.below(3), script.number(), script.number(2)]]  # type: ignore[assignment]
    ranks = tuple((own + step) % TOPOLOGY.nics for step in range(1 + choice % 4))
    settings = Program("p", kind, choice % 3, ranks, 1_000 * script.number(), "s", figures).settings()
    if choice > _SPARED:
        settings[script.one_of(list(settings))] = script.number()
    return settings


def _play(
    make: Callable[[], Node], plan: Callable[[], list[tuple[int, Any]]], done: type, size: int, data: bytes
) -> None:
    """Run the commands at once and cut into pieces: the same answers, one for each."""
    end = max((at_ns for at_ns, _ in plan()), default=0) + 20 * _STEP_NS
    rng = Rng("cuts", size, *data[:64])
    one = _run(make(), plan(), [end])
    assert sum(isinstance(event, done) for event in one) == len(plan()), "one answer each"
    for event in one:
        if isinstance(event, done):
            error = getattr(event, "error", None)
            assert error is None or "\n" not in error
    two = _run(make(), plan(), [*sorted({1 + rng.below(end) for _ in range(_CUTS)} - {end}), end])
    assert [event.record() for event in one] == [event.record() for event in two], "same events"


def _run(node: Node, plan: list[tuple[int, Any]], edges: list[int]) -> list[Any]:
    inputs = [Input(at_ns, Rank.COMMAND, 0, number, command) for number, (at_ns, command) in enumerate(plan)]
    events: list[Any] = []
    start = 0
    for until in edges:
        stop = start
        while stop < len(inputs) and inputs[stop].at_ns <= until:
            stop += 1
        node.advance(inputs[start:stop], until)
        events += node.drain_events()
        start = stop
    node.counters()
    return events
