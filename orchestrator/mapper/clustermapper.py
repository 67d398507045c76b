"""The Clustermapper: finds out which links are bad, from the probes that every NIC sends to itself.

Pure: the caller enters the NICs' link tables (`enter`) and asks for a judgement (`look`). `orchestrator.mapper.mapping`
asks the NICs. `orchestrator.mapper.deny_plan` decides what to do about a bad link. `loss_statistics`,
`link_likelihood` and `link_inference` have the statistics.

How it tells faults apart, plane by plane (planes never meet):

- A probe round the T0 crosses only the NIC-T0 link. Its losses are losses of that link; a silent link is down.
- A probe round a T1 crosses the NIC-T0 link and the T0-T1 link. NICs whose own links are good test the T0-T1 links. All
  losses below one T0 are explained together, by as few lossy links as possible. That all its links to NICs lose a
  little, or all those to T1s, is one of the explanations.
- If every NIC below a T0 is cut off in a plane, the T0 is dead. If every T0 is cut off from a T1, the T1 is dead. If a
  T1 has two T0s and both links are cut, that looks the same as a dead T1 and is reported as one. With only one witness
  (one NIC below the T0, one T0 in the plane) the link is named, and a note says that it may be the switch.
- A link that no NIC could try (its NIC does not answer, its switch is dead, every NIC below its T0 is cut off) is
  unknown, not bad.

The probes do not show the direction. A probe that comes home has crossed each link both ways. So a link that is cut or
lossy in one direction looks like one that is cut or lossy in both, with about half the loss; `loss` is given as if both
directions were alike. For a T0-T1 link the direction can be asked for (`orchestrator.mapper.fault_direction`), for a
NIC-T0 link it cannot. Nor do probes tell a lossy cable from a lossy port at either end.

A bad link is good again when its probes have come home without a loss for `heal_ns`, and when there were so many of
them that the former loss would have shown.

arXiv 2605.04333 8 (Clustermapper: links tested by probes addressed back to the sender, told apart, deny list fed).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mrcfabric.naming import t0_name, t1_name
from mrcfabric.topology import Topology
from mrcfabric.units import Instant
from orchestrator.mapper.link_evidence import LinkEvidence
from orchestrator.mapper.link_verdicts import BAD, Cable, LinkMap, LinkVerdict, Verdict
from orchestrator.mapper.t0_view import Case, MapperSettings, T0View, Verdicts, withhold


@dataclass(slots=True)
class Clustermapper:
    """Remembers which links were found bad, and judges all links again at each look."""

    topology: Topology
    settings: MapperSettings
    evidence: LinkEvidence = field(init=False)
    _cases: dict[Cable, Case] = field(init=False, default_factory=dict)
    _seen_dead: dict[str, Instant] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.evidence = LinkEvidence(self.topology.nics, self.settings.window_ns)

    def enter(self, nic: int, at_ns: Instant, table: Mapping[str, Any] | None) -> None:
        """Enter a NIC's link table as it was at `at_ns`; None: the NIC does not answer.

        Counting begins with its first table.
        """
        self.evidence.enter(nic, at_ns, table)

    def look(self, at_ns: Instant) -> LinkMap:
        """Judge every link by the tables entered so far.

        Call it once per round of tables: healing counts new probes.
        """
        found: Verdicts = {}
        dead: list[str] = []
        for plane in range(self.topology.planes):
            verdicts: Verdicts = {}
            fading: set[Cable] = set()
            for t0 in range(self.topology.t0_per_plane):
                view = T0View(self.topology, self.settings, self.evidence, self._cases, plane, t0, at_ns)
                verdicts |= view.judge()
                fading |= view.fading
                if view.dead:
                    dead.append(t0_name(plane, t0))
            t1s = range(self.topology.t1_per_plane)
            dead += [t1_name(plane, t1) for t1 in t1s if self._dead_t1(plane, t1, verdicts, fading)]
            found |= verdicts
        self._seen_dead |= dict.fromkeys(dead, at_ns)
        links = [self._in_its_time(at_ns, found[cable]) for cable in self.cables()]
        return LinkMap(at_ns, tuple(links), tuple(dead))

    def cables(self) -> Iterator[Cable]:
        """Every link once, in the order of `Topology.links`."""
        topology = self.topology
        for nic in range(topology.nics):
            for plane in range(topology.planes):
                yield Cable(plane, nic // topology.nics_per_t0, nic, None)
        for plane in range(topology.planes):
            for t0 in range(topology.t0_per_plane):
                for t1 in range(topology.t1_per_plane):
                    yield Cable(plane, t0, None, t1)

    def _dead_t1(self, plane: int, t1: int, verdicts: Verdicts, fading: set[Cable]) -> bool:
        """Whether every T0 that could try a T1 is cut off from it. If so, its links become unknown."""
        cables = [Cable(plane, t0, None, t1) for t0 in range(self.topology.t0_per_plane)]
        tried = [cable for cable in cables if verdicts[cable].verdict != Verdict.UNKNOWN]
        cut = [cable for cable in tried if verdicts[cable].verdict == Verdict.DOWN]
        name = t1_name(plane, t1)
        if len(cut) == len(tried) > 1:
            for cable in cables:
                verdicts[cable] = LinkVerdict(cable, Verdict.UNKNOWN, note=f"behind {name}, which is dead")
            return True
        if len(cut) == len(tried) == 1:
            verdicts[cut[0]] = verdicts[cut[0]].noted(f"or {name} itself: no other witness")
        elif len(tried) > 1 and all(cable in cut or cable in fading for cable in tried):
            withhold(verdicts, tried, name)
        return False

    def _in_its_time(self, at_ns: Instant, found: LinkVerdict) -> LinkVerdict:
        """Hold an accusation back until the other links of the same switch had time to fall silent or return, too."""
        if found.verdict not in BAD:
            return found
        seen_ns = max(self._seen_dead.get(end, -1) for end in found.cable.name.split("~"))
        if found.verdict == Verdict.DOWN and 0 <= seen_ns >= at_ns - self.settings.heal_ns:
            return LinkVerdict(found.cable, Verdict.UNKNOWN, note="its switch was dead until now")
        if found.since_ns is not None and at_ns - found.since_ns < self.settings.confirm_ns:
            return found.withheld("to be confirmed")
        return found
