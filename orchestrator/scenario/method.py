"""The timetable: turns entries of `method` into faults with targets, figures and windows.

Owns what an entry means: which targets each repetition takes, how long it lasts, which figures it has. `timing`
computes the exact windows, `chaos` draws random faults, and `orchestrator.faults.selectors` resolves selectors.
Instants are offsets from the start of the entry until `placed` moves them to their place in the run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from mrcfabric.errors import ConfigError
from mrcfabric.rng import Rng
from mrcfabric.topology import Topology
from mrcfabric.units import Instant
from mrcfabric.wire.layout import PSN_MASK
from nicd.programs.catalogue import part_of
from nicd.programs.program import Program
from orchestrator.faults.checks import check, percent_least
from orchestrator.faults.fault import Fault, Figure, Window
from orchestrator.faults.host_map import ONE_HOST, HostMap
from orchestrator.faults.kinds import ABOUT_HOSTS, KINDS, Target
from orchestrator.faults.selectors import Selector, hosts_named, select
from orchestrator.planning.abilities import has_evs, transport_of
from orchestrator.scenario import timing
from orchestrator.scenario.paths_in_use import links_in_use
from orchestrator.scenario.process_kinds import PROCESSES
from orchestrator.yamlfile.document import Spot
from orchestrator.yamlfile.spelling import Scale, as_written, figure_of, share, spelled

FAULTS_MAX: Final = 4096
"""Faults of one plan; a plan with more is refused."""

_ENDLESS: Final = {"host_loss": "a lost host does not come back by itself"}
_ENDING: Final = {"switch_reboot": "for how long the switch is away"}


@dataclass(frozen=True, slots=True)
class Site:
    """The fabric and run for which a timetable is resolved."""

    topology: Topology
    scale: Scale
    seed: str
    length_ns: int
    begin_ns: Instant
    programs: tuple[Program, ...] = ()
    """The workloads."""
    host_map: HostMap | None = None
    """The known hosts. None: not known yet, and host faults keep the names of their hosts unchecked."""
    running: bool = False
    """The fabric runs already, and has QPs that nobody here knows of."""

    def length(self, written: int | str | None) -> int | None:
        return None if written is None else self.scale.length(written)


def faults_of(site: Site, spot: Spot, entry: Any, room_ns: int) -> list[Fault]:
    """The faults of an entry, offsets from its start; repetitions without a number begin within `room_ns`.

    The first has the entry's name, further ones (other targets) a number behind it. Raises ConfigError.
    """
    lasting_ns = checked_length(site, spot, entry)
    every_ns = _every(site, spot, entry, lasting_ns)
    try:
        starts = timing.starts(every_ns, None if entry.when else entry.times, room_ns)
        targets = _targets(site, spot, entry, len(starts))
        return [
            Fault(
                _id(entry.name, number),
                entry.fault,
                names,
                tuple(_windows(site, spot, entry, begins, lasting_ns)),
                title=entry.title,
            )
            for number, (names, begins) in enumerate(_turns(entry, targets, starts), 1)
        ]
    except timing.TooManyError:
        raise spot.wrong("asks for too many windows", f"at most {timing.WINDOWS_MAX}") from None


def settled(site: Site, spot: Spot, faults: Sequence[Fault]) -> list[Fault]:
    """The same faults, with host faults expanded into their nodes or links if the hosts are known.

    Raises ConfigError.
    """
    host_map = site.host_map
    if host_map is None:
        return list(faults)
    try:
        return [host_map.settled(site.topology, fault) for fault in faults]
    except ConfigError as error:
        raise (spot / "selector").about(error) from None


def placed(faults: Sequence[Fault], at_ns: Instant) -> list[Fault]:
    """The same faults, with `at_ns` added to their offsets."""
    return [replace(fault, windows=timing.moved(list(fault.windows), at_ns)) for fault in faults]


def _id(name: str, number: int) -> str:
    return name if number == 1 else f"{name}-{number}"


def _turns(
    entry: Any, targets: Sequence[tuple[str, ...]], starts: list[int]
) -> list[tuple[tuple[str, ...], list[int]]]:
    if entry.turns == "same":
        return [(targets[0], starts)]
    return [(names, [start]) for names, start in zip(targets, starts, strict=True)]


def checked_length(site: Site, spot: Spot, entry: Any) -> int | None:
    """How long one repetition lasts; None: until it is healed.

    Raises ConfigError for a length that its kind cannot have.
    """
    kind, lasting_ns = entry.fault, site.length(entry.lasting)
    if lasting_ns == 0:
        raise (spot / "for").wrong("a fault of no length", "leave it out for one that lasts to the end of the run")
    if lasting_ns is not None and kind in _ENDLESS:
        raise (spot / "for").wrong(f"a {kind} has no end", _ENDLESS[kind])
    if lasting_ns is None and kind in _ENDING:
        raise spot.wrong(f"a {kind} needs an end", f"for: {_ENDING[kind]}")
    if lasting_ns is None and KINDS[kind].flaps and entry.count is None:
        raise spot.wrong("flaps without an end", "for: 100rtt, or count: 5")
    return lasting_ns


def _every(site: Site, spot: Spot, entry: Any, lasting_ns: int | None) -> int | None:
    """The time from one repetition to the next."""
    every_ns = site.length(entry.every)
    if every_ns is None:
        if entry.times is not None and entry.when is None:
            raise (spot / "times").wrong("says how often, but not when", "every: 2s")
        if entry.turns != "same":
            raise (spot / "turns").wrong("is for repetitions", "every: 2s")
        return None
    if entry.when is not None:
        raise (spot / "every").wrong("cannot stand beside when", "times says how often a condition may start it")
    if every_ns == 0:
        raise (spot / "every").wrong("a repetition after no time")
    if entry.turns == "same" and (lasting_ns is None or lasting_ns > every_ns) and not KINDS[entry.fault].flaps:
        hint = f"for: at most {entry.every}, or turns: next for other targets each time"
        raise (spot / "every").wrong("the same targets are to break again before they are healed", hint)
    return every_ns


# Targets.


def selector_of(entry: Any) -> Selector:
    """The selector of an entry. Raises ConfigError whose `where` begins with selector."""
    given = {key: value for key, value in msgspec.to_builtins(entry.selector).items() if value is not None}
    given.pop("evs_of", None)
    for key in ("mode", "value", "direction"):
        if getattr(entry, key, None) is not None and (key != "direction" or entry.direction != "both"):
            given[key] = getattr(entry, key)
    return Selector.of_table(given)


def drawn_targets(site: Site, spot: Spot, entry: Any, rng: Rng) -> tuple[str, ...]:
    """Draw the targets of an entry once. Raises ConfigError."""
    crossed = None if entry.selector.evs_of is None else _crossed(site, spot / "selector" / "evs_of", entry)
    try:
        if site.host_map is None and entry.fault in ABOUT_HOSTS:
            return hosts_named(entry.fault, selector_of(entry))
        selector = selector_of(entry)
        if crossed is not None:
            selector = _in_use(site, entry, selector, crossed)
        return select(site.topology, entry.fault, selector, rng, site.host_map or ONE_HOST)
    except ConfigError as error:
        raise _about_selector(spot, error) from None


def _crossed(site: Site, spot: Spot, entry: Any) -> frozenset[str]:
    """The links that packets of an entry's flow cross. Raises ConfigError."""
    if KINDS[entry.fault].target is not Target.LINK:
        raise spot.wrong(f"a {entry.fault} is not about links")
    program, sender, receiver = _flow_of(site, spot, entry.selector.evs_of)
    if program.profile:
        raise spot.wrong(f"{program.name} has an EV profile of its own, whose EVs are not known beforehand")
    before = site.programs[: site.programs.index(program)]
    if transport_of(site.topology) == "rc" and (site.running or any(one.kind in PROCESSES for one in before)):
        others = "a fabric that runs already" if site.running else "ranks that are processes"
        raise spot.wrong(f"beside QPs of {others} the ports of RC are not known beforehand", "tier: t0-t1, mode: one")
    if not (crossed := links_in_use(site.topology, program, sender, receiver, before)):
        raise spot.wrong(f"packets of {entry.selector.evs_of} cross no T1: both NICs are below one T0")
    return crossed


def _in_use(site: Site, entry: Any, selector: Selector, crossed: frozenset[str]) -> Selector:
    """The selector, narrowed to links that packets of the entry's flow cross. Raises ConfigError as `selector_of`."""
    everything = replace(selector, mode="all", value=None, direction="both")
    meant = select(site.topology, entry.fault, everything, Rng(""), ONE_HOST)
    links = tuple(link for link in meant if link in crossed)
    if not links:
        what = f"no path in use of {entry.selector.evs_of} crosses what else is selected"
        raise ConfigError("selector.evs_of", what)
    return Selector(links=links, mode=selector.mode, value=selector.value, direction=selector.direction)


def of_mrc_alone(site: Site, spot: Spot, what: str, hint: str) -> None:
    """Raises ConfigError in a fabric whose NICs have another transport."""
    if not has_evs(site.topology):
        raise spot.wrong(f"{what}, and the NICs of this fabric run nic.transport {transport_of(site.topology)}", hint)


def _flow_of(site: Site, spot: Spot, text: str) -> tuple[Program, int, int]:
    """The workload of a flow, and the ranks of its sender and receiver. Raises ConfigError."""
    name, _, flow = text.partition(":")
    sender, _, receiver = flow.partition(">")
    program = next((one for one in site.programs if one.name == name), None)
    if program is None or not receiver:
        raise spot.wrong(f"{text} is no flow of a workload", "as pair:h000>h002")
    if program.kind in PROCESSES:
        raise spot.wrong(f"the ranks of {name} are processes, whose QPs are not known beforehand")
    nics = [site.topology.node_name(nic) for nic in program.ranks]
    for nic in (sender, receiver):
        if nic not in nics:
            raise spot.wrong(f"{nic} has no rank in {name}", ", ".join(nics[:8]))
    ranks = nics.index(sender), nics.index(receiver)
    if ranks[1] not in (peers := part_of(program, ranks[0]).peers):
        known = ", ".join(nics[peer] for peer in peers[:8])
        raise spot.wrong(f"{sender} and {receiver} exchange nothing in {name}", f"with {sender}: {known}")
    return program, *ranks


def _about_selector(spot: Spot, error: ConfigError) -> ConfigError:
    head, _, key = error.where.partition(".")
    if head != "selector":
        return (spot / "selector").about(error)
    if not key:
        return (spot / "selector").wrong(error.what, error.hint)
    return (spot / key if key in ("mode", "value", "direction") else spot / "selector" / key).wrong(
        error.what, error.hint
    )


def _targets(site: Site, spot: Spot, entry: Any, turns: int) -> list[tuple[str, ...]]:
    """The targets of each repetition; a single set if all share it."""
    rng = Rng(site.seed, "targets", entry.name)
    if site.host_map is None and entry.fault in ABOUT_HOSTS:
        return [drawn_targets(site, spot, entry, rng)] * turns
    if entry.turns == "same":
        return [drawn_targets(site, spot, entry, rng)]
    if entry.turns == "anew":
        return [drawn_targets(site, spot, entry, rng) for _ in range(turns)]
    if entry.mode not in ("one", "fixed"):
        raise (spot / "turns").wrong("next needs to know how many each time", "mode: one, or mode: fixed with a value")
    each = entry.value or 1
    everything = msgspec.structs.replace(entry, mode="all", value=None)
    names = list(drawn_targets(site, spot, everything, rng))
    rng.shuffle(names)
    if each * turns > len(names):
        what = f"{turns} times {each} targets are asked for, {len(names)} are meant"
        raise (spot / "turns").wrong(what, "turns: anew may take one again")
    return [tuple(names[turn * each : turn * each + each]) for turn in range(turns)]


# Figures and windows.


def figures_of(site: Site, spot: Spot, entry: Any) -> dict[str, Figure]:
    """The figures of a fault, with defaults for those that are not given. Raises ConfigError."""
    found: dict[str, Figure] = {}
    for name, row in KINDS[entry.fault].figures.items():
        written = getattr(entry, spelled(name))
        found[name] = row.default if written is None else figure_of(name, written, site.scale)
    if getattr(entry, "flow", None) is not None:
        program, sender, receiver = _flow_of(site, spot / "flow", entry.flow)
        if entry.packet is None or entry.qpn is not None or entry.psn is not None:
            raise spot.wrong("names no packet, or two", "packet: 3 beside flow, or qpn and psn")
        if entry.qp > program.qps:
            raise (spot / "qp").wrong(f"there is no QP {entry.qp}: {program.name} has {program.qps} between two ranks")
        found["qpn"] = program.qpn(sender, entry.qp - 1)
        found["psn"] = program.psn(sender, receiver, entry.qp - 1) + entry.packet - 1 & PSN_MASK
    return found


def _windows(site: Site, spot: Spot, entry: Any, starts: Sequence[int], lasting_ns: int | None) -> list[Window]:
    found: list[Window] = []
    for number, start_ns in enumerate(starts):
        found += windows_of(site, spot, entry, start_ns, lasting_ns, Rng(site.seed, "windows", entry.name, number))
    if len(found) > timing.WINDOWS_MAX:
        raise timing.TooManyError
    try:
        return timing.joined(found)
    except ValueError:
        raise spot.wrong("begins anew before it is over", "a shorter for, or a longer every") from None


def windows_of(site: Site, spot: Spot, entry: Any, start_ns: int, lasting_ns: int | None, rng: Rng) -> list[Window]:
    """The windows of one repetition of an entry. Raises ConfigError, TooManyError."""
    figures = figures_of(site, spot, entry)
    if KINDS[entry.fault].flaps:
        return timing.flaps(start_ns, lasting_ns, figures, _flap(site, spot, entry), rng)
    if (slope := getattr(entry, "ramp", None)) is not None:
        return timing.ramp(start_ns, lasting_ns, figures, _slope(site, spot / "ramp", slope, figures, lasting_ns))
    return timing.plain(start_ns, lasting_ns, figures)


def _flap(site: Site, spot: Spot, entry: Any) -> timing.Flap:
    period_ns, duty = site.scale.length(entry.period), share(entry.duty)
    if period_ns < 2:
        raise (spot / "period").wrong("is too short")
    if not 0 < duty < 1:
        raise (spot / "duty").wrong(f"{entry.duty} of a period", "more than nothing, less than all")
    return timing.Flap(period_ns, duty, entry.count, site.scale.length(entry.jitter))


def _slope(site: Site, spot: Spot, ramp: Any, figures: Mapping[str, Figure], lasting_ns: int | None) -> timing.Slope:
    over_ns = site.length(ramp.over)
    over_ns = lasting_ns if over_ns is None else over_ns
    if over_ns is None:
        raise spot.wrong("has no length", "over: 100rtt")
    if over_ns < ramp.steps or (lasting_ns is not None and over_ns > lasting_ns):
        raise (spot / "over").wrong(
            f"{over_ns} ns will not do", "at least a nanosecond per step, at most as long as for"
        )
    to: dict[str, int] = {}
    for name in figures:
        written = getattr(ramp.to, spelled(name), None)
        if written is None:
            continue
        if figures[name] is None:
            raise (spot / "to" / spelled(name)).wrong(
                "says whereto, but not from where", f"{spelled(name)} beside ramp"
            )
        to[name] = figure_of(name, written, site.scale)
    if not to:
        raise (spot / "to").wrong("names no figure")
    return timing.Slope(to, over_ns, ramp.steps)


def checked(site: Site, spot: Spot, fault: Fault) -> None:
    """Raises ConfigError in the words of the file if the fabric cannot have a fault of this entry."""
    try:
        check(site.topology, fault, placed=site.host_map is not None)
    except ConfigError as error:
        kind, _, figure = error.where.partition(".")
        what, hint = map(as_written, (error.what, error.hint))
        if kind == fault.kind and figure in KINDS[kind].figures:
            hint = f"{percent_least(figure):g}% to 100%" if figure.endswith("_ppm") else hint
            raise (spot / spelled(figure)).wrong(what, hint) from None
        raise spot.wrong(f"{error.where}: {what}", hint) from None
