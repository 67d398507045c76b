"""Which directions of links were paused since the look before, for how long, and why: from the glances of both ends.

Pure. The sender knows for how long it was paused; who paused it knows why. `mrcfabric.glance` has what they tell,
`pause_tree` puts it together.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias, get_args

from mrcfabric.glance import QUEUE, AskGlance, PauseGlance
from mrcfabric.topology import PortLink
from orchestrator.live.pause_tree import Cause, PauseView
from orchestrator.live.track import Track

Tracks: TypeAlias = Mapping[str, Track[Any]]
Ends: TypeAlias = Mapping[str, Sequence[PortLink]]
"""By node: its ports in order."""

_CAUSES: Final = frozenset(get_args(Cause))
_REASONS_SHARE: Final = 0.1
"""A queue counts as a reason if it was one at least this often, compared with the most frequent one."""
_HELD_SHARE: Final = 0.5
"""The same by bytes, where nothing but what waits now is known."""


def pauses_of(tracks: Tracks, ends: Ends, down: Iterable[str]) -> tuple[PauseView, ...]:
    """The pauses of all nodes but those that are `down`, by sender, port and class."""
    gone = frozenset(down)
    found = []
    for node, track in tracks.items():
        before = {(row[0], row[1]): PauseGlance(*row) for row in track.rest_before.pauses}
        for row in () if node in gone else track.rest.pauses:
            now = PauseGlance(*row)
            was = before.get((now.port, now.cls))
            paused_ns, frames = now.pause_ns, now.frames
            if was is not None:
                paused_ns, frames = paused_ns - was.pause_ns, frames - was.frames
            if paused_ns <= 0 and not now.paused:
                continue
            end = ends[node][now.port]
            cause, numbers = ("unknown", []) if end.peer in gone else _reason(tracks[end.peer], end.peer_port, now.cls)
            because = tuple(f"{end.peer}>{ends[end.peer][number].peer}" for number in numbers)
            share = min(1.0, paused_ns / track.span_ns) if track.span_ns > 0 else 0.0
            link = f"{node}>{end.peer}"
            found.append(PauseView(link, now.cls, share, frames, bool(now.paused), cause, because))
    return tuple(found)


def paused_shares(pauses: Iterable[PauseView]) -> dict[str, float]:
    """By direction: the share of the class that was paused longest."""
    shares: dict[str, float] = {}
    for pause in pauses:
        shares[pause.link] = max(pause.share, shares.get(pause.link, 0.0))
    return shares


def _reason(asker: Track[Any], port: int, cls: int) -> tuple[Cause, list[int]]:
    """Why a node asks for a pause at one of its ports, and the ports of it in whose queues the packets wait."""
    now = _row(asker.rest.asks, port, cls)
    if now is None or now.cause not in _CAUSES:
        return "unknown", []
    if now.cause != QUEUE:
        return now.cause, []  # type: ignore[return-value]
    was = _row(asker.rest_before.asks, port, cls)
    before = {} if was is None else {number: times for number, times, _ in was.ports}
    chosen = _most({number: times - before.get(number, 0) for number, times, _ in now.ports}, _REASONS_SHARE)
    if not chosen and now.asking:
        chosen = _most({number: held for number, _, held in now.ports}, _HELD_SHARE)
    return ("queue", chosen) if chosen else ("unknown", [])


def _row(rows: Iterable[Any], port: int, cls: int) -> AskGlance | None:
    return next((AskGlance(*row) for row in rows if row[0] == port and row[1] == cls), None)


def _most(amounts: Mapping[int, int], share: float) -> list[int]:
    """The keys of the largest amounts: those of at least `share` of the largest one, in order."""
    most = max(amounts.values(), default=0)
    return sorted(key for key, amount in amounts.items() if amount > 0 and amount >= share * most)
