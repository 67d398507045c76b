"""The orders of a scenario: EV profiles and deny lists that NICs get before the work begins.

Owns what an entry of `ev_profiles` and `deny` becomes, NIC by NIC, and the check that NICs which exchange data keep a
path to each other. `orchestrator.planning.cut_off` and `profile_evs` say whom a deny list cuts off.
"""

from collections import defaultdict
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Final

from msgspec import to_builtins

from mrcfabric.errors import ConfigError
from mrcfabric.naming import nic_name
from mrcfabric.topology import Topology
from nicd.core.mrc.deny_list import Entry
from nicd.programs.catalogue import part_of
from nicd.programs.program import Program
from orchestrator.planning.cut_off import cut_off
from orchestrator.scenario.method import Site, of_mrc_alone
from orchestrator.scenario.model import ScenarioFile
from orchestrator.scenario.plan import Order
from orchestrator.scenario.profile_evs import ProfileEvs
from orchestrator.yamlfile.document import Spot

PEERS_NAMED: Final = 4


def orders_of(site: Site, root: Spot, file: ScenarioFile) -> tuple[Order, ...]:
    """What NICs are told before the work begins. Raises ConfigError with the line of the entry that is wrong."""
    evs = ProfileEvs(site.topology)
    return (*_profiles(site, root, file, evs), *_denied(site, root, file, evs))


def _nics_named(topology: Topology, spot: Spot, written: str | list[str]) -> list[str]:
    """The NICs that match names or globs. Raises ConfigError when there is none."""
    patterns = [written] if isinstance(written, str) else written
    nics = [nic for nic in topology.nic_names() if any(fnmatchcase(nic, pattern) for pattern in patterns)]
    if not nics:
        raise spot.wrong(f"{', '.join(patterns)} is the name of no NIC")
    return nics


def _profiles(site: Site, root: Spot, file: ScenarioFile, evs: ProfileEvs) -> tuple[Order, ...]:
    """The orders that create, configure and take EV profiles online, NIC by NIC (MRC 1.0 6)."""
    found = []
    held: dict[str, set[int]] = {nic: {0} for nic in site.topology.nic_names()}
    if file.ev_profiles:
        of_mrc_alone(site, root / "ev_profiles", "only MRC has EV profiles", "leave them out")
    for number, entry in enumerate(file.ev_profiles):
        spot = root / "ev_profiles" / number
        given = {key: value for key, value in to_builtins(entry).items() if value is not None}
        profile = {"profile": given.pop("number")}
        for nic in _nics_named(site.topology, spot / "nics", given.pop("nics")):
            if entry.number in held[nic]:
                raise (spot / "number").wrong(f"{nic} has an EV profile {entry.number} already", "another number")
            held[nic].add(entry.number)
            evs.add(spot, nic, entry.number, given)
            found.append(Order(nic, "create_ev_profile", profile))
            found.append(Order(nic, "modify_ev_profile", {**profile, **given, "state": "offline"}))
            found.append(Order(nic, "modify_ev_profile", {**profile, "state": "online"}))
    for number, program in enumerate(site.programs):
        spot = root / "workload" / number / "profile"
        lacking = [nic for nic in map(nic_name, program.ranks) if program.profile not in held[nic]]
        if len(lacking) == len(program.ranks):
            raise spot.wrong(f"there is no EV profile {program.profile}", "an entry of ev_profiles")
        if lacking:
            raise spot.wrong(
                f"{lacking[0]} has no EV profile {program.profile}", "an entry of ev_profiles for this NIC"
            )
    return tuple(found)


def _denied(site: Site, root: Spot, file: ScenarioFile, evs: ProfileEvs) -> tuple[Order, ...]:
    """The orders that fill deny lists, NIC by NIC."""
    topology = site.topology
    found = []
    lists: dict[int, list[Entry]] = defaultdict(list)
    if file.deny:
        of_mrc_alone(site, root / "deny", "only MRC NICs keep paths from being used", "leave them out")
    for number, entry in enumerate(file.deny):
        spot = root / "deny" / number
        if entry.plane >= topology.planes:
            raise (spot / "plane").wrong(f"no plane {entry.plane}", f"0 to {topology.planes - 1}")
        if entry.path is not None and entry.path >= topology.t1_per_plane:
            raise (spot / "path").wrong(f"no path {entry.path}", f"0 to {topology.t1_per_plane - 1}")
        nics = _nics_named(topology, spot / "nics", entry.nics)
        try:
            peer = None if entry.to is None else topology.nic_index(entry.to)
        except ConfigError as error:
            raise (spot / "to").about(error) from None
        if nics == [entry.to]:
            raise (spot / "to").wrong(f"{entry.to} has no path towards itself", "the name of another NIC")
        args = {"plane": entry.plane, "path": entry.path, "peer_index": peer}
        found += [Order(nic, "deny_paths", args) for nic in nics]
        numbers = [topology.nic_index(nic) for nic in nics]
        if not entry.cut_off:
            _keep_paths(site, spot, lists, numbers, (entry.plane, entry.path, peer))
            _keep_evs(site, spot, evs, lists, numbers, (entry.plane, entry.path, peer))
        for nic in numbers:
            lists[nic].append((entry.plane, entry.path, peer))
    return tuple(found)


def _keep_paths(site: Site, spot: Spot, lists: dict[int, list[Entry]], nics: Sequence[int], entry: Entry) -> None:
    """Raises ConfigError when an entry takes the last path of one of the NICs to a NIC with which it exchanges data, or
    to all others."""
    topology = site.topology
    for nic in nics:
        if len({entry[0], *(plane for plane, _, _ in lists[nic])}) < topology.planes:
            continue  # a plane of which nothing is denied reaches everybody
        lost = set(cut_off(topology, nic, [*lists[nic], entry])) - set(cut_off(topology, nic, lists[nic]))
        alone = len(lost) == topology.nics - 1
        if named := lost if alone else lost & set(map(nic_name, _peers(site.programs, nic))):
            raise _cut_off(spot, nic, "path", named)


def _keep_evs(
    site: Site, spot: Spot, evs: ProfileEvs, lists: dict[int, list[Entry]], nics: Sequence[int], entry: Entry
) -> None:
    """Raises ConfigError when an entry covers the last EVs that QPs of one of the NICs have of their EV profile."""
    for nic in nics:
        for number in sorted({program.profile for program in site.programs} - {0}):
            peers = _peers([program for program in site.programs if program.profile == number], nic)
            lost = evs.cut_off(nic, number, peers, [*lists[nic], entry])
            if named := lost - evs.cut_off(nic, number, peers, lists[nic]):
                raise _cut_off(spot, nic, f"EV of profile {number}", named)


def _cut_off(spot: Spot, nic: int, what: str, lost: set[str]) -> ConfigError:
    named = sorted(lost)
    peers = ", ".join(named[:PEERS_NAMED])
    peers += f" and {len(named) - PEERS_NAMED} more" if named[PEERS_NAMED:] else ""
    return spot.wrong(
        f"{nic_name(nic)} would have no {what} left to {peers}, and its QPs to them would fail",
        "cut_off: true in this entry denies it all the same",
    )


def _peers(programs: Sequence[Program], nic: int) -> set[int]:
    """The NICs with which a NIC exchanges data."""
    return {
        program.ranks[peer]
        for program in programs
        if nic in program.ranks
        for peer in part_of(program, program.ranks.index(nic)).peers
    }
