"""The taps of one daemon: the ops that set, read and end them, and their end when no client reads.

Owns names and bounds of taps in a daemon. `tap` keeps the copies; `drive` shows it what its node sends. The ops, with
their args:

    tap {id, filter, snap_bytes, records_max}   from now on keep copies of what passes the filter; answers {now_ns}
    tapped {id, since, limit}                   what was kept after number `since`, a page at a time (`Tap.after`), and
                                                {now_ns}: how far the node has come
    untap {id}                                  no more; answers {lost}, [port, packets] each

A tap ends by itself when no client has read it for `UNREAD_S`.
"""

from collections.abc import Callable
from typing import Any, Final

from mrcfabric.control_server import Op
from mrcfabric.errors import RefusedError
from mrcfabric.packet_filter import PacketFilter
from mrcfabric.tap import RECORDS_MAX, SNAP_BYTES_MAX, Tap
from mrcfabric.units import Instant
from mrcfabric.unread import UNREAD_S, Unread
from mrcfabric.wire.dscp import Dscp
from mrcfabric.wire.options import WireOptions

TAPS_MAX: Final = 8
"""Taps of one daemon."""
SNAP_BYTES: Final = 512
RECORDS: Final = 4096
"""Bounds of a tap that the op does not give."""
ID_CHARACTERS_MAX: Final = 64
_TAP_ARGS: Final = ("id", "filter", "snap_bytes", "records_max")


class Taps:
    """All taps of a daemon. It calls `active` with the taps in force (None for none) whenever they change."""

    def __init__(
        self,
        dscp: Dscp,
        options: WireOptions,
        active: Callable[[tuple[Tap, ...] | None], None],
        now_ns: Callable[[], Instant],
        unread_s: float = UNREAD_S,
    ) -> None:
        self._dscp = dscp
        self._options = options
        self._active = active
        self._now_ns = now_ns
        self._unread = Unread(self._end, unread_s)
        self._taps: dict[str, Tap] = {}

    @property
    def ops(self) -> dict[str, Op]:
        """The ops by name, for the control channel."""
        return {"tap": self._tap, "tapped": self._tapped, "untap": self._untap}

    def close(self) -> None:
        """Stop the timer."""
        self._unread.close()

    async def _tap(self, args: dict[str, Any]) -> dict[str, Any]:
        name = args.get("id")
        if not isinstance(name, str) or not 0 < len(name) <= ID_CHARACTERS_MAX:
            raise RefusedError(f"id: {name!r} will not do (wanted: a text of up to {ID_CHARACTERS_MAX} characters)")
        if name in self._taps:
            raise RefusedError(f"there is a tap {name!r} already")
        if len(self._taps) >= TAPS_MAX:
            raise RefusedError(f"this node has {TAPS_MAX} taps already, as many as it can have")
        if unknown := args.keys() - _TAP_ARGS:
            raise RefusedError(f"tap has no argument {min(unknown)!r}; it has " + ", ".join(_TAP_ARGS))
        wanted = PacketFilter.from_settings(args.get("filter"))
        snap = _bounded(args, "snap_bytes", SNAP_BYTES, SNAP_BYTES_MAX)
        records = _bounded(args, "records_max", RECORDS, RECORDS_MAX)
        self._taps[name] = Tap(wanted, snap, records, self._dscp, self._options)
        self._tell()
        self._unread.read(name)
        return {"now_ns": self._now_ns()}

    async def _tapped(self, args: dict[str, Any]) -> dict[str, Any]:
        name = args.get("id")
        tap = self._find(name)
        since = args.get("since", 0)
        if not isinstance(since, int) or isinstance(since, bool) or since < 0:
            raise RefusedError(f"since: {since!r} will not do (wanted: a whole number from 0)")
        self._unread.read(str(name))
        found = tap.after(since, _bounded(args, "limit", RECORDS_MAX, RECORDS_MAX))
        return {"now_ns": self._now_ns(), **found}

    async def _untap(self, args: dict[str, Any]) -> dict[str, Any]:
        tap = self._find(args.get("id"))
        self._unread.forget(str(args["id"]))
        self._end(str(args["id"]))
        return {"lost": tap.lost}

    def _find(self, name: object) -> Tap:
        tap = self._taps.get(name) if isinstance(name, str) else None
        if tap is None:
            raise RefusedError(f"there is no tap {name!r}; one that is not read for {self._unread.unread_s:g} s ends")
        return tap

    def _end(self, name: str) -> None:
        del self._taps[name]
        self._tell()

    def _tell(self) -> None:
        self._active(tuple(self._taps.values()) or None)


def _bounded(args: dict[str, Any], name: str, usual: int, most: int) -> int:
    value = args.get(name)
    if value is None:
        return usual
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= most:
        raise RefusedError(f"{name}: {value!r} will not do (wanted: a whole number, 1 to {most})")
    return value
