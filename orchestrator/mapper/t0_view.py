"""Judges one T0 of one plane at one look: its links to NICs and to T1s.

Owns what counts as cut, lossy, healed and unknown, and the open cases of links found bad.
`orchestrator.mapper.clustermapper` explains the rules and their limits, and puts the T0s together.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from mrcfabric.errors import ConfigError
from mrcfabric.naming import nic_name, t0_name
from mrcfabric.topology import Topology
from mrcfabric.units import Instant
from orchestrator.mapper.link_evidence import NONE, Counts, LinkEvidence, Way
from orchestrator.mapper.link_inference import ODDS, Findings, explain
from orchestrator.mapper.link_likelihood import Trial
from orchestrator.mapper.link_verdicts import BAD, Cable, LinkVerdict, Verdict
from orchestrator.mapper.loss_statistics import (
    FALSE_ALARM,
    TOLERATED,
    clean_needed,
    least_share,
    loss_below,
    one_way,
)

Verdicts: TypeAlias = dict[Cable, LinkVerdict]
FADING_PROBES = 3
"""When each link of a switch lost this many probes in a row, none is accused until it is clear if the switch died."""
_BLIND_FACTOR = 4
"""When only NICs with lossy links of their own can try a link, it must stay silent this many times longer."""


@dataclass(frozen=True, slots=True)
class MapperSettings:
    """Settings of the judgement. Times are nanoseconds of fabric time."""

    window_ns: int
    """How far back losses count. A longer window finds smaller losses, and keeps old ones longer."""
    heal_ns: int
    """For how long the probes of a bad link must come home before the link is good again."""
    settle_ns: int
    """Losses of a link that was cut still count as the cut's for this long after the first probe came home: the
    time-out of a probe plus the time between two looks."""
    confirm_ns: int = 0
    """A link is only a suspect for this long before it is accused; meanwhile other links of a dying switch catch up."""
    silent_probes: int = 8
    """After this many lost in a row a link is down: at 10 % loss per direction that has a chance of 2 in a million."""
    tolerated: float = TOLERATED
    """The share of round trips that a healthy link may lose."""
    false_alarm: float = FALSE_ALARM
    """The chance that one healthy link is called lossy at one look."""
    odds: float = ODDS
    """How much likelier an accused link must be than another link that its probes also cross."""
    probes_least: int = 8
    """With fewer probes in the window a link is unknown."""

    def __post_init__(self) -> None:
        """Raises ConfigError."""
        for name in ("window_ns", "heal_ns", "settle_ns", "silent_probes", "probes_least"):
            if getattr(self, name) < 1:
                raise ConfigError(f"mapper.{name}", f"{getattr(self, name)} is too small", "at least 1")
        for name in ("tolerated", "false_alarm"):
            if not 0 < getattr(self, name) < 1:
                raise ConfigError(f"mapper.{name}", f"{getattr(self, name)} is no share", "between 0 and 1")
        if self.odds < 1:
            raise ConfigError("mapper.odds", f"{self.odds} is too small", "at least 1")


@dataclass(slots=True)
class Case:
    """A link that was found bad and has not healed yet."""

    since_ns: Instant
    verdict: Verdict
    share: float = 1.0
    """The estimated share of its round trips that is lost."""
    least: float = 1.0
    """What it loses at least, except for a small chance. A link that was found early may look worse than it is."""
    lossy: bool = False
    """It has been gray for a while: when it comes back from being down, it is gray again."""
    back_ns: Instant = 0
    """When a cut link was first seen to let a probe through again."""
    clean_ns: Instant | None = None
    """Since when nothing has been lost."""
    clean_probes: int = 0


class T0View:
    """One T0 at one look."""

    def __init__(
        self,
        topology: Topology,
        settings: MapperSettings,
        evidence: LinkEvidence,
        cases: dict[Cable, Case],
        plane: int,
        t0: int,
        at_ns: Instant,
    ) -> None:
        self._settings = settings
        self._evidence = evidence
        self._cases = cases
        self._plane = plane
        self._t0 = t0
        self._at_ns = at_ns
        first = t0 * topology.nics_per_t0
        self._nics = range(first, first + topology.nics_per_t0)
        self._t1s = range(topology.t1_per_plane)
        self._answering = [nic for nic in self._nics if evidence.answers(nic)]
        self.dead = False
        """Set by `judge`: whether the T0 itself is dead."""
        self.fading: set[Cable] = set()
        """Set by `judge`: links that have let nothing through of late, but not for long enough to be called down."""

    def judge(self) -> Verdicts:
        """Judge all links of this T0; opens, updates and closes their cases."""
        for nic in self._answering:
            self._watch(self._nic_cable(nic), self._nic_is_cut(nic))
        tried = [nic for nic in self._answering if self._is_down(self._nic_cable(nic)) or self._own(nic).probes]
        cut = [nic for nic in tried if self._is_down(self._nic_cable(nic))]
        if len(cut) == len(tried) > 1:
            # Probes to T1s pass this T0, so they show nothing about the links behind it.
            self.dead = True
            return self._all_behind(t0_name(self._plane, self._t0))
        for t1 in self._t1s:
            self._watch(self._t1_cable(t1), self._t1_is_cut(t1))
            ways = self._ways_to(t1, steady=True)
            if ways and all(way.silent for way in ways) and _sum(ways).silent >= FADING_PROBES:
                self.fading.add(self._t1_cable(t1))
        findings = self._explain()
        for cable in findings.retracted:
            del self._cases[cable]
        for cable, share in findings.lossy.items():
            self._lossy(cable, share)
        for cable in [self._nic_cable(nic) for nic in self._answering] + [self._t1_cable(t1) for t1 in self._t1s]:
            self._heal(cable)
        verdicts = {self._nic_cable(nic): self._of_nic(nic, findings) for nic in self._nics}
        name = t0_name(self._plane, self._t0)
        if len(cut) == len(tried) == 1:
            cable = self._nic_cable(cut[0])
            verdicts[cable] = verdicts[cable].noted(f"or {name} itself: no other witness")
        elif len(tried) > 1 and all(nic in cut or self._own(nic).silent >= FADING_PROBES for nic in tried):
            withhold(verdicts, map(self._nic_cable, tried), name)
        return verdicts | {self._t1_cable(t1): self._of_t1(t1, findings) for t1 in self._t1s}

    # -- places

    def _nic_cable(self, nic: int) -> Cable:
        return Cable(self._plane, self._t0, nic, None)

    def _t1_cable(self, t1: int) -> Cable:
        return Cable(self._plane, self._t0, None, t1)

    def _way(self, t1: int | None) -> Way:
        return self._plane, t1

    def _own(self, nic: int) -> Counts:
        return self._evidence.window(nic, self._way(None))

    def _is_down(self, cable: Cable) -> bool:
        case = self._cases.get(cable)
        return case is not None and case.verdict == Verdict.DOWN

    def _witnesses(self) -> tuple[list[int], bool]:
        """The NICs that can try links beyond the T0, and whether their own links are good."""
        through = [nic for nic in self._answering if not self._is_down(self._nic_cable(nic))]
        good = [nic for nic in through if self._nic_cable(nic) not in self._cases]
        return (good, True) if good else (through, False)

    def _ways_to(self, t1: int, *, latest: bool = False, steady: bool = False) -> list[Counts]:
        """What the witnesses found on their paths through a T1; paths without probes are left out.

        `steady`: only witnesses whose latest probe round the T0 came home, so that they can see what lies behind it.
        """
        look = self._evidence.latest if latest else self._evidence.window
        witnesses = [nic for nic in self._witnesses()[0] if not (steady and self._own(nic).silent)]
        return [counts for counts in (look(nic, self._way(t1)) for nic in witnesses) if counts.probes]

    def _judging(self, cable: Cable, *, latest: bool = False) -> Counts:
        """The probes by which a link is judged on its own."""
        if cable.nic is not None:
            look = self._evidence.latest if latest else self._evidence.window
            return look(cable.nic, self._way(None))
        return _sum(self._ways_to(cable.t1 or 0, latest=latest))

    # -- cut links

    def _nic_is_cut(self, nic: int) -> bool:
        if not self._evidence.carrier(nic, self._plane):
            return True
        return self._own(nic).silent >= self._settings.silent_probes and bool(self._own(nic).probes)

    def _t1_is_cut(self, t1: int) -> bool:
        wanted = self._settings.silent_probes * (1 if self._witnesses()[1] else _BLIND_FACTOR)
        ways = self._ways_to(t1, steady=True)
        if ways and all(way.silent for way in ways) and sum(way.silent for way in ways) >= wanted:
            return True
        recent = _sum(self._ways_to(t1, latest=True, steady=True))
        return recent.probes >= wanted and recent.lost == recent.probes

    def _watch(self, cable: Cable, cut: bool) -> None:
        """Open a case for a cut link. A cut link that lets probes through again is a suspect until it has healed."""
        case = self._cases.get(cable)
        if case is None:
            if cut:
                self._cases[cable] = Case(self._at_ns, Verdict.DOWN)
        elif cut:
            case.verdict = Verdict.DOWN
            case.clean_ns = None
        elif case.verdict == Verdict.DOWN:
            recent = self._judging(cable, latest=True)
            if recent.probes > recent.lost:
                case.verdict, case.back_ns = Verdict.GRAY, self._at_ns
                if not case.lossy:
                    case.verdict, case.share, case.least = Verdict.SUSPECT, 1.0, 1.0
                self._forget(cable)
        elif case.back_ns and self._at_ns - case.back_ns <= self._settings.settle_ns:
            self._forget(cable)

    # -- lossy links

    def _explain(self) -> Findings[Cable]:
        """Find the links to blame for the losses; leaves out cut links and what lies behind them."""
        trials: list[Trial[Cable]] = []
        for nic in self._answering:
            own = self._nic_cable(nic)
            if self._is_down(own):
                continue
            trials.append(Trial((own,), *self._own(nic)[:2]))
            for t1 in self._t1s:
                cable = self._t1_cable(t1)
                if not self._is_down(cable):
                    trials.append(Trial((own, cable), *self._evidence.window(nic, self._way(t1))[:2]))
        tried = [trial for trial in trials if trial.probes]
        known = [
            cable
            for cable, case in self._cases.items()
            if (cable.plane, cable.t0) == (self._plane, self._t0) and case.verdict == Verdict.GRAY
        ]
        settings = self._settings
        groups = [self._nic_cable(nic) for nic in self._nics], [self._t1_cable(t1) for t1 in self._t1s]
        return explain(tried, known, settings.tolerated, settings.false_alarm, settings.odds, groups)

    def _lossy(self, cable: Cable, share: float) -> None:
        case = self._cases.get(cable)
        if case is None:
            case = self._cases[cable] = Case(self._at_ns, Verdict.GRAY)
        elif case.verdict == Verdict.SUSPECT:
            case.verdict = Verdict.GRAY
        # Probes that come home after the loss has ended must not make the loss look small.
        elif case.clean_ns is not None or share <= 2 * self._settings.tolerated:
            return
        probes = self._judging(cable).probes
        if cable.nic is not None:
            probes += sum(self._evidence.window(cable.nic, self._way(t1)).probes for t1 in self._t1s)
        case.share, case.least = share, least_share(probes, round(share * probes))
        # The first losses of a link that is being cut look like a lossy link, so gray counts only after a while.
        case.lossy = case.lossy or self._at_ns - case.since_ns > self._settings.confirm_ns

    def _heal(self, cable: Cable) -> None:
        """Close the case of a link whose probes have come home for long enough."""
        case = self._cases.get(cable)
        recent = NONE if case is None else self._judging(cable, latest=True)
        if case is None or case.verdict == Verdict.DOWN or not recent.probes:
            return
        if cable.nic is None and not self._witnesses()[1]:
            return
        beyond = self._beyond(cable)
        if recent.lost or beyond.lost:
            case.clean_ns, case.clean_probes = None, 0
            return
        if case.clean_ns is None:
            case.clean_ns = self._at_ns
        case.clean_probes += recent.probes + beyond.probes
        if self._at_ns - case.clean_ns >= self._settings.heal_ns and case.clean_probes >= clean_needed(case.least):
            del self._cases[cable]
            self._forget(cable)

    def _beyond(self, cable: Cable) -> Counts:
        """The latest probes across a NIC's link on their way to T1s whose own links are not to blame."""
        if cable.nic is None:
            return NONE
        innocent = [t1 for t1 in self._t1s if self._t1_cable(t1) not in self._cases]
        return _sum([self._evidence.latest(cable.nic, self._way(t1)) for t1 in innocent])

    def _forget(self, cable: Cable) -> None:
        """Ignore what was found across a link so far: it says nothing about the link's present state."""
        if cable.nic is not None:
            for t1 in (None, *self._t1s):
                self._evidence.forget(cable.nic, self._way(t1))
            return
        for nic in self._nics:
            self._evidence.forget(nic, self._way(cable.t1))

    # -- verdicts

    def _of_nic(self, nic: int, findings: Findings[Cable]) -> LinkVerdict:
        cable = self._nic_cable(nic)
        if nic not in self._answering:
            return self._untried(cable, f"{nic_name(nic)} does not answer")
        note = "" if self._evidence.carrier(nic, self._plane) else "no carrier"
        return self._verdict(cable, findings, note)

    def _of_t1(self, t1: int, findings: Findings[Cable]) -> LinkVerdict:
        cable = self._t1_cable(t1)
        if not self._ways_to(t1):
            return self._untried(cable, f"no NIC below {t0_name(self._plane, self._t0)} could try it")
        return self._verdict(cable, findings, "")

    def _untried(self, cable: Cable, why: str) -> LinkVerdict:
        case = self._cases.get(cable)
        if case is None:
            return LinkVerdict(cable, Verdict.UNKNOWN, note=why)
        return LinkVerdict(cable, case.verdict, loss=one_way(case.share), since_ns=case.since_ns, note=f"then {why}")

    def _verdict(self, cable: Cable, findings: Findings[Cable], note: str) -> LinkVerdict:
        probes, lost, _ = self._judging(cable)
        case = self._cases.get(cable)
        if case is not None:
            loss = 1.0 if case.verdict == Verdict.DOWN else one_way(case.share)
            if case.verdict == Verdict.SUSPECT:
                loss, note = one_way(lost / max(1, probes)), "was cut"
            if case.clean_ns is not None:
                note += f"{', ' if note else ''}nothing lost since {case.clean_ns / 1000:.0f} us"
            return LinkVerdict(cable, case.verdict, probes, lost, loss, case.since_ns, note)
        if probes < self._settings.probes_least:
            return LinkVerdict(cable, Verdict.UNKNOWN, probes, lost, note=f"only {probes} probes")
        if cable in findings.suspects:
            return LinkVerdict(cable, Verdict.SUSPECT, probes, lost, one_way(lost / probes), note="too few losses yet")
        return LinkVerdict(cable, Verdict.GOOD, probes, lost, loss_below(probes))

    def _all_behind(self, t0: str) -> Verdicts:
        cables: Iterable[Cable] = [self._nic_cable(nic) for nic in self._nics] + [
            self._t1_cable(t1) for t1 in self._t1s
        ]
        return {cable: LinkVerdict(cable, Verdict.UNKNOWN, note=f"behind {t0}, which is dead") for cable in cables}


def withhold(verdicts: Verdicts, cables: Iterable[Cable], switch: str) -> None:
    """Make accused links of a switch that seems to be dying suspects until that is clear."""
    for cable in cables:
        if verdicts[cable].verdict in BAD:
            verdicts[cable] = verdicts[cable].withheld(f"{switch} is going silent as a whole")


def _sum(ways: list[Counts]) -> Counts:
    return Counts(sum(way.probes for way in ways), sum(way.lost for way in ways), sum(way.silent for way in ways))
