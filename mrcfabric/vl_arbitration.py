"""Which VL of a port sends next: InfiniBand's two tables of VLs and weights. Pure arithmetic.

Owns the turns. A table is a list of (VL, weight); weights count units of 64 bytes, and a VL may stand in several
places. The entry whose turn it is sends while it has weight left; a packet may take more than is left, and a part of a
unit counts as a whole one. An entry whose VL has nothing that may go loses the rest of its turn. An entry of weight 0
has no turn.

The table of high priority goes before the other one, until it has sent `limit` units of 4,096 bytes while a VL of the
other had a packet that could go: then that table has one packet. With limit 0 they take turns packet by packet, with
255 the high one always goes first.

Source: IBTA 7.6.9.
"""

from typing import Final, TypeAlias

from mrcfabric.errors import ConfigError

Table: TypeAlias = tuple[tuple[int, int], ...]
"""(VL, weight) in the order of turns."""

UNIT_BYTES: Final = 64
WEIGHT_MAX: Final = 255
ENTRIES_MAX: Final = 64
LIMIT_BYTES: Final = 4_096
NO_LIMIT: Final = 255


def check_table(where: str, table: Table, vls: int) -> None:
    """Raises ConfigError for a table that no port with data VLs 0 to `vls` - 1 can have."""
    if len(table) > ENTRIES_MAX:
        raise ConfigError(where, f"{len(table)} entries", f"at most {ENTRIES_MAX}")
    for vl, weight in table:
        if not 0 <= vl < vls:
            raise ConfigError(where, f"VL {vl} is not there", f"0 to {vls - 1}")
        if not 0 <= weight <= WEIGHT_MAX:
            raise ConfigError(where, f"weight {weight} of VL {vl} will not do", f"0 to {WEIGHT_MAX}")


class _Turns:
    """One table and whose turn it is."""

    __slots__ = ("_entries", "_left", "_place", "vls")

    def __init__(self, table: Table) -> None:
        self._entries = tuple(entry for entry in table if entry[1])
        self.vls = sum(1 << vl for vl in {vl for vl, _ in self._entries})
        """Bit v: VL v has a turn."""
        self._place = 0
        self._left = self._entries[0][1] if self._entries else 0

    def choose(self, ready: int) -> int:
        """The VL whose turn it is among those of `ready`, of which at least one has a turn."""
        entries = self._entries
        while True:
            vl = entries[self._place][0]
            if self._left > 0 and ready >> vl & 1:
                return vl
            self._place = (self._place + 1) % len(entries)
            self._left = entries[self._place][1]

    def sent(self, size: int) -> None:
        """The VL that was chosen has sent a packet of so many bytes."""
        self._left -= -(-size // UNIT_BYTES)


class VlArbiter:
    """Both tables of one port. Every VL that sends stands in one of them."""

    __slots__ = ("_high", "_left", "_limit", "_low", "_spent")

    def __init__(self, high: Table, low: Table, limit: int) -> None:
        """`limit`: in units of 4,096 bytes; `NO_LIMIT`: none."""
        self._high = _Turns(high)
        self._low = _Turns(low)
        self._limit = limit
        self._left = limit * LIMIT_BYTES
        self._spent = False

    @property
    def vls(self) -> int:
        """Bit v: VL v has a turn in either table."""
        return self._high.vls | self._low.vls

    def choose(self, ready: int, sizes: list[int]) -> int:
        """Whose turn it is among the VLs of `ready` (bit v: VL v), at least one of them; counts it as sent.

        `sizes`: by VL the bytes of its next packet.
        """
        high, low = ready & self._high.vls, ready & self._low.vls
        if high and not (low and self._spent):
            vl = self._high.choose(high)
            self._high.sent(sizes[vl])
            if low and self._limit != NO_LIMIT:
                self._left -= sizes[vl]
                self._spent = self._left <= 0
            return vl
        vl = self._low.choose(low)
        self._low.sent(sizes[vl])
        self._left, self._spent = self._limit * LIMIT_BYTES, False
        return vl
