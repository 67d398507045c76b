"""What a daemon answers to a glance, asked several times a second: short lists of whole numbers.

Owns the positions in a list, for the daemon that fills it and for its readers (`orchestrator.live`). A list carries no
names. Its counters grow from the daemon's start on, so that a lost answer costs nothing but its time. The cores count;
the ops `counters`, `ports` and `ev_table` have everything else.

    [head, ports, rest]     a `Head`, one `PortGlance` per port in their order, a `NicRest` or a `SwitchRest`
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from mrcfabric.class_egress import ClassEgress
from mrcfabric.credit_egress import CreditEgress
from mrcfabric.egress_queues import EgressQueues
from mrcfabric.units import Instant

Glance: TypeAlias = list[Any]
"""[head, ports, rest], as it travels."""


class Head(NamedTuple):
    """The first part, the same for every kind of daemon."""

    now_ns: Instant
    """The fabric time that it has reached."""
    incarnation: int
    """From 0; when it changes, all counters have begun anew."""
    event: int
    """Number of its newest event; 0 before the first. The op `events` returns those after a number."""
    frames: int
    """Frames taken from its links."""
    late_frames: int
    """Those of them whose instant had passed."""
    host_drops: int
    """Frames that were sent to it and that the kernel lost."""


class PortGlance(NamedTuple):
    """The sending direction of one port."""

    wire_bytes: int
    """Bytes of departures, framing included."""
    queue_bytes: int
    """Waiting now, both classes."""
    marks: int
    trims: int
    """Packets cut because the queue was full, including those that were then dropped."""
    drops: int
    """Packets refused, or lost on the way by a fault of the link."""


class NicRest(NamedTuple):
    """The last part of a NIC's answer."""

    placed: Sequence[int]
    """Bytes of new payload, by the plane they came on."""
    retransmits: int
    """Packets, all causes."""
    qp_errors: int
    qps: int
    carrier: int
    """Bit p: the port of plane p has carrier."""
    evs: Sequence[Sequence[int]]
    """EVs of all connected QPs: plane by plane one number per state, in the order of `EvState`."""
    programs: Sequence[Sequence[Any]]
    """A `ProgramGlance` per program that ever ran here and is not forgotten."""
    pauses: Sequence[Sequence[Any]] = ()
    """A `PauseGlance` per port and class that a neighbour has ever paused."""
    asks: Sequence[Sequence[Any]] = ()
    """An `AskGlance` per port and class for which this node has ever asked its neighbour to pause."""
    rc: Sequence[Any] = ()
    """An `RcGlance`, of a NIC with the RC transport."""
    uet: Sequence[Any] = ()
    """A `UetGlance`, of a NIC with UET."""


class ProgramGlance(NamedTuple):
    """One rank of a program."""

    name: str
    kind: str
    ranks: int
    state: str
    """running, done or failed."""
    steps: int
    """Finished by this rank."""
    attempt: int = 0
    """How often the program was restarted."""


class RcGlance(NamedTuple):
    """What there is of RC QPs, where MRC has EVs."""

    states: Sequence[int]
    """QPs in each state, in the order of `QpState`."""
    ports: Sequence[int]
    """By port: connected QPs that send there."""
    rate_bps_min: int
    """The lowest rate of a connected QP; 0 without one."""
    rate_bps_sum: int
    slowed: int
    """Connected QPs whose rate is below that of their port."""
    cnps_sent: int
    cnps_received: int
    naks_sent: int
    naks_received: int
    retransmitted_bytes: int


class UetGlance(NamedTuple):
    """What there is of UET QPs, where MRC has EVs: how things stand, over all QPs and planes."""

    initiators: int
    """Contexts that this NIC has opened."""
    targets: int
    """Contexts that peers have opened."""
    drawn: int
    """Entropies that packets may carry."""
    resting: int
    """Of these, those that sit out turns."""
    kept: int
    """Of these, those that are kept to be used once more."""
    frozen: int
    """Choices that draw nothing new after a loss."""
    planes_left: int
    """Pairs of QP and plane that are left for a while."""


class SwitchRest(NamedTuple):
    """The last part of a switch's answer."""

    forwarding: int
    """0 while the switch stands still."""
    drops: int
    """Packets that never reached a queue."""
    pauses: Sequence[Sequence[Any]] = ()
    asks: Sequence[Sequence[Any]] = ()
    """Both as those of a NIC."""


class PauseGlance(NamedTuple):
    """The sending direction of one port in one class, as its neighbour pauses it, or in one VL without credit."""

    port: int
    cls: int
    pause_ns: int
    """For how long it has been paused, or its packets have waited for credit."""
    frames: int
    """Pause frames that said stop; how often its next packet came to wait for credit."""
    paused: int
    """1: it is paused now."""


class AskGlance(NamedTuple):
    """What comes in on one port in one class, which this node asks its neighbour to pause; or in one VL, when so much
    of it waits that the neighbour may lack credit."""

    port: int
    cls: int
    frames: int
    """Pause frames sent that said stop, repetitions included; how often so much came to wait."""
    asking: int
    """1: it asks now."""
    cause: str
    """`queue`: what came in waits in `ports`. `slow_receiver`, `storm`: the NIC itself."""
    ports: Sequence[Sequence[int]] = ()
    """[sending port, how often its queue was the reason to ask, bytes that came in here and wait there now]."""


QUEUE: Final = "queue"
SLOW_RECEIVER: Final = "slow_receiver"
STORM: Final = "storm"


def port_glance(egress: EgressQueues) -> tuple[int, int, int, int, int]:
    """The `PortGlance` of a port, as a plain tuple."""
    packets = egress.data_packets + egress.control_packets
    return (
        egress.data_sent_bytes + egress.control_sent_bytes + packets * egress.config.overhead_bytes,
        egress.data_bytes + egress.control_bytes,
        egress.marks,
        egress.trimmed,
        sum(egress.drops.values()),
    )


def pause_glances(ports: Iterable[ClassEgress], now_ns: Instant) -> list[PauseGlance]:
    """A `PauseGlance` of each port and class that has ever been paused, by port and class."""
    return [
        PauseGlance(port.port, cls, port.pause_ns(cls, now_ns), frames, int(port.paused_until[cls] > now_ns))
        for port in ports
        for cls, frames in enumerate(port.pauses)
        if frames
    ]


def credit_glances(ports: Iterable[CreditEgress], now_ns: Instant) -> list[PauseGlance]:
    """A `PauseGlance` of each port and VL whose packets have ever waited for credit, by port and VL."""
    return [
        PauseGlance(port.port, vl, port.waits.total_ns(vl, now_ns), times, int(port.waits.since(vl) is not None))
        for port in ports
        for vl, times in enumerate(port.waits.times)
        if times
    ]


def head_of(glance: Glance) -> Head:
    """The head of a list that a daemon sent."""
    return Head(*glance[0])


def ports_of(glance: Glance) -> list[PortGlance]:
    """The ports of a list that a daemon sent."""
    return [PortGlance(*port) for port in glance[1]]
