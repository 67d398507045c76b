"""What must hold at the end of a case of the second series.

Cases whose NICs run MRC are judged as in the first series; `uet_verdict` tells of UET. RC: every message completes once
or its QP is in error for a reason that something in the case explains; where nothing breaks, nothing is lost and nobody
is impatient, all complete and nothing is sent twice. Then the fabric drains: within a bound after the last repair
nothing waits anywhere, every buffer is empty and nobody is asked to pause.

Not required to finish: flows that a mishap ends; go-back-0 while packets go on being lost, which need not ever get
through; and whatever a pause holds back that nobody ends.
"""

from typing import Final

from mrcfabric.units import Instant, serialization_ns
from mrcfabric.wire.pfc import QUANTA_MAX, pause_ns
from nicd.compose import nic_settings
from nicd.core.events import STATUS_FLUSHED, STATUS_OK, STATUS_REMOTE_INVALID, STATUS_RETRY_EXCEEDED
from nicd.core.rc.requestor import timeout_ns
from orchestrator.planning.combination import DEFAULTS
from swarm import verdict
from swarm.breakage import ended_by, slowest_bps
from swarm.case import Case, Flow
from swarm.invariant import InvariantError
from swarm.messages import Direction
from swarm.systems import uet_verdict
from swarm.systems.world import SystemWorld
from switchd.compose import switch_settings

STATUSES: Final = (STATUS_OK, STATUS_RETRY_EXCEEDED, STATUS_FLUSHED, STATUS_REMOTE_INVALID)
REASON: Final = "retry_exceeded"
"""Why a QP may fail that no mishap has ended."""
ENDED: Final = (REASON, "modified", "memory_access", "remote_invalid_request", "setup_timeout_in_")
"""How the reasons begin for which one may fail that a mishap has ended."""
HOLDS: Final = frozenset({"pause_storm", "slow_receiver", "frozen"})
"""Kinds that hold packets back for as long as they last."""
TRIES: Final = 12
"""So many rounds of a QP's whole patience are waited for: each message may need some."""
FRAME_BYTES: Final = 160
RTTS: Final = 200


def is_rc(case: Case) -> bool:
    """The NICs run RC."""
    return bool(case.topology.nic.get("transport", DEFAULTS["nic.transport"]) == "rc")


def pauses(case: Case) -> bool:
    """The switches pause their neighbours."""
    return bool(case.topology.switch.get("lossless", DEFAULTS["switch.lossless"]) == "pfc")


def longest_pause_ns(case: Case) -> int:
    """How long one frame may pause the slowest port."""
    rates = [case.topology.rate_bps, *case.topology.link_rates_bps.values()]
    return pause_ns(QUANTA_MAX, min(rates)) if pauses(case) else 0


def patience_ns(case: Case, flow: Flow) -> tuple[int, int]:
    """(shortest time-out, longest time until a QP of the flow gives up)."""
    settings = nic_settings(case.topology)
    found = []
    for side in ("a", "b"):
        timers = flow.terms.get(side, {}).get("timers", {})
        one_ns = timeout_ns(timers.get("timeout_exponent", settings.rc_timeout))
        found.append((one_ns, one_ns * (timers.get("retry_linear", settings.rc_retry_cnt) + 1)))
    return min(one for one, _ in found), max(whole for _, whole in found)


def deadline_ns(case: Case) -> Instant:
    """By when everything that can complete has done so, or has failed."""
    if not is_rc(case):
        return verdict.deadline_ns(case) + 20 * longest_pause_ns(case)
    topology = case.topology
    last_ns = _last_ns(case)
    whole_ns = max(patience_ns(case, flow)[1] for flow in case.flows)
    settings = nic_settings(topology)
    whole_ns += 64 * max(settings.rc_rto_low_ns, settings.rc_rto_high_ns)
    line_ns = serialization_ns(2 * case.bytes_posted, slowest_bps(topology))
    return last_ns + 2 * _outage_ns(case) + TRIES * (whole_ns + longest_pause_ns(case)) + 64 * line_ns + _rtts_ns(case)


def _rtts_ns(case: Case) -> int:
    return RTTS * case.topology.base_rtt_ns()


def _last_ns(case: Case) -> Instant:
    """When the last message is posted or the last mishap begins or ends."""
    instants = [write.at_ns for flow in case.flows for write in (*flow.forth, *flow.back)]
    return max([*instants, *(max(fault.at_ns, fault.until_ns) for fault in case.faults)])


def _outage_ns(case: Case) -> int:
    return _last_ns(case) - min((fault.at_ns for fault in case.faults), default=_last_ns(case))


def ends(case: Case, number: int) -> bool:
    """A mishap may end the flow with this number."""
    return any(ended_by(fault, number, case.flows[number]) for fault in case.faults)


def held_back(case: Case) -> bool:
    """Something holds packets back, and nobody ends it."""
    return any(fault.kind in HOLDS and not fault.until_ns for fault in case.faults)


def judge(world: SystemWorld) -> None:
    """Raises InvariantError for the first rule that the end of a case breaks."""
    case = world.case
    if world.uet:
        uet_verdict.judge(world)
        return
    if not is_rc(case):
        verdict.judge(world)
        return
    calm = is_calm(world)
    for way in world.messages.directions:
        _completed(world, way, ends(case, way.flow), calm)
    for nic, change in world.changes:
        number = next((number for number, flow in enumerate(case.flows)
                       if (nic, change.qpn) in ((flow.a, flow.qpn_a), (flow.b, flow.qpn_b))), None)  # fmt: skip
        allowed = ENDED if number is None or ends(case, number) else (REASON,)
        if change.target == "error" and (calm or not change.reason.startswith(allowed)):
            raise InvariantError("verdict", nic, change.at_ns, f"QP {change.qpn} failed for {change.reason!r}")
    for name in world.topology.nic_names():
        world.messages.check_memory(name, world.now_ns)


def is_calm(world: SystemWorld) -> bool:
    """Nothing broke, no queue refused anything, and no QP has a shorter patience than a fabric full of work needs."""
    case = world.case
    if case.faults or case.unruly or any(flow.late_ns for flow in case.flows):
        return False
    if any(sum(world.counters(name)["drops"].values()) for name in world.topology.switch_names()):
        return False
    settings = nic_settings(case.topology)
    if settings.sram_bytes or settings.setup_timeout_ns:
        return False
    busy_ns = 4 * serialization_ns(
        case.bytes_posted + FRAME_BYTES * world.total("data_packets"), slowest_bps(case.topology)
    )
    busy_ns += 4 * longest_pause_ns(case) + 20 * case.topology.base_rtt_ns()
    patient = all(patience_ns(case, flow)[0] > busy_ns for flow in case.flows)
    if settings.rc_recovery == "selective":
        return patient and min(settings.rc_rto_low_ns, settings.rc_rto_high_ns) > busy_ns
    return patient


def _completed(world: SystemWorld, way: Direction, ended: bool, calm: bool) -> None:
    case = world.case
    excused = ended or may_hang(world)
    for message in way.messages:
        what = f"flow {way.flow}{way.side} (QP {way.sender_qpn}) message {message.number}"
        if message.accepted < 0:
            if not message.refused and not ended:
                raise InvariantError("verdict", way.sender, world.now_ns, f"{what} never answered")
        elif not message.status:
            if not excused:
                what += f": {message.placed} of {message.write.length} bytes, no completion by {deadline_ns(case)}"
                raise InvariantError("verdict", way.sender, world.now_ns, what)
        elif message.status not in STATUSES or (calm and message.status != STATUS_OK):
            raise InvariantError("verdict", way.sender, message.done_ns, f"{what} ended with {message.status!r}")


def may_hang(world: SystemWorld) -> bool:
    """Messages may stay open: something holds them back for good, or go-back-0 goes on losing packets."""
    case = world.case
    if held_back(case):
        return True
    loses = case.unruly or any(not fault.until_ns for fault in case.faults)
    loses = loses or any(sum(world.counters(name)["drops"].values()) for name in world.topology.switch_names()
                         if world.simulator.alive(name))  # fmt: skip
    return nic_settings(case.topology).rc_recovery == "go_back_0" and loses


def healed(world: SystemWorld) -> bool:
    """What was posted has ended, and nothing holds packets back: the fabric must drain."""
    case = world.case
    return not held_back(case) and not any(world.messages.open.values())


def rest_ns(case: Case) -> Instant:
    """How long a fabric without work may take until nothing waits in it."""
    fill = sum(write.length for flow in case.flows for write in (*flow.forth, *flow.back))
    drain_ns = 8 * serialization_ns(fill, slowest_bps(case.topology))
    settings = switch_settings(case.topology)
    return 6 * longest_pause_ns(case) + _rtts_ns(case) + drain_ns + 2 * settings.pfc_watchdog_ns


def at_rest(world: SystemWorld) -> None:
    """Nothing waits. Raises InvariantError."""
    if not world.drained():
        raise InvariantError("rest", "fabric", world.now_ns, "something still waits, or is still paused")
    if world.uet:
        uet_verdict.at_rest(world)
    if not is_rc(world.case):
        return
    for name in world.topology.nic_names():
        for row in world.nic(name).qp_table() if world.simulator.alive(name) else ():
            if row.get("inflight_bytes"):
                what = f"QP {row['qpn']}: {row['inflight_bytes']} bytes in flight"
                raise InvariantError("rest", name, world.now_ns, what)


def healthy(world: SystemWorld) -> None:
    """Where nothing breaks and nothing is refused, RC and UET send nothing twice. Raises InvariantError."""
    if world.uet:
        uet_verdict.healthy(world)
    if not is_rc(world.case) or not is_calm(world):
        return
    again, lost, timeouts = (world.total(name) for name in ("retransmits", "packets_lost", "timeouts"))
    if again or lost or timeouts:
        what = f"{again} packets sent again, {lost} judged lost, {timeouts} time-outs, and nothing was refused"
        raise InvariantError("health", "fabric", world.now_ns, what)


def overfull(world: SystemWorld) -> None:
    """No table of a NIC has ever held more than its bound. Raises InvariantError."""
    for name in world.topology.nic_names():
        found = world.nic(name).overfull() if world.simulator.alive(name) else []
        if found:
            raise InvariantError("bounds", name, world.now_ns, f"tables beyond their bounds: {found}")
