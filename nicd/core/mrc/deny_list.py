"""The standing list of paths that no QP of a NIC may use.

Owns the entries and the check whether one covers a path. The controller fills the list by `DenyPaths` and `AllowPaths`;
the EV profiles and the peers apply it. A NIC that starts again starts with an empty list.

arXiv 2605.04333 section 2: deny lists exist; their form is not public.
"""

from collections.abc import Iterator
from typing import TypeAlias

from mrcfabric.errors import RefusedError

Entry: TypeAlias = tuple[int, int | None, int | None]
"""(plane, path or None for all, peer's NIC number or None for all)."""


def within(entry: Entry, outer: Entry) -> bool:
    """Whether `outer` covers all that `entry` covers."""
    return entry[0] == outer[0] and outer[1] in (None, entry[1]) and outer[2] in (None, entry[2])


class DenyList:
    """One per NIC."""

    __slots__ = ("_entries", "_limit")

    def __init__(self, limit: int) -> None:
        # A dictionary keeps the order in which entries came.
        self._entries: dict[Entry, None] = {}
        self._limit = limit

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def deny(self, entry: Entry) -> None:
        """Add an entry; one that is there already changes nothing. RefusedError when the list is full."""
        if entry not in self._entries and len(self._entries) >= self._limit:
            raise RefusedError(f"the deny list is full ({self._limit} entries)")
        self._entries[entry] = None

    def allow(self, entry: Entry) -> int:
        """Remove every entry that lies within this one; returns how many there were."""
        inside = [own for own in self._entries if within(own, entry)]
        for found in inside:
            del self._entries[found]
        return len(inside)

    def covers(self, plane: int, path: int, peer: int, through_t1: bool) -> bool:
        """Whether a path to `peer` is barred; `through_t1` False: it turns round at the T0 and meets no T1."""
        entries = self._entries
        return bool(entries) and (
            (plane, None, None) in entries
            or (plane, None, peer) in entries
            or (plane, path, peer) in entries
            or (through_t1 and (plane, path, None) in entries)
        )
