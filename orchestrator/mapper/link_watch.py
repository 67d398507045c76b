"""Watches the links of a fabric: looks at intervals, makes a map, and derives deny lists from it.

Owns the figures of a watch and its state between two looks. Pure: takes tables and returns orders.
`orchestrator.mapper.mapping` (daemons) and `orchestrator.mapper.simulated_mapping` (virtual time) drive it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from mrcfabric.errors import ConfigError
from mrcfabric.naming import nic_name
from mrcfabric.topology import Topology
from mrcfabric.units import NS_PER_S, Instant
from nicd.compose import nic_settings
from nicd.core.mrc.deny_list import Entry
from nicd.core.settings_self_probe import SELF_PROBE_PERIOD_NS_MIN
from orchestrator.mapper.clustermapper import Clustermapper
from orchestrator.mapper.deny_plan import DenyFloor, DenyPlan, arguments, changes, plan_denials
from orchestrator.mapper.fault_direction import Direction, Loop, Question, direction, question
from orchestrator.mapper.link_evidence import NONE, Counts
from orchestrator.mapper.link_verdicts import BAD, Cable, LinkMap
from orchestrator.mapper.loss_statistics import POWER, probes_to_find
from orchestrator.mapper.t0_view import MapperSettings
from orchestrator.planning.abilities import need_mrc

PERIOD_RTTS = 4
PERIOD_NS_MAX = NS_PER_S
"""The longest period, so that a mistyped one does not make a watch that never looks."""
LOOK_PERIODS = 8
HEAL_PERIODS = 64
WINDOW_PERIODS = 512
QUESTIONS_MAX = 8
"""How many links may have an open question about their direction at a time."""
GAP_SHARE = 8
"""How many probes of a loop a NIC sends in one period."""
FIND_LOSS = 0.01
"""The default loss per direction that a check finds."""


class Order(NamedTuple):
    """One command for one NIC."""

    nic: int
    op: str
    args: dict[str, Any]

    @property
    def node(self) -> str:
        return nic_name(self.nic)


def check_period(where: str, written: str, period_ns: int) -> None:
    """Raises ConfigError for a time in which NICs do no round of probes; `written`: as somebody wrote it."""
    if not SELF_PROBE_PERIOD_NS_MIN <= period_ns <= PERIOD_NS_MAX:
        hint = f"from {SELF_PROBE_PERIOD_NS_MIN} ns to {PERIOD_NS_MAX} ns of fabric time, as 20us"
        raise ConfigError(where, f"a round of probes cannot take {written}", hint)


@dataclass(frozen=True, slots=True)
class WatchSettings:
    """The figures of a watch. Times are nanoseconds of fabric time."""

    period_ns: int
    """The period of the NICs' rounds of probes."""
    look_ns: int
    """The time between two looks."""
    mapper: MapperSettings
    floor: DenyFloor
    deny: bool = False
    """Whether to fill the NICs' deny lists."""

    def __post_init__(self) -> None:
        """Raises ConfigError."""
        check_period("mapper.period_ns", f"{self.period_ns} ns", self.period_ns)
        if self.look_ns < 1:
            raise ConfigError("mapper.look_ns", f"{self.look_ns} is too small", "at least 1")

    @classmethod
    def of(cls, topology: Topology, period_ns: int | None = None, *, deny: bool = False) -> "WatchSettings":
        """The defaults: a round every 4 base RTT, a look every 8 rounds, healed after 64, losses forgotten after 512.

        NICs that probe by themselves keep their own period. Raises ConfigError for NICs that cannot probe links.
        """
        need_mrc(topology, "mapper", "only MRC NICs probe links", "`mrcfabric switch show` counts drops by port")
        period = nic_settings(topology).self_probe_period_ns or PERIOD_RTTS * topology.base_rtt_ns()
        period = period if period_ns is None else period_ns
        look = LOOK_PERIODS * period
        settle = nic_settings(topology).self_probe_timeout_ns + look
        mapper = MapperSettings(
            window_ns=WINDOW_PERIODS * period, heal_ns=HEAL_PERIODS * period, settle_ns=settle, confirm_ns=look
        )
        return cls(period, look, mapper, DenyFloor.of(topology), deny)


def rounds_to_find(topology: Topology, loss: float, power: float = POWER) -> int:
    """After how many rounds each link with this loss per direction is found with probability `power`.

    In each round as many probes cross a T0-T1 link as NICs share the work, and at least as many cross a NIC-T0 link.
    """
    testers = min(nic_settings(topology).self_probe_testers, topology.nics_per_t0)
    return -(-probes_to_find(loss, power) // testers)


class LinkWatch:
    """One watch over one fabric."""

    def __init__(self, topology: Topology, settings: WatchSettings) -> None:
        self.topology = topology
        self.settings = settings
        self.mapper = Clustermapper(topology, settings.mapper)
        self.latest: LinkMap | None = None
        """The map of the latest look."""
        self.plan = DenyPlan()
        """What to deny because of that map."""
        self.looks = 0
        self.accusations = 0
        """How often a link or switch was found bad so far; one that is found again counts again."""
        self._mine: dict[int, set[Entry]] = {}
        self._asked: dict[Cable, Question] = {}
        self._directions: dict[Cable, Direction] = {}

    def take(self, at_ns: Instant, tables: Mapping[int, Mapping[str, Any] | None]) -> LinkMap:
        """Take a look: the tables of all NICs as they were at `at_ns`; None for a NIC that does not answer."""
        for nic, table in tables.items():
            self.mapper.enter(nic, at_ns, table)
        before = set(self.latest.bad) if self.latest else set()
        self.latest = self._directed(self.mapper.look(at_ns), tables)
        self.looks += 1
        self.accusations += len(set(self.latest.bad) - before)
        if self.settings.deny:
            self.plan = plan_denials(self.topology, self.latest, self.settings.floor)
        return self.latest

    def hear(self, tables: Mapping[int, Mapping[str, Any] | None]) -> LinkMap:
        """Add directions to the latest map from answers that have come since. Its verdicts do not change."""
        assert self.latest is not None, "after a look"
        self.latest = self._directed(self.latest, tables)
        return self.latest

    def asleep(self, tables: Mapping[int, Mapping[str, Any] | None]) -> list[Order]:
        """Orders for NICs that do not probe with this watch's period: they were not told, or have started again."""
        period_ns = self.settings.period_ns
        return [
            Order(nic, "probe_links", {"period_ns": period_ns})
            for nic, table in tables.items()
            if table is not None and table["period_ns"] != period_ns
        ]

    def questions(self) -> list[Order]:
        """Orders that ask for the direction of bad T0-T1 links, for those links that have not been asked about."""
        orders: list[Order] = []
        assert self.latest is not None, "after a look"
        gap_ns = max(1, self.settings.period_ns // GAP_SHARE)
        for link in self.latest.of(*BAD):
            cable = link.cable
            if cable.t1 is None or cable in self._directions or cable in self._asked:
                continue
            asked = question(self.topology, self.latest, cable)
            if asked is None:
                self._directions[cable] = Direction.OPEN
            elif len(self._asked) < QUESTIONS_MAX:
                self._asked[cable] = asked
                figures = {"probes": asked.probes, "gap_ns": gap_ns}
                loops = asked.up, asked.down
                orders += [Order(asked.nic, "probe_loop", {**loop._asdict(), **figures}) for loop in loops]
        return orders

    def _directed(self, found: LinkMap, tables: Mapping[int, Mapping[str, Any] | None]) -> LinkMap:
        """Add to a map the directions that loops have shown by now."""
        bad = {link.cable for link in found.of(*BAD)}
        self._asked = {cable: asked for cable, asked in self._asked.items() if cable in bad}
        self._directions = {cable: told for cable, told in self._directions.items() if cable in bad}
        for cable, asked in list(self._asked.items()):
            table = tables.get(asked.nic)
            if table is None:
                continue
            up, down = (_counts(table, loop) for loop in (asked.up, asked.down))
            told = direction(up, down)
            ended = min(up.probes, down.probes) >= asked.probes or not (table["loops_left"] or table["waiting"])
            if told != Direction.OPEN or ended:
                self._directions[cable] = told
                del self._asked[cable]
        links = [replace(link, direction=str(self._directions.get(link.cable, ""))) for link in found.links]
        return replace(found, links=tuple(links))

    def concerned(self) -> list[int]:
        """The NICs whose deny lists may have to change."""
        return sorted(set(self.plan.entries) | set(self._mine))

    def orders(self, present: Mapping[int, Iterable[Entry]]) -> list[Order]:
        """The orders that change these NICs' lists from `present` to what the plan asks for."""
        found = []
        for nic, entries in present.items():
            wanted = self.plan.entries.get(nic, set())
            mine = self._mine.get(nic, set())
            found += [Order(nic, op, arguments(entry)) for op, entry in changes(wanted, entries, mine)]
            if wanted:
                self._mine[nic] = set(wanted)
            else:
                self._mine.pop(nic, None)
        return found

    def lift_all(self) -> list[Order]:
        """End the watch: plan no denials, and return orders that set the NICs' probes back to their own period."""
        self.plan = DenyPlan()
        period_ns = nic_settings(self.topology).self_probe_period_ns
        if period_ns == self.settings.period_ns:
            return []
        return [Order(nic, "probe_links", {"period_ns": period_ns}) for nic in range(self.topology.nics)]


def _counts(table: Mapping[str, Any], loop: Loop) -> Counts:
    """What a NIC's table says about a loop."""
    place = table["columns"].index
    back, lost, late = (place(name) - place("sent") + len(loop) for name in ("back", "lost", "late"))
    for row in table["loops"]:
        if tuple(row[: len(loop)]) == loop:
            return Counts(row[back] + row[lost], max(0, row[lost] - row[late]), 0)
    return NONE


def entries_of(rows: Iterable[Mapping[str, int | None]]) -> list[Entry]:
    """A NIC's deny list as entries."""
    return [(int(row["plane"] or 0), row["path"], row["peer_index"]) for row in rows]
