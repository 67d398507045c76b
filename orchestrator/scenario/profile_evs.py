"""The EV profiles of a scenario as NICs will have them, and whom a deny list cuts off from QPs that use them.

Owns the check of what a profile holds, made by the NIC's own tables. EVs that are drawn anew for every QP are nobody's
to know before the QP is there: of such profiles only the figures are checked.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from mrcfabric.errors import RefusedError
from mrcfabric.naming import nic_name
from mrcfabric.rng import Rng
from mrcfabric.topology import Topology
from nicd.compose import nic_config
from nicd.core.mrc.deny_list import DenyList, Entry
from nicd.core.mrc.ev_profiles import Profile, ProfileState, ProfileTable
from nicd.core.mrc.ev_universe import AUTO
from nicd.core.settings import NicConfig
from orchestrator.yamlfile.document import Spot


class ProfileEvs:
    """The EV profiles of all NICs."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._nics: dict[str, tuple[NicConfig, ProfileTable]] = {}

    def add(self, spot: Spot, nic: str, number: int, given: Mapping[str, Any]) -> None:
        """A profile that a NIC gets, with the attributes of an entry. Raises ConfigError with the entry's line."""
        if nic not in self._nics:
            config = nic_config(self._topology, nic)
            self._nics[nic] = config, ProfileTable(config)
        figures = {"kind" if name == "format" else name: value for name, value in given.items()}
        try:
            profile = self._nics[nic][1].create(number)
            profile.universe.configure(**figures)
            for state in (ProfileState.OFFLINE, ProfileState.ONLINE):
                profile.move(state)
        except RefusedError as error:
            raise spot.wrong(f"{nic}: {error}") from None

    def cut_off(self, nic: int, number: int, peers: Iterable[int], entries: Iterable[Entry]) -> set[str]:
        """The names of those peers to which the QPs of a NIC with this profile would have no EV left."""
        name = nic_name(nic)
        if name not in self._nics:
            return set()
        config, table = self._nics[name]
        profile = table.by_number[number]
        if profile.universe.mode == AUTO:
            return set()
        listed = list(dict.fromkeys(entries))
        denied = DenyList(len(listed))
        for entry in listed:
            denied.deny(entry)
        return {nic_name(peer) for peer in peers if not _reaches(config, profile, denied, peer)}


def _reaches(config: NicConfig, profile: Profile, denied: DenyList, peer: int) -> bool:
    destination = config.paths.towards(peer)
    active, reserve, _ = profile.universe.draw(destination, Rng())
    through_t1 = not destination.same_t0
    return any(
        not denied.covers(entry.path.plane, entry.path.number, peer, through_t1) for entry in (*active, *reserve)
    )
