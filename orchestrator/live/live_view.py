"""Looks at a running fabric repeatedly, and returns what each look shows as a `Snapshot`.

Owns what is remembered between looks, and how the daemons' glances, the faults and the clock become one snapshot. Uses
nothing but `Verbs`, so it works in the agent's process and in any other. Whoever draws the snapshots sets the pace; a
look less than `polling.SHARED_WALL_S` after another shows nothing new.
"""

from collections.abc import Mapping, Sequence

from mrcfabric.glance import NicRest, ProgramGlance, SwitchRest
from mrcfabric.topology import Link, Topology
from mrcfabric.units import NEVER, NS_PER_S, Instant
from nicd.core.ev_state import EV_STATES
from orchestrator.fabric.polling import Glances
from orchestrator.fabric.readings import ClockReading
from orchestrator.fabric.verbs import Verbs
from orchestrator.faults.fault import Fault
from orchestrator.live.fault_overlay import FaultOverlay, OverlayMaker
from orchestrator.live.pause_tree import pause_trees
from orchestrator.live.paused_links import paused_shares, pauses_of
from orchestrator.live.rc_view import rc_path, rc_view
from orchestrator.live.snapshot import (
    DirectionView,
    FaultView,
    LinkState,
    LinkView,
    NicView,
    NodeState,
    PlaneView,
    ProgramView,
    Snapshot,
    SwitchView,
)
from orchestrator.live.track import Track
from orchestrator.live.uet_view import uet_view
from orchestrator.measures import sums
from orchestrator.planning.abilities import sprays_entropies


class LiveView:
    """Watches one fabric."""

    def __init__(self, fabric: Verbs) -> None:
        self._fabric = fabric
        self._sight = Sight(fabric.topology)

    async def look(self) -> Snapshot:
        """Take a snapshot of the fabric. Raises RefusedError or NoAnswerError when it cannot be reached."""
        glances = await self._fabric.glances()
        return self._sight.see(glances, await self._fabric.live_faults())


class Sight:
    """Makes snapshots of glances and faults, without asking anybody."""

    def __init__(self, topology: Topology) -> None:
        self._planes = range(topology.planes)
        self._links = list(topology.links())
        self._ends = nodes = {node: topology.ports(node) for node in topology.node_names()}
        self._rates = {(node, end.port): end.rate_bps for node, ends in nodes.items() for end in ends}
        no_evs = [[0] * len(EV_STATES) for _ in self._planes]
        idle = NicRest([0] * topology.planes, 0, 0, 0, 0, no_evs, ())
        self._nics = {node: Track(len(nodes[node]), idle) for node in topology.nic_names()}
        self._switches = {node: Track(len(nodes[node]), SwitchRest(1, 0)) for node in topology.switch_names()}
        self._idle = idle
        self._rc_path = rc_path(topology)
        self._sprays = sprays_entropies(topology)
        self._overlays = OverlayMaker(topology)
        self._number = 0
        self._before: ClockReading | None = None

    def see(self, glances: Glances, faults: Sequence[Fault]) -> Snapshot:
        """Make the next snapshot. `glances` cover all nodes, and none is older than those of the call before."""
        self._number += 1
        late = frozenset(glances.late)
        for tracks in (self._nics, self._switches):
            for node, track in tracks.items():
                track.enter(glances.nodes.get(node), late=node in late)
        clock, before = glances.clock, self._before or glances.clock
        self._before = clock
        span_ns = clock.now_ns - before.now_ns
        awake_s = clock.pace["run_wall_s"] - before.pace["run_wall_s"]
        overlay = self._overlays.overlay(faults, clock.now_ns)
        states = {node: self._state(node, glances) for node in (*self._nics, *self._switches)}
        doubts = self._doubts()
        pauses = pauses_of({**self._nics, **self._switches}, self._ends, glances.down)
        shares = paused_shares(pauses)
        return Snapshot(
            number=self._number,
            at_ns=clock.now_ns,
            span_ns=span_ns,
            wall_s=glances.wall_s,
            dilation=awake_s * NS_PER_S / span_ns if span_ns > 0 else 0.0,
            running=clock.state == "run" and not clock.standing,
            valid=not doubts,
            reasons=tuple(doubts),
            planes=tuple(self._plane(plane, states) for plane in self._planes),
            nics={node: self._nic(node, states[node], overlay, shares) for node in self._nics},
            switches={node: self._switch(node, states[node], overlay) for node in self._switches},
            links={link.name: self._link(link, states, overlay) for link in self._links},
            faults=tuple(fault_view(fault, clock.now_ns) for fault in faults),
            programs=self._programs(states),
            late=glances.late,
            pauses=pauses,
            pause_trees=pause_trees(pauses),
        )

    def _state(self, node: str, glances: Glances) -> NodeState:
        if node in glances.down:
            return "down"
        if glances.nodes.get(node) is None:
            return "silent"
        track = self._switches.get(node)
        return "up" if track is None or track.rest.forwarding else "frozen"

    def _doubts(self) -> list[str]:
        tracks: list[Track[NicRest] | Track[SwitchRest]] = [*self._nics.values(), *self._switches.values()]
        return sums.doubts(
            sum(track.frames for track in tracks),
            sum(track.late_frames for track in tracks),
            sum(track.host_drops for track in tracks),
        )

    def _rest(self, node: str, state: NodeState) -> NicRest:
        """The state of a NIC: a silent one as it last answered, a dead one without anything."""
        return self._idle if state == "down" else self._nics[node].rest

    def _nic(self, node: str, state: NodeState, overlay: FaultOverlay, shares: Mapping[str, float]) -> NicView:
        track, rest = self._nics[node], self._rest(node, state)
        return NicView(
            state=state,
            goodput_bps=track.rate(8 * (sum(track.rest.placed) - sum(track.rest_before.placed))),
            ports_up=tuple(bool(rest.carrier >> plane & 1) for plane in self._planes),
            evs=tuple(dict(zip(EV_STATES, row, strict=True)) for row in rest.evs),
            qps=rest.qps,
            qp_errors=rest.qp_errors,
            retransmits=track.rest.retransmits - track.rest_before.retransmits,
            uet=uet_view(rest) if self._sprays else None,
            rc=None if self._rc_path is None else rc_view(track, rest, self._rc_path),
            paused=tuple(shares.get(f"{node}>{end.peer}", 0.0) for end in self._ends[node]),
            faults=overlay.nodes.get(node, ()),
        )

    def _plane(self, plane: int, states: dict[str, NodeState]) -> PlaneView:
        goodput = 0.0
        evs = [0] * len(EV_STATES)
        ports_down = 0
        for node, track in self._nics.items():
            rest = self._rest(node, states[node])
            goodput += track.rate(8 * (track.rest.placed[plane] - track.rest_before.placed[plane]))
            evs = [count + more for count, more in zip(evs, rest.evs[plane], strict=True)]
            ports_down += not rest.carrier >> plane & 1
        return PlaneView(goodput, dict(zip(EV_STATES, evs, strict=True)), ports_down)

    def _switch(self, node: str, state: NodeState, overlay: FaultOverlay) -> SwitchView:
        track = self._switches[node]
        drops = track.rest.drops - track.rest_before.drops + sum(port.drops for port in track.ports)
        return SwitchView(state, drops, overlay.nodes.get(node, ()))

    def _link(self, link: Link, states: dict[str, NodeState], overlay: FaultOverlay) -> LinkView:
        state: LinkState = overlay.states.get(link.name, "up")
        if "down" in (states[link.a], states[link.b]):
            state = "down"
        up, down = self._direction(link.a, link.a_port), self._direction(link.b, link.b_port)
        return LinkView(state, up, down, overlay.links.get(link.name, ()))

    def _direction(self, node: str, port: int) -> DirectionView:
        nic = self._nics.get(node)
        track = self._switches[node] if nic is None else nic
        step = track.ports[port]
        # A frame that began to leave just before the look counts as a whole, so the share may exceed 1.
        share = min(1.0, track.rate(8 * step.wire_bytes) / self._rates[node, port])
        return DirectionView(share, step.queue_bytes, step.marks, step.trims, step.drops)

    def _programs(self, states: dict[str, NodeState]) -> tuple[ProgramView, ...]:
        ranks: dict[str, list[ProgramGlance]] = {}
        for node in self._nics:
            for row in self._rest(node, states[node]).programs:
                rank = ProgramGlance(*row)
                ranks.setdefault(rank.name, []).append(rank)
        return tuple(
            ProgramView(
                name=name,
                kind=told[0].kind,
                ranks=told[0].ranks,
                running=sum(rank.state == "running" for rank in told),
                failed=sum(rank.state == "failed" for rank in told),
                steps=min(rank.steps for rank in told),
                attempt=max(rank.attempt for rank in told),
            )
            for name, told in ranks.items()
        )


def fault_view(fault: Fault, at_ns: Instant) -> FaultView:
    """The state of a fault at an instant."""
    return FaultView(
        id=fault.id,
        kind=fault.kind,
        title=fault.title,
        targets=fault.targets,
        owner=fault.owner,
        start_ns=fault.start_ns,
        end_ns=None if fault.end_ns == NEVER else fault.end_ns,
        in_force=fault.start_ns <= at_ns < fault.end_ns,
    )
