"""What must hold at the end of a case whose NICs run UET.

Every message completes once, or its QP is in error for a reason that something in the case explains. Where one plane
stays whole a sprayed QP with a retry budget worth the name completes all. Where nothing breaks, nothing is refused and
no knob was turned, nothing is judged lost. When all is done nothing is in flight, and only contexts stay.
"""

from typing import Final

from mrcfabric.topology_file import read_system
from nicd.compose import nic_settings
from nicd.core.events import STATUS_FLUSHED, STATUS_OK, STATUS_REMOTE_INVALID, STATUS_RETRY_EXCEEDED
from swarm import verdict
from swarm.breakage import planes_of
from swarm.case import Case, Flow
from swarm.invariant import InvariantError
from swarm.messages import Direction
from swarm.systems import uet_inside
from swarm.systems.world import SystemWorld

STATUSES: Final = (STATUS_OK, STATUS_RETRY_EXCEEDED, STATUS_FLUSHED, STATUS_REMOTE_INVALID)
REASON: Final = "retry_counter_exceeded"
"""Why a QP may fail that no mishap has ended."""
ENDED: Final = (REASON, "modified", "memory_access", "remote_invalid_request", "context_gone", "setup_timeout_in_")
"""How the reasons begin for which one may fail that a mishap has ended."""


def judge(world: SystemWorld) -> None:
    """Raises InvariantError for the first rule that the end of a case breaks."""
    case = world.case
    setup = bool(nic_settings(case.topology).setup_timeout_ns)
    for way in world.messages.directions:
        _completed(world, way, verdict.ends(case, way.flow) or setup, connected_enough(world, case.flows[way.flow]))
    failed: set[int | None] = set()
    for nic, change in world.changes:
        number = next((number for number, flow in enumerate(case.flows)
                       if (nic, change.qpn) in ((flow.a, flow.qpn_a), (flow.b, flow.qpn_b))), None)  # fmt: skip
        # Where one end has given up, the other finds no context.
        ended = number is None or verdict.ends(case, number) or setup or case.unruly or number in failed
        if change.target == "error" and not change.reason.startswith(ENDED if ended else (REASON,)):
            raise InvariantError("verdict", nic, change.at_ns, f"QP {change.qpn} failed for {change.reason!r}")
        if change.target == "error":
            failed.add(number)
    for name in world.topology.nic_names():
        world.messages.check_memory(name, world.now_ns)


def connected_enough(world: SystemWorld, flow: Flow) -> bool:
    """Nothing was lost at all; or one plane stayed whole, packets may take it, and there is a budget to use it."""
    case = world.case
    topology = case.topology
    settings = nic_settings(topology)
    if not case.faults and not case.unruly and not world.total("packets_lost"):
        return True
    touched = 0
    for fault in case.faults:
        touched |= planes_of(fault, topology)
    whole = ((1 << topology.planes) - 1) & ~touched
    budget = verdict.budget_of(case, flow) >= verdict.BUDGET_MIN
    # A target without room lets a sender wait, at the cost of its budget.
    room = settings.uet_contexts_max >= len(case.flows) * 2
    return bool(whole) and budget and room and settings.uet_mode == "rud" and not settings.setup_timeout_ns


def _completed(world: SystemWorld, way: Direction, ended: bool, connected: bool) -> None:
    for message in way.messages:
        what = f"flow {way.flow}{way.side} (QP {way.sender_qpn}) message {message.number}"
        if message.accepted < 0:
            if not message.refused and not ended:
                raise InvariantError("verdict", way.sender, world.now_ns, f"{what} never answered")
        elif not message.status:
            if not ended:
                what += f": {message.placed} of {message.write.length} bytes, no completion"
                raise InvariantError("verdict", way.sender, world.now_ns, what)
        elif message.status not in STATUSES:
            raise InvariantError("verdict", way.sender, message.done_ns, f"{what} ended with {message.status!r}")
        elif message.status != STATUS_OK and connected and not ended:
            what += f" ended with {message.status} on a fabric that could carry it"
            raise InvariantError("verdict", way.sender, message.done_ns, what)


def _turned(case: Case) -> bool:
    """A knob has another value than the system's."""
    tables = read_system(case.topology.system).tables
    return case.topology.nic != tables.get("nic", {}) or case.topology.switch != tables.get("switch", {})


def at_rest(world: SystemWorld) -> None:
    """Nothing is in flight, nothing waits to be sent again. Raises InvariantError."""
    for name in world.topology.nic_names():
        if not world.simulator.alive(name):
            continue
        for qp, link in uet_inside.links(world.nic(name)):
            table = link.initiator.table
            if link.initiator.idle and (table.by_psn or table.lost or link.initiator.queued_bytes):
                what = f"QP {qp.qpn}: nothing to do, and {len(table.by_psn)} PSNs out"
                raise InvariantError("rest", name, world.now_ns, what)
        for peer in uet_inside.peers(world.nic(name)):
            flying = sum(window.inflight_bytes for window in peer.windows.contexts)
            if flying and peer.idle:
                raise InvariantError("rest", name, world.now_ns, f"{flying} bytes in flight to NIC {peer.index}")


def healthy(world: SystemWorld) -> None:
    """Where nothing breaks, nothing is refused and no knob is turned, nothing is lost. Raises InvariantError."""
    case = world.case
    plain = not case.faults and not case.unruly and not any(flow.late_ns or flow.terms for flow in case.flows)
    if not plain or case.topology.link_rates_bps or _turned(case):
        return
    refused = sum(sum(world.counters(name)["drops"].values()) + world.counters(name)["trim_admitted"]
                  for name in world.topology.switch_names())  # fmt: skip
    lost, timeouts = world.total("packets_lost"), world.total("timeouts")
    if not refused and (lost or timeouts):
        what = f"{lost} packets judged lost, {timeouts} time-outs, and nothing was refused"
        raise InvariantError("health", "fabric", world.now_ns, what)
