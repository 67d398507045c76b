"""Which faults are in force when, and which commands to which daemons bring that about.

Pure: a `FaultTable` is told what happens to links, ports and nodes at which fabric instants, and answers with stamped
commands. The agent sends them over the control channel; the simulator carries them out in virtual time; both get the
same ones. What a fault does to a packet is `mrcfabric.impairment`'s.

A link's two directions are impaired alike. A NIC sees its carrier: it falls when the link is cut, and one link delay
after the node at the other end has died. A switch sees nothing (MRC 1.0 5: a dead link means silence).
"""

from bisect import bisect_right, insort
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mrcfabric.errors import ConfigError
from mrcfabric.impairment import HEALTHY, Impairment
from mrcfabric.topology import Link, Topology
from mrcfabric.units import Instant

SET_IMPAIRMENT = "set_impairment"
SET_CARRIER = "set_carrier"
LINK_CAUSES = ("link", "nic-port")
"""Causes that cut or degrade the cable itself; the others are names of dead nodes."""


class Stamped(NamedTuple):
    """One command for one daemon at one fabric instant."""

    at_ns: Instant
    node: str
    op: str
    args: dict[str, Any]


class Change(NamedTuple):
    """From `at_ns` on, `cause` ("link", "nic-port" or a node's name) says this of a link."""

    at_ns: Instant
    cause: str
    up: bool
    loss_ppm: int


@dataclass(slots=True)
class LinkHistory:
    """Every change to one link, in time order."""

    link: Link
    changes: list[Change] = field(default_factory=list)

    def causes_at(self, at_ns: Instant) -> dict[str, Change]:
        """The change in force per cause."""
        end = bisect_right(self.changes, at_ns, key=lambda change: change.at_ns)
        return {change.cause: change for change in self.changes[:end]}


class FaultTable:
    """The faults of one fabric. They may be told in any order: what a new one changes later on is told again."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self._links: dict[str, LinkHistory] = {}
        self._nodes: dict[str, list[tuple[Instant, bool]]] = {}

    def set_link(self, name: str, at_ns: Instant, *, up: bool = True, loss_ppm: int = 0) -> list[Stamped]:
        """Cut, heal or degrade a cable. Raises ConfigError for unknown names and bad shares."""
        return self._change(self.topology.parse_link(name), "link", at_ns, up, loss_ppm)

    def set_nic_port(self, nic: str, plane: int, at_ns: Instant, *, up: bool) -> list[Stamped]:
        """Take a NIC's port down or up. Raises ConfigError as `set_link`."""
        self.topology.nic_index(nic)
        ends = self.topology.ports(nic)
        if not 0 <= plane < len(ends):
            raise ConfigError(f"{nic} port {plane}", "no such port", f"ports are planes, 0 to {len(ends) - 1}")
        return self._change(self.topology.parse_link(ends[plane].link), "nic-port", at_ns, up, 0)

    def set_node(self, node: str, at_ns: Instant, *, up: bool, told_ns: Instant = 0) -> list[Stamped]:
        """A node dies or lives again: what the NICs beside it see. Killing it is the driver's part.

        They cannot be told of what has already happened before `told_ns`.
        """
        seen_ns = max(at_ns + self.topology.link_delay_ns, told_ns)
        commands: list[Stamped] = []
        for end in self.topology.ports(node):
            if end.towards == "nic":
                link = self.topology.parse_link(end.link)
                told = self._record(link, Change(seen_ns, node, up, 0))
                commands += [command for command in told if command.op == SET_CARRIER]
        insort(self._nodes.setdefault(node, []), (at_ns, up))
        return commands

    def state_for(self, node: str, start_ns: Instant) -> list[Stamped]:
        """What a node that starts at `start_ns` must be told: the faults then in force, and those already planned."""
        first_ns = start_ns + 1  # a core takes commands later than its start
        commands: list[Stamped] = []
        for end in self.topology.ports(node):
            history = self._links.get(end.link)
            if history is None:
                continue
            now = self._commands(history, node, end.port, first_ns)
            commands += [command for command in now if command.args not in _healthy(end.port)]
            planned = {change.at_ns for change in history.changes if change.at_ns > first_ns and change.cause != node}
            for at_ns in planned:
                commands += self._commands(history, node, end.port, at_ns)
        return sorted(commands, key=lambda command: command.at_ns)

    def latest(self, node: str) -> Instant:
        """The instant of the latest death or return told of a node; 0 without any."""
        return max((at_ns for at_ns, _ in self._nodes.get(node, ())), default=0)

    def active(self, at_ns: Instant) -> list[dict[str, Any]]:
        """The faults in force at an instant: of links and ports, then dead nodes."""
        found = [
            _fault(change.cause, history.link.name, change.up, change.loss_ppm, change.at_ns)
            for history in self._links.values()
            for change in history.causes_at(at_ns).values()
            if change.cause in LINK_CAUSES and not (change.up and not change.loss_ppm)
        ]
        for node, changes in self._nodes.items():
            latest = [change for change in changes if change[0] <= at_ns][-1:]
            found += [_fault("node", node, False, 0, since_ns) for since_ns, up in latest if not up]
        return found

    def clear(self, at_ns: Instant) -> list[Stamped]:
        """Heal every link and port from `at_ns` on (dead nodes stay dead)."""
        commands: list[Stamped] = []
        for history in list(self._links.values()):
            for cause, change in history.causes_at(at_ns).items():
                if cause in LINK_CAUSES and (not change.up or change.loss_ppm):
                    commands += self._change(history.link, cause, at_ns, True, 0)
        return commands

    def _change(self, link: Link, cause: str, at_ns: Instant, up: bool, loss_ppm: int) -> list[Stamped]:
        Impairment(up=up, loss_ppm=loss_ppm)  # refuses impossible shares
        return self._record(link, Change(at_ns, cause, up, loss_ppm))

    def _record(self, link: Link, change: Change) -> list[Stamped]:
        """Note a change; what both ends must be told at its instant, and anew at the instants of later changes."""
        history = self._links.setdefault(link.name, LinkHistory(link))
        ends = ((link.a, link.a_port), (link.b, link.b_port))
        later = sorted({one.at_ns for one in history.changes if one.at_ns > change.at_ns})
        before = [self._commands(history, node, port, at_ns) for at_ns in later for node, port in ends]
        insort(history.changes, change, key=lambda one: one.at_ns)
        commands = [one for node, port in ends for one in self._commands(history, node, port, change.at_ns)]
        after = [self._commands(history, node, port, at_ns) for at_ns in later for node, port in ends]
        for old, new in zip(before, after, strict=True):
            commands += [one for one in new if one not in old]
        return commands

    def _commands(self, history: LinkHistory, node: str, port: int, at_ns: Instant) -> list[Stamped]:
        """Everything one end of a link is to be told at `at_ns`."""
        causes = history.causes_at(at_ns)
        # Who sends towards a dead node sends as ever: its frames meet nobody.
        cut = [causes[cause] for cause in LINK_CAUSES if cause in causes]
        impairment = Impairment(
            up=all(change.up for change in cut), loss_ppm=max((change.loss_ppm for change in cut), default=0)
        )
        args = {"port": port, "impairment": impairment.settings()}
        commands = [Stamped(at_ns, node, SET_IMPAIRMENT, args)]
        if self.topology.parse_node(node).tier == "nic":
            commands.append(self._carrier(history, node, port, at_ns))
        return commands

    @staticmethod
    def _carrier(history: LinkHistory, nic: str, port: int, at_ns: Instant) -> Stamped:
        """A NIC's port has carrier when the cable is whole and the node at the other end lives."""
        up = all(change.up for cause, change in history.causes_at(at_ns).items() if cause != nic)
        return Stamped(at_ns, nic, SET_CARRIER, {"port": port, "up": up})


def _fault(kind: str, name: str, up: bool, loss_ppm: int, since_ns: Instant) -> dict[str, Any]:
    return {"kind": kind, "name": name, "up": up, "loss_ppm": loss_ppm, "since_ns": since_ns}


def _healthy(port: int) -> tuple[dict[str, Any], ...]:
    return {"port": port, "impairment": HEALTHY.settings()}, {"port": port, "up": True}
