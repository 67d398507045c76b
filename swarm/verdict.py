"""What must hold at the end of a case: who had to finish, by when, and which failures are legal.

Bound on time: after the last repair, a multiple of what the longest wait of any knob, the line rate and the windows
make necessary. A message must complete where nothing has ended its flow; it must complete well where the fabric was
connected enough: one plane that no mishap touched, and a retry budget that is worth the name.
"""

from typing import Any, Final

from mrcfabric.units import Instant
from nicd.compose import nic_settings
from nicd.core.events import STATUS_FLUSHED, STATUS_OK, STATUS_REMOTE_INVALID, STATUS_RETRY_EXCEEDED
from nicd.core.mrc.limits import TIMEOUT_UNIT_NS
from swarm.breakage import ended_by, planes_of, slowest_bps
from swarm.case import Case, Flow
from swarm.invariant import InvariantError
from swarm.messages import Direction
from swarm.world import World

DOUBLINGS_WAITED_MAX: Final = 12
"""A wait that would be longer than so many doublings is not waited for."""
BUDGET_MIN: Final = 8
"""A smaller retry budget may run out on a fabric that loses packets at all."""
SLOW_FACTOR: Final = 2
SLOW_RTTS: Final = 8
"""A healthy fabric takes at most so many times the line's time, and so many base RTTs more."""
SCARCE: Final = ("bitmap_psns", "ooo_packets_max", "messages_open_max")
"""Bounds at which a responder asks for packets again, at the cost of their retry budget."""
STATUSES: Final = (STATUS_OK, STATUS_RETRY_EXCEEDED, STATUS_FLUSHED, STATUS_REMOTE_INVALID)
ERRORS: Final = (
    "retry_counter_exceeded",
    "remote_invalid_request",
    "modified",
    "memory_access",
    "immediates_overflow",
    "setup_timeout_in_",
)
"""How the reasons begin for which a QP may go to ERROR."""
FRAME_BYTES: Final = 160
"""About what a packet has on the wire beside its payload."""
BALANCE_PACKETS_MIN: Final = 24
"""Packets per plane from which on planes are compared."""


def deadline_ns(case: Case) -> Instant:
    """By when everything that can complete has done so, or has failed."""
    topology = case.topology
    settings = nic_settings(topology)
    rtt_ns = topology.base_rtt_ns()
    waits_ns = max(rtt_ns, settings.rto_ns, settings.tail_probe_ns, settings.sack_delay_ns, settings.probe_period_ns)
    instants = [write.at_ns for flow in case.flows for write in (*flow.forth, *flow.back)]
    faults = [max(fault.at_ns, fault.until_ns) for fault in case.faults]
    last_ns = max(instants + faults)
    first_fault_ns = min((fault.at_ns for fault in case.faults), default=last_ns)
    # After a long outage a doubled timeout may be as long as the outage was.
    outage_ns = 2 * (last_ns - min(first_fault_ns, last_ns))
    # A retry budget that is never used up ends nothing: its whole length is waited for, up to a bound.
    doubled_ns = longest_wait_ns(case)
    packets = sum(-(-write.length // topology.mtu_bytes) for flow in case.flows for write in (*flow.forth, *flow.back))
    window = max(1, min(settings.mpr_units * 128, (settings.cwnd_bytes or 1 << 20) // topology.mtu_bytes))
    serial_ns = packets * (2 * waits_ns) // window + case.bytes_posted * 8_000_000_000 // slowest_bps(topology)
    return last_ns + outage_ns + 2 * doubled_ns + 16 * settings.retry_linear * waits_ns + 200 * waits_ns + 8 * serial_ns


def ends(case: Case, number: int) -> bool:
    """A mishap may end the flow with this number, or leave it without a plane for good."""
    flow = case.flows[number]
    return any(ended_by(fault, number, flow) for fault in case.faults) or any(
        _is_barred(case, nic) for nic in (flow.a, flow.b)
    )


def _is_barred(case: Case, nic: str) -> bool:
    """The controller has denied every plane of this NIC, and never allows one again."""
    denials = [fault for fault in case.faults if (fault.kind, fault.target) == ("deny_plane", nic)]
    return {fault.value for fault in denials if not fault.until_ns} == set(range(case.topology.planes))


def longest_wait_ns(case: Case) -> int:
    """Until the last of the doubled timeouts of the most patient QP, up to a bound."""
    settings = nic_settings(case.topology)
    found = [settings.rto_ns << min(settings.retry_exponential + 1, DOUBLINGS_WAITED_MAX)]
    for flow in case.flows:
        for terms in flow.terms.values():
            timers = terms["timers"]
            exponent = timers.get("timeout_exponent")
            rto_ns = settings.rto_ns if exponent is None else TIMEOUT_UNIT_NS << exponent
            doublings = timers.get("retry_exponential", settings.retry_exponential) + 1
            found.append(rto_ns << min(doublings, DOUBLINGS_WAITED_MAX))
    return max(found)


def budget_of(case: Case, flow: Flow) -> int:
    """Retries of the end that has fewer: when it gives up, the other one has lost its peer."""
    settings = nic_settings(case.topology)
    sums: list[int] = []
    for side in ("a", "b"):
        timers = flow.terms.get(side, {}).get("timers", {})
        linear = timers.get("retry_linear", settings.retry_linear)
        sums.append(linear + int(timers.get("retry_exponential", settings.retry_exponential)))
    return min(sums)


def connected_enough(world: World, flow: Flow) -> bool:
    """Nothing was lost at all; or one plane stayed whole, and the settings leave a way and a budget to use it."""
    case = world.case
    topology = case.topology
    settings = nic_settings(topology)
    touched = 0
    for fault in case.faults:
        touched |= planes_of(fault, topology)
    calm = not case.faults and not case.unruly
    if calm and not world.total("packets_lost"):
        return True
    whole = ((1 << topology.planes) - 1) & ~touched
    scarce = any(getattr(settings, knob) for knob in SCARCE) or settings.setup_timeout_ns
    floor = 2 * settings.ev_min_active <= settings.evs_active
    return bool(whole) and budget_of(case, flow) >= BUDGET_MIN and floor and not scarce and sprays(case)


def judge(world: World) -> None:
    """Raises InvariantError for the first rule that the end of a case breaks."""
    case = world.case
    for way in world.messages.directions:
        ended = ends(case, way.flow)
        _completed(world, way, ended, connected_enough(world, case.flows[way.flow]))
    for nic, change in world.changes:
        if change.target == "error" and not change.reason.startswith(ERRORS):
            raise InvariantError("verdict", nic, change.at_ns, f"QP {change.qpn} failed for {change.reason!r}")
    for name in world.topology.nic_names():
        world.messages.check_memory(name, world.now_ns)


def _completed(world: World, way: Direction, ended: bool, connected: bool) -> None:
    for message in way.messages:
        if message.accepted < 0:
            if not message.refused and not ended:
                what = f"{_name(way, message.number)} never answered"
                raise InvariantError("verdict", way.sender, world.now_ns, what)
            continue
        if not message.status:
            if not ended:
                what = f"{_name(way, message.number)}: {message.placed} of {message.write.length} bytes, no completion"
                raise InvariantError("verdict", way.sender, world.now_ns, what)
            continue
        if message.status not in STATUSES:
            raise InvariantError(
                "verdict", way.sender, message.done_ns, f"{_name(way, message.number)}: {message.status!r}"
            )
        if message.status != STATUS_OK and connected and not ended:
            what = f"{_name(way, message.number)} ended with {message.status} on a fabric that could carry it"
            raise InvariantError("verdict", way.sender, message.done_ns, what)


def _name(way: Direction, number: int) -> str:
    return f"flow {way.flow}{way.side} (QP {way.sender_qpn}) message {number}"


def healed(world: World) -> bool:
    """Everything that broke was mended, and no QP has lost its peer: the fabric must come to rest."""
    mended = all(fault.until_ns for fault in world.case.faults)
    crashed = any(fault.kind == "nic_crash" for fault in world.case.faults)
    probing = nic_settings(world.topology).self_probe_period_ns
    return mended and not crashed and not probing and not any(change.target == "error" for _, change in world.changes)


def rest_ns(case: Case) -> Instant:
    """How long a fabric that is whole again may take until nothing is pending."""
    settings = nic_settings(case.topology)
    probing_ns = settings.probe_period_ns * settings.probe_backoff_max * (2 + settings.probe_successes)
    # Peers that were out of reach are told of ports after waits that double.
    untold = any(fault.kind in ("nic_port", "switch_crash", "link_down", "frozen", "impaired") for fault in case.faults)
    updates_ns = min(settings.port_update_retry_ns << settings.port_update_tries, 1 << 40) if untold else 0
    return 20 * probing_ns + 100 * settings.rto_ns + 4 * settings.reverse_idle_ns + updates_ns


def at_rest(world: World) -> None:
    """Nothing pending: no packet under way, no byte in flight, no EV still bad. Raises InvariantError."""
    if world.simulator.next_due() is not None:
        raise InvariantError("rest", "fabric", world.now_ns, "something is still due")
    for name in world.topology.nic_names():
        if not world.simulator.alive(name):
            continue
        states = world.counters(name)["ev_states"]
        bad = sum(plane.get("assumed_bad", 0) for plane in states.values())
        if bad:
            raise InvariantError("rest", name, world.now_ns, f"{bad} EVs are still ASSUMED_BAD")
        for row in world.nic(name).qp_table():
            if row.get("inflight_bytes"):
                raise InvariantError(
                    "rest", name, world.now_ns, f"QP {row['qpn']}: {row['inflight_bytes']} bytes in flight"
                )


def balanced(world: World) -> None:
    """Each NIC has sent as much on every plane, where nothing stood in the way. Raises InvariantError."""
    case = world.case
    planes = case.topology.planes
    if case.faults or case.unruly or planes == 1 or not sprays(case) or case.topology.link_rates_bps:
        return
    # What is lost retires EVs, and a plane may be left without one for a while.
    if world.total("packets_lost"):
        return
    # Where a plane's own window has moved, began small or stays small, its share is what the window lets through.
    nic = case.topology.nic
    moved = any(sum(world.counters(name)["cwnd_cuts"].values()) for name in world.sending)
    if nic.get("congestion_scope", "plane") == "plane" and (moved or nic.keys() & {"cwnd_bytes", "max_cwnd_bytes"}):
        return
    for name, lives in world.sending.items():
        rules = lives[-1]
        spread = max(rules.planes) - min(rules.planes)
        # Round robin among ports that have room: less spread than independent draws would have.
        bound = (4 + 3 * (rules.packets / planes) ** 0.5) * (case.topology.mtu_bytes + FRAME_BYTES)
        if rules.packets >= BALANCE_PACKETS_MIN * planes and spread > bound:
            raise InvariantError("balance", name, world.now_ns, f"{rules.planes} bytes by plane")


def healthy(world: World) -> None:
    """With default knobs, a fabric in which nothing breaks loses what queues refuse and nothing else, asks for nothing,
    and is about as fast as its busiest NIC could be. Raises InvariantError."""
    case = world.case
    topology = case.topology
    plain = not topology.nic and not topology.switch and not topology.link_rates_bps and not case.profile
    if not plain or case.faults or case.unruly or any(flow.terms or flow.late_ns for flow in case.flows):
        return
    refused = sum(sum(world.counters(name)["drops"].values()) for name in topology.switch_names())
    refused += sum(world.counters(name)["trim_admitted"] for name in topology.switch_names())
    lost, timeouts = world.total("packets_lost"), world.total("timeouts")
    if lost > refused or (timeouts and not refused):
        what = f"{lost} packets judged lost, {timeouts} timeouts, and queues refused {refused}"
        raise InvariantError("health", "fabric", world.now_ns, what)
    last_ns = max(message.done_ns for way in world.messages.directions for message in way.messages)
    posted_ns = max(write.at_ns for flow in case.flows for write in (*flow.forth, *flow.back))
    bound_ns = SLOW_FACTOR * busiest_ns(case) + SLOW_RTTS * topology.base_rtt_ns()
    if last_ns - posted_ns > bound_ns:
        what = f"{last_ns - posted_ns} ns from the last post to the last completion; {bound_ns} are enough"
        raise InvariantError("health", "fabric", world.now_ns, what)


def busiest_ns(case: Case) -> int:
    """How long the busiest NIC's ports, or the up-links it shares, need for its bytes at line rate."""
    topology = case.topology
    loads: dict[tuple[str, str], int] = {}
    for flow in case.flows:
        for sender, receiver, writes in ((flow.a, flow.b, flow.forth), (flow.b, flow.a, flow.back)):
            size = sum(write.length + FRAME_BYTES * -(-write.length // topology.mtu_bytes) for write in writes)
            for end in ((sender, "out"), (receiver, "in")):
                loads[end] = loads.get(end, 0) + size
    shared = max(1.0, topology.nics_per_t0 / topology.t1_per_plane)
    return int(max(loads.values()) * shared * 8_000_000_000 / (topology.rate_bps * topology.planes))


def sprays(case: Case) -> bool:
    """The path policy is one that sprays over all planes."""
    policy: Any = case.topology.nic.get("path_policy", "mrc")
    return bool(policy != "single")
