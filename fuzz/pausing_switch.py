"""Switches of RoCE fabrics, fed with packets, pauses and any other bytes: `routed`, `lossless`, `lossless-usid`.

The bytes say what comes at which port, how close to one another, what neighbours pause, and what an operator asks for
meanwhile. What must hold: nothing raises, packets and bytes are conserved on the whole switch, the buffer's account is
what waits, no class sends while it is paused, the result does not depend on how time is cut, and once pauses have run
out nothing is left waiting.
"""

from dataclasses import replace
from functools import cache
from typing import Any, Final

from fuzz.script import Script, damaged
from fuzz.switch_core import order
from mrcfabric.class_egress_config import CLASSES
from mrcfabric.impairment import LOSS_REASONS
from mrcfabric.naming import nic_address
from mrcfabric.node import Input, Rank, Transmit
from mrcfabric.paths import PathTable
from mrcfabric.rng import Rng
from mrcfabric.topology import Topology
from mrcfabric.units import Buffer
from mrcfabric.wire import pfc
from mrcfabric.wire.layout import IPV6_SIZE
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.roce import CnpTemplate, RcDataTemplate
from mrcfabric.wire.roce_layout import RC_WRITE_MIDDLE
from switchd.compose import switch_config
from switchd.core.build import build_switch
from switchd.core.commands import ClearImpairments, Command, SetForwarding, SetHash, SetHeadroom
from switchd.core.lossless import LosslessSwitch
from switchd.core.settings import SwitchConfig
from switchd.core.switch import Switch

FRAMES_MAX: Final = 96
SETTLED_NS: Final = 1 << 33
"""Longer than any pause of the slowest port, and long after every queue is empty again."""
_CUTS: Final = 10
_NAMES: Final = {"routed": ("p0-t0-0", "p0-t1-0"), "lossless": ("p0-t0-0", "p0-t1-0"),
                 "lossless-usid": ("p0-t0-0", "p0-t0-1")}  # fmt: skip
"""Switches that are fed. A path by uSIDs begins at a T0, and is no path anywhere else."""
_BASE: Final = Topology(
    name="fuzz", planes=1, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2, evs_per_qp=4, reserve_evs_per_qp=4,
    mtu_bytes=256, nic={"transport": "rc", "cc": "none", "rc_timeout": 6}, dscp={"control": 48},
    switch={"forwarding": "ecmp", "ecn": True, "trim": False, "trim_last_hop": False, "ecn_min_bytes": 200,
            "ecn_max_bytes": 900},
)  # fmt: skip
_PAUSING: Final[dict[str, Any]] = {
    "lossless": "pfc", "pfc_classes": "3,4", "pfc_reserved_bytes": 300, "pfc_threshold": "static",
    "pfc_xoff_bytes": 900, "pfc_xon_offset_bytes": 200, "buffer_bytes": 400_000, "pfc_quanta": 40,
    "pfc_watchdog_ns": 4_000, "pfc_watchdog_restore_ns": 3_000,
}  # fmt: skip
KINDS: Final = {
    "routed": replace(_BASE, switch={**_BASE.switch, "data": 0.1, "data_last_hop": 0.1, "ecmp_failover": True}),
    "lossless": replace(_BASE, switch={**_BASE.switch, **_PAUSING}),
    "lossless-usid": replace(
        _BASE, nic={**_BASE.nic, "rc_path": "pinned"}, switch={**_BASE.switch, **_PAUSING, "forwarding": "usid"}
    ),
}
"""Fabrics by the name of the target."""


@cache
def _config(kind: str, name: str) -> SwitchConfig:
    return switch_config(KINDS[kind], name)


@cache
def packets(kind: str) -> tuple[bytes, ...]:
    """Data of several sizes and classes between all NICs, acknowledgements and notifications."""
    topology = KINDS[kind]
    found: list[bytes] = []
    for near in range(topology.nics):
        for far in range(topology.nics):
            if near == far:
                continue
            outer = None
            if kind == "lossless-usid":
                there = PathTable(topology, near).towards(far)
                outer = there.path(there.draw_evs(Rng("fuzz", near, far), 1, 0)[0][0]).outer
            for dscp in (26, 34, 0):
                data = RcDataTemplate(nic_address(near), nic_address(far), 0x20, 0xC000 + near, dscp=dscp, outer=outer)
                found.append(bytes(data.make(RC_WRITE_MIDDLE, 7, bytes(256), 1 << 20, 3, 4_096, True, None)))
            back = CnpTemplate(nic_address(near), nic_address(far), 0x21, 0xC100 + far, dscp=48, outer=outer)
            found += [bytes(back.ack(5, 6)), bytes(back.cnp())]
    return tuple(found)


def routed(data: bytes) -> None:
    """A switch that hashes and drops."""
    _attack("routed", data)


def lossless(data: bytes) -> None:
    """A switch that hashes and pauses."""
    _attack("lossless", data)


def lossless_usid(data: bytes) -> None:
    """A switch that forwards by uSIDs and pauses."""
    _attack("lossless-usid", data)


def seeds() -> list[bytes]:
    """Quiet and busy runs through either switch."""
    rng = Rng("switches that pause")
    return [bytes([first, *(rng.below(256) for _ in range(size))])
            for first in (0, 1) for size in (0, 8, 40, 120, 300) for _ in range(3)]  # fmt: skip


def _attack(kind: str, data: bytes) -> None:
    """One run. Raises when a property does not hold."""
    script = Script(data)
    config = _config(kind, script.one_of(_NAMES[kind]))
    plan = _timetable(script, kind, len(config.ports))
    end = (plan[-1].at_ns if plan else 0) + 1
    node = build_switch(config)
    watch = _Watch(node)
    one = _play(node, plan, [end], watch)
    rng = Rng("cuts", len(data), *data[:64])
    other = build_switch(config)
    two = _play(other, plan, [*sorted({1 + rng.below(end) for _ in range(_CUTS)} - {end}), end], _Watch(other))
    assert _by_port(one[0]) == _by_port(two[0]), "same packets"
    assert one[1] == two[1], "same events"
    assert other.counters() == node.counters(), "same counts"
    # The faults end, the switch goes on, and the neighbours fall silent.
    ends = [ClearImpairments(0), SetForwarding(0, on=True)]
    inputs = [Input(end + 1, Rank.COMMAND, 0, len(plan) + number, told) for number, told in enumerate(ends)]
    rest = node.advance(inputs, end + SETTLED_NS)
    watch.balance()
    assert node.next_timeout() is None, "nothing is left waiting"
    _check_conserved(node, watch, [*one[0], *rest])


class _Watch:
    """What went into a switch, and what its buffer says of it."""

    def __init__(self, node: Switch) -> None:
        self.node = node
        self.frames = self.bytes = self.lost_bytes = 0
        self.heard = 0
        """Pauses that the switch has understood; they are no packets."""

        def lost(packet: Buffer) -> None:
            self.lost_bytes += len(packet)
            self.heard -= isinstance(packet, ControlFrame)

        node.on_lost = lost

    def came(self, inputs: list[Input]) -> None:
        """Frames go in."""
        for entry in map(Input._make, inputs):
            if entry.rank == Rank.FRAME:
                self.frames += 1
                self.bytes += len(entry.body)
                self.heard += isinstance(entry.body, ControlFrame)

    def balance(self) -> None:
        """What each pair holds of the buffer is what waits with that origin."""
        node = self.node
        if not isinstance(node, LosslessSwitch):
            return
        pairs = len(node.egress) * CLASSES
        waiting = [0] * pairs
        for egress in node.egress:
            for queue in egress._queues:
                for packet, origin in queue:
                    waiting[origin % pairs] += len(packet)
        buffer = node.buffer
        assert waiting == [sum(both) for both in zip(buffer.stock, buffer.headroom, strict=True)]
        assert buffer.total == sum(waiting) <= buffer.config.bytes_total
        assert all(not held or paused for held, paused in zip(buffer.headroom, buffer.xoff, strict=True))
        assert all(xon <= xoff for xon, xoff in zip(node.xon_sent, node.xoff_sent, strict=True)), "XON after XOFF"


def _timetable(script: Script, kind: str, ports: int) -> list[Input]:
    """Frames and commands in the order of time; bodies are bytes, to be copied for each run."""
    stream = packets(kind)
    plan: list[Input] = []
    at_ns = 0
    while script.left and len(plan) < FRAMES_MAX:
        head = script.number()
        at_ns += (head & 7) * 20
        what = head >> 3
        if what == 31:
            plan.append(Input(at_ns, Rank.COMMAND, 0, len(plan), _order(script, ports, len(plan))))
            continue
        port = script.below(ports)
        if what >= 27:
            body: Any = spoilt_control(script)
        else:
            body = script.one_of(stream)
            if what & 3 == 3:
                body = _spoilt(script, kind, body)
        plan.append(Input(at_ns, Rank.FRAME, port, len(plan), body))
    plan.sort(key=lambda entry: entry[:4])
    return plan


def _order(script: Script, ports: int, token: int) -> Command:
    """What any switch may be asked, or less headroom, or another seed."""
    choice = script.number()
    if choice & 3 == 1:
        return SetHeadroom(token, None if choice & 4 else script.number(2), script.below(ports + 1))
    if choice & 3 == 2:
        return SetHash(token, bool(choice & 4))
    found: Command = order(script, ports, token)
    return found


def _spoilt(script: Script, kind: str, packet: bytes) -> bytes:
    """A damaged copy; a plain packet stands behind an outer header while it is changed."""
    if kind == "lossless-usid":
        return bytes(damaged(script, packet, packets(kind), (0x20, 0x21)))
    front = bytes(IPV6_SIZE)
    others = [front + one for one in packets(kind)]
    return bytes(damaged(script, front + packet, others, (0x20, 0x21)))[IPV6_SIZE:]


def spoilt_control(script: Script) -> ControlFrame:
    """A pause of some classes, good or spoilt; or any bytes with the mark of a link control frame."""
    choice = script.number()
    if choice & 3 == 3:
        return ControlFrame(script.take(choice >> 2))
    quanta = {one: script.number(1 + (choice >> 7)) for one in range(CLASSES) if script.number() & 1}
    frame = pfc.encode(bytes(6), quanta)
    if choice & 3 == 2:
        spoilt = bytearray(frame)
        spoilt[script.below(len(spoilt))] ^= 1 << script.below(8)
        return pfc.with_fcs(spoilt[: -pfc.FCS_BYTES]) if choice & 4 else ControlFrame(spoilt)
    return frame


def _play(
    node: Switch, plan: list[Input], edges: list[int], watch: _Watch
) -> tuple[list[Transmit], list[dict[str, Any]]]:
    """Everything that comes out up to the last edge."""
    transmits: list[Transmit] = []
    events: list[dict[str, Any]] = []
    start = 0
    for until in edges:
        stop = start
        while stop < len(plan) and plan[stop].at_ns <= until:
            stop += 1
        due = [_fresh(entry) for entry in plan[start:stop]]
        watch.came(due)
        transmits += [_kept(one) for one in node.advance(due, until)]
        events += [event.record() for event in node.drain_events()]
        watch.balance()
        start = stop
    return transmits, events


def _fresh(entry: Input) -> Input:
    if entry.rank != Rank.FRAME or isinstance(entry.body, ControlFrame):
        return entry
    return entry._replace(body=bytearray(entry.body))


def _kept(one: Transmit) -> Transmit:
    return one if isinstance(one[2], ControlFrame) else (*one[:2], bytes(one[2]))


def _check_conserved(node: Switch, watch: _Watch, sent: list[Transmit]) -> None:
    counters = node.counters()
    drops = counters["drops"]
    heard = watch.heard
    assert counters["received"] == watch.frames - heard, "every packet counts once"
    frames = sum(isinstance(one[2], ControlFrame) for one in sent)
    lost = sum(drops[reason] for reason in LOSS_REASONS)
    own = sum(getattr(port, "control_frames", 0) for port in node.egress)
    packets_out = len(sent) - frames - counters["touched"]["duplicated"]
    assert counters["packets"] + own == packets_out + frames + lost, "departures arrive or are lost"
    before = sum(node.drops.values())
    refused = sum(drops.values()) - lost - before
    assert counters["received"] == before + refused + counters["packets"], "every packet was sent or dropped"
    offered = sum(port.offered_bytes for port in node.egress)
    assert watch.bytes - heard * pfc.PFC_FRAME_BYTES == offered + watch.lost_bytes, "and so was every byte"
    if isinstance(node, LosslessSwitch):
        assert not node.buffer.total
        assert not any(node.buffer.xoff), "nobody is asked to pause by an empty switch"


def _by_port(transmits: list[Transmit]) -> dict[int, list[tuple[int, bytes]]]:
    found: dict[int, list[tuple[int, bytes]]] = {}
    for one in transmits:
        found.setdefault(one[0], []).append((one[1], bytes(one[2])))
    return found
