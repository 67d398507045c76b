"""Turns a scenario file into a plan: every name chosen, every length in fabric time, every random choice drawn.

Owns the order of these steps, and the checks that no single entry can make: names that must differ, faults that would
begin after the end. `workloads`, `method`, `chaos` and `expectations` resolve the entries.
"""

import dataclasses
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from mrcfabric import bundles
from mrcfabric.errors import ConfigError
from mrcfabric.naming import shown
from mrcfabric.topology import Topology
from mrcfabric.topology_file import SYSTEM_KEY, TopologyFile, beside, read_part
from mrcfabric.units import NS_PER_S, Instant
from nicd.core.settings_self_probe import SELF_PROBE_PERIOD_NS_MIN
from nicd.programs.program import PROGRAMS_MAX, Program
from orchestrator.faults.fault import Fault
from orchestrator.faults.host_map import HostMap
from orchestrator.faults.kinds import ABOUT_HOSTS
from orchestrator.measures.expectation import Expectation
from orchestrator.planning.plan import check as check_topology
from orchestrator.scenario import chaos
from orchestrator.scenario.expectations import ANY_FAULT, condition_of, expectation_of
from orchestrator.scenario.method import FAULTS_MAX, Site, checked, faults_of, of_mrc_alone, placed, settled
from orchestrator.scenario.model import DRAWN, ENTRIES, WORKLOADS, ChaosEntry, ScenarioFile
from orchestrator.scenario.orders import orders_of
from orchestrator.scenario.plan import LinkTests, Plan, Trigger
from orchestrator.scenario.workloads import program_of, traces_read
from orchestrator.yamlfile.decode import by_kind, decode
from orchestrator.yamlfile.document import FABRIC_KEY, FLAG, Document, Spot, read
from orchestrator.yamlfile.spelling import Scale, share

BEGIN_RTTS: Final = 10
"""Instant 0 of the timetable, in base RTTs of the fabric: time to load everything before it."""
Hosts: TypeAlias = Callable[[Topology], HostMap]
_NUMBERED = re.compile(r"(-[0-9]+)+$")

_OF_SCENARIOS: Final = {"workload", "method", "expect", "steady_state", "length"}
_OF_TOPOLOGIES: Final = {
    "planes",
    "t0_per_plane",
    "t1_per_plane",
    "nics_per_t0",
    "rate_bps",
    "nic",
    "switch",
    "wire",
    "dscp",
}


def load(
    path: str,
    overrides: Sequence[str] = (),
    *,
    seed: str | None = None,
    topology: Topology | None = None,
    begin_ns: Instant | None = None,
    programs_before: int = 0,
    hosts: Hosts | None = None,
) -> Plan:
    """The plan of a scenario file with `key=value` flags on top.

    `seed` overrides that of the file. For a running fabric: `topology` is that fabric's, and the file must not
    contradict it; `begin_ns` is a future instant of that fabric; `programs_before` programs have been loaded in it
    before. `hosts` maps nodes to hosts, for host faults; without it such faults keep the names of their hosts
    unchecked, and the plan cannot be run. Raises ConfigError: `file:line: what (hint)`.
    """
    document = read(path, overrides)
    return resolve(
        document, seed=seed, topology=topology, begin_ns=begin_ns, programs_before=programs_before, hosts=hosts
    )


def resolve(
    document: Document,
    *,
    seed: str | None = None,
    topology: Topology | None = None,
    begin_ns: Instant | None = None,
    programs_before: int = 0,
    hosts: Hosts | None = None,
) -> Plan:
    """As `load`, of a document that has been read."""
    root = Spot(document)
    _refuse_topology(document)
    _read_traces(document)
    file = decode(root, document.root, ScenarioFile)
    source = _fabric(document, file.system, topology)
    if seed is None:
        seed = str(file.seed) if file.seed is not None else source.topology.seed
    seeded = _seeded(source.topology, seed)
    fabric = topology or seeded
    scale = Scale.of(fabric, file.nominal_dilation)
    length_ns = _positive(root, "length", scale.length(file.length))
    look_ns = _positive(root, "look", scale.length(file.look))
    begin_ns = BEGIN_RTTS * scale.rtt_ns if begin_ns is None else begin_ns
    host_map = None if hosts is None else hosts(fabric)
    site = Site(fabric, scale, seed, length_ns, begin_ns, host_map=host_map, running=topology is not None)
    programs = _programs(site, root, file, programs_before)
    site = dataclasses.replace(site, programs=programs)
    faults, triggers, unplaced_at = _method(site, root, file, {program.name: program.begin_ns for program in programs})
    return Plan(
        name=file.name,
        description=file.description,
        topology=fabric,
        seed=seed,
        second_ns=scale.second_ns,
        begin_ns=site.begin_ns,
        length_ns=length_ns,
        settle_ns=scale.length(file.settle),
        look_ns=look_ns,
        programs=programs,
        faults=faults,
        triggers=triggers,
        expectations=_expectations(site, root, file, programs),
        orders=orders_of(site, root, file),
        mapper=_mapper(site, root, file),
        leaves=_leaves(file),
        unplaced_at=unplaced_at,
        source={**_without_system(document.root), **_system_of(fabric), "seed": seed, FABRIC_KEY: _stated(fabric)},
    )


def _refuse_topology(document: Document) -> None:
    """Refuse a file that holds only a fabric as no scenario, rather than complain about its first unknown key."""
    keys = set(document.root)
    if document.fabric is None and not keys & _OF_SCENARIOS and keys & _OF_TOPOLOGIES:
        raise ConfigError(
            document.path, "is a topology, not a scenario", "`mrcfabric up` takes it; here: fabric: {file: ...}"
        )


def _positive(root: Spot, key: str, length_ns: int) -> int:
    if length_ns <= 0:
        raise (root / key).wrong("no time at all", f"{key}: 100rtt")
    return length_ns


def _read_traces(document: Document) -> None:
    """Replace trace files by their messages, so that the source in the report needs no other file."""
    entries = document.root.get("workload")
    if isinstance(entries, list):
        for number, entry in enumerate(entries):
            if isinstance(entry, dict):
                entries[number] = traces_read(Spot(document, ("workload", number)), entry)


# The fabric.


def _seeded(topology: Topology, seed: str) -> Topology:
    """A fabric with another seed. That of a file was checked with the file."""
    try:
        return dataclasses.replace(topology, seed=seed)
    except ConfigError as error:
        raise ConfigError("--seed", error.what, error.hint) from None


def _fabric(document: Document, system: str | None, running: Topology | None) -> TopologyFile:
    named = None if system is None else _named(document, system)
    source = read_part(document.path, document.fabric, document.fabric_flags, f"{FABRIC_KEY}.", named)
    try:
        check_topology(source.topology)
    except ConfigError as error:
        raise source.locate(error) from None
    if running is not None:
        # The system first: where it differs, its tables differ too.
        for key in sorted(source.places, key=lambda key: key != SYSTEM_KEY):
            if key in ("name", "seed", "dilation") or "." in key:
                continue
            here, there = getattr(source.topology, key), getattr(running, key)
            if key == SYSTEM_KEY:
                there = running.system_name
            if here != there:
                raise ConfigError(source.places[key], f"{key} is {here} here and {there} in fabric {running.name}")
    return source


def _named(document: Document, system: str) -> tuple[str, str]:
    """A scenario's system and its place. A path in the file counts from the file, one of a flag from where we are."""
    place = document.places.get((SYSTEM_KEY,), document.path)
    if place.startswith(FLAG):
        return system, f"--system {shown(system)}"
    return beside(document.path, system), place


def _stated(topology: Topology) -> dict[str, Any]:
    """The fields of a topology that differ from the defaults, as a file would have them, but the seed and the system,
    which a scenario has itself."""
    bare = Topology().to_dict()
    apart = ("seed", SYSTEM_KEY)
    return {key: value for key, value in topology.to_dict().items() if key not in apart and value != bare[key]}


def _without_system(root: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in root.items() if key != SYSTEM_KEY}


def _system_of(topology: Topology) -> dict[str, str]:
    """The system as the file of another run would name it. The settings of one that does not ship are stated anyway."""
    return {SYSTEM_KEY: topology.system} if topology.system in bundles.names() else {}


# The entries.


def _unlike(spot: Spot, names: Sequence[str], what: str) -> None:
    for number, name in enumerate(names):
        if name in names[:number]:
            raise (spot / number / "name").wrong(f"{name} is the name of another {what}")


def _not_numbered(spot: Spot, names: Sequence[str]) -> None:
    """Refuse an entry whose name is that of another entry and a number: repetitions get such names."""
    for number, name in enumerate(names):
        stem = _NUMBERED.sub("", name)
        if stem != name and stem in names:
            raise (spot / number / "name").wrong(f"a repetition of {stem} would be called {name}", "another name")


def _programs(site: Site, root: Spot, file: ScenarioFile, before: int) -> tuple[Program, ...]:
    spot = root / "workload"
    entries = [
        by_kind(spot / number, entry, "kind", WORKLOADS, "workload") for number, entry in enumerate(file.workload)
    ]
    _unlike(spot, [entry.name for entry in entries], "workload")
    if before + len(entries) > PROGRAMS_MAX:
        raise spot.wrong(f"{before + len(entries)} workloads", f"a fabric has room for {PROGRAMS_MAX}")
    return tuple(program_of(site, spot / number, entry, before + number) for number, entry in enumerate(entries))


def _mapper(site: Site, root: Spot, file: ScenarioFile) -> LinkTests | None:
    """How links are tested, if they are. Raises ConfigError where NICs cannot test them, or not so often."""
    if file.mapper is None:
        return None
    spot = root / "mapper"
    of_mrc_alone(site, spot, "only MRC NICs probe links", "leave it out")
    if file.mapper.period is None:
        return LinkTests(None, file.mapper.deny)
    period_ns = site.scale.length(file.mapper.period)
    if not SELF_PROBE_PERIOD_NS_MIN <= period_ns <= NS_PER_S:
        what = f"a round of probes cannot take {file.mapper.period}, {period_ns} ns of fabric time"
        raise (spot / "period").wrong(what, f"from {SELF_PROBE_PERIOD_NS_MIN} ns to {NS_PER_S} ns")
    return LinkTests(period_ns, file.mapper.deny)


def _method(
    site: Site, root: Spot, file: ScenarioFile, programs: Mapping[str, Instant]
) -> tuple[tuple[Fault, ...], tuple[Trigger, ...], str]:
    """The timetable, the conditions, and where the first entry is whose hosts are not known ("": all are)."""
    spot = root / "method"
    entries = [_entry(spot / number, entry) for number, entry in enumerate(file.method)]
    names = [entry.name for entry in entries]
    _unlike(spot, names, "entry")
    _not_numbered(spot, names)
    if ANY_FAULT in names:
        raise (spot / names.index(ANY_FAULT) / "name").wrong(f"{ANY_FAULT} means all of them", "another name")
    faults: list[Fault] = []
    triggers: list[Trigger] = []
    unplaced_at = ""
    for number, entry in enumerate(entries):
        here, at_ns = spot / number, site.scale.length(entry.at)
        if at_ns >= site.length_ns:
            raise (here / "at").wrong(f"begins when the run is over, after {file.length}", "a longer length")
        made = settled(site, here, _faults(site, here, entry, site.length_ns - at_ns))
        for fault in made:
            checked(site, here, fault)
            if site.host_map is None and fault.kind in ABOUT_HOSTS:
                unplaced_at = unplaced_at or root.document.where((here / _kind_key(entry)).path)
        if entry.when is None:
            faults += placed(made, site.begin_ns + at_ns)
        else:
            text, holds = condition_of(site, here / "when", entry.when, site.begin_ns + at_ns, programs, names)
            triggers.append(Trigger(entry.name, text, holds, tuple(made), entry.times or 1))
    count = len(faults) + sum(len(trigger.faults) for trigger in triggers)
    if count > FAULTS_MAX:
        raise spot.wrong(f"{count} faults", f"at most {FAULTS_MAX}")
    return tuple(sorted(faults, key=lambda fault: fault.start_ns)), tuple(triggers), unplaced_at


def _kind_key(entry: Any) -> str:
    """The key that says what an entry of the timetable breaks."""
    return "chaos" if isinstance(entry, ChaosEntry) else "fault"


def _leaves(file: ScenarioFile) -> dict[str, float]:
    """By entry, where one says what can be had of the goodput meanwhile."""
    return {
        str(entry["name"]): float(share(entry["leaves"])) for entry in file.method if entry.get("leaves") is not None
    }


def _entry(spot: Spot, entry: Any) -> Any:
    """An entry of the timetable, decoded; an entry of chaos keeps the faults it may draw as plain data."""
    if isinstance(entry, dict) and "chaos" in entry:
        return decode(spot, entry, ChaosEntry)
    return by_kind(spot, entry, "fault", ENTRIES, "kind of fault")


def _faults(site: Site, spot: Spot, entry: Any, room_ns: int) -> list[Fault]:
    if not isinstance(entry, ChaosEntry):
        return faults_of(site, spot, entry, room_ns)
    here = spot / "chaos" / "faults"
    drawn = [
        by_kind(here / number, one, "fault", DRAWN, "kind of fault") for number, one in enumerate(entry.chaos.faults)
    ]
    chaos.check(site, spot, entry, drawn)
    return chaos.faults_of(site, spot, entry, drawn)


def _expectations(site: Site, root: Spot, file: ScenarioFile, programs: Sequence[Program]) -> tuple[Expectation, ...]:
    names = [program.name for program in programs]
    faults = [str(entry["name"]) for entry in file.method]
    made = [
        expectation_of(site, root / "steady_state" / number, entry, names, faults, steady=True)
        for number, entry in enumerate(file.steady_state)
    ]
    made += [
        expectation_of(site, root / "expect" / number, entry, names, faults) for number, entry in enumerate(file.expect)
    ]
    return _told_apart(made)


def _told_apart(expectations: Sequence[Expectation]) -> tuple[Expectation, ...]:
    """Give expectations with equal names a number: reports identify failed expectations by name."""
    seen: Counter[str] = Counter()
    found = []
    for one in expectations:
        seen[one.name] += 1
        more = seen[one.name]
        found.append(one if more == 1 else dataclasses.replace(one, name=f"{one.name} ({more})"))
    return tuple(found)
