"""Follows packets of a running fabric: sets a witness in every node, reads them repeatedly, and removes them.

Owns the requests and their bounds; `joiner` makes journeys of the answers. A node that is down has no witness, and gets
one when it returns. Packets sent before every node had a witness are left out, because half of their way is unknown.
"""

import asyncio
import itertools
import math
import os
import time
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from typing import Any, Final, TypeAlias

from mrcfabric.choice import Choice
from mrcfabric.control import NoAnswerError
from mrcfabric.errors import ConfigError, RefusedError
from mrcfabric.units import Instant
from mrcfabric.wire.layout import PSN_MASK
from orchestrator.fabric.verbs import Verbs
from orchestrator.tracing.joiner import JOURNEYS_MAX, JourneyJoiner
from orchestrator.tracing.journey import Journey

LOOK_S: Final = 0.25
"""The least time from one look to the next."""
REST: Final = 2
"""After a look, the pause is this many times as long as the look, so asking takes a third of the time at most."""
CALL_S: Final = 5.0
LATE_NS: Final = 10_000
"""A node may report a departure after events that happened up to this much later."""
PAGES_MAX: Final = 16
"""How many answers one look takes from one node: as many as hold everything that the node keeps."""
STOP_S: Final = 1.0
"""How long a trace that was stopped waits for the answers of its last look."""
DISMISS_S: Final = 1.0
"""How long to wait for nodes to take note of the end; the others find out by themselves."""
NEXT_PSNS: Final = 1 << 16
"""How far ahead of the last packet sent `next` looks."""
_NUMBERS = itertools.count(1)

_Mark: TypeAlias = tuple[str, str, int, int, Instant]
"""What tells one journey from another."""


class Follower:
    """One trace. Call `await follow()` once."""

    def __init__(self, fabric: Verbs, choice: Choice, count: int, wall_s: float) -> None:
        """Follow at most `count` packets, for at most `wall_s` of wall time."""
        self.ready = False
        """Whether every node that runs has a witness: packets sent from now on are followed."""
        self.lost = 0
        """How many statements nodes had to drop; packets may then lack parts of their way."""
        self.stop = asyncio.Event()
        """Set it to end the trace with what is known by then."""
        self.ended = ""
        """What ended the trace before its bounds did: `it was stopped`, `the fabric has ended`."""
        self._fabric = fabric
        self._choice = choice
        self._count = min(count, JOURNEYS_MAX)
        self._wall_s = wall_s
        self._deadline_s = math.inf
        self._name = f"trace-{os.getpid()}-{next(_NUMBERS)}"
        self._stories = JourneyJoiner(fabric.topology, self._count)
        self._read: dict[str, int] = {}
        """Node with a witness -> number of the last statement that was read."""
        self._lost: dict[str, int] = {}
        self._lost_before = 0
        """Statements dropped by nodes that have gone down since."""
        self._since_ns: Instant = 0
        self._qpns: dict[tuple[int, int, int], int] = {}
        self._seen: set[_Mark] = set()
        """Complete journeys that may become richer by one look more."""

    @property
    def left_out(self) -> tuple[int, int]:
        """How many packets, and how many acknowledgements, were not followed because too many were under way."""
        return self._stories.left_out, self._stories.replies_left_out

    async def follow(self, tell: Callable[[Journey], None] = lambda _journey: None) -> list[Journey]:
        """Follow packets and return their journeys, oldest first. Calls `tell` with each journey that is complete.

        Raises RefusedError when somebody else follows packets.
        """
        told: set[_Mark] = set()
        self._deadline_s = time.monotonic() + self._wall_s
        try:
            await self._call(self._fabric.topology.node_names())
            self._since_ns = max(self._stories.now_ns.values(), default=0)
            self.ready = True
            while True:
                began_s = time.monotonic()
                stopped = self.stop.is_set()
                await self._unless_stopped(self._look())
                found = self._stories.look(self._since_ns, self._qpns)
                _tell_new([journey for journey in found if self._is_settled(journey)], told, tell)
                if stopped:
                    self.ended = "it was stopped"
                if self.ended or len(told) >= self._count or time.monotonic() > self._deadline_s:
                    every = self._stories.journeys(self._since_ns, self._qpns)
                    _tell_new(every, told, tell)
                    return every
                await self._wait(max(LOOK_S, REST * (time.monotonic() - began_s)))
        finally:
            await self._dismiss()

    def _is_settled(self, journey: Journey) -> bool:
        """Whether nothing more can be told of a complete journey.

        Nodes that the packet did not pass may know why it was paused. They have stated that before, but this look may
        have asked them before they did; the next one cannot.
        """
        if not (journey.complete and journey.paused) or self._stories.settled(journey):
            return True
        seen = _mark(journey) in self._seen
        self._seen.add(_mark(journey))
        return seen

    async def _wait(self, wall_s: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(wall_s):
                await self.stop.wait()

    async def _unless_stopped(self, look: Coroutine[Any, Any, None]) -> None:
        """Look. When the trace is stopped, wait only `STOP_S` more: nodes that do not answer would take long."""
        looking, stopping = asyncio.create_task(look), asyncio.create_task(self.stop.wait())
        try:
            await asyncio.wait({looking, stopping}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait({looking}, timeout=STOP_S)
            if looking.done():
                looking.result()
        finally:
            looking.cancel()
            stopping.cancel()
            await asyncio.gather(looking, stopping, return_exceptions=True)

    async def _ask_qpns(self) -> None:
        """Ask for the numbers of QPs that are seen for the first time."""
        new = self._stories.strangers(self._qpns)
        if new:
            self._qpns |= await qpns(self._fabric, new)

    async def _call(self, nodes: Iterable[str]) -> None:
        asked = {"id": self._name, "choice": self._choice.settings()}
        for node, answer in await self._every(nodes, "witness", lambda _node: asked):
            if isinstance(answer, RefusedError) and "followed already" in str(answer):
                raise RefusedError(f"{node}: {answer}")
            if isinstance(answer, dict):
                self._read[node] = self._lost[node] = 0
                self._stories.begin(node, answer["now_ns"])

    async def _look(self) -> None:
        more = list(self._fabric.topology.node_names())
        gone = []
        for _ in range(PAGES_MAX):
            answers = await self._every(more, "witnessed", lambda node: {"id": self._name, "since": self._read[node]})
            more = []
            over = self.stop.is_set() or time.monotonic() > self._deadline_s
            for node, answer in answers:
                if isinstance(answer, RefusedError):
                    gone.append(node)
                elif isinstance(answer, dict):
                    now_ns = answer["now_ns"]
                    if answer["more"]:
                        # The node is complete only up to the last statement, and departures may come late.
                        told_ns = answer["statements"][-1]["at_ns"] - LATE_NS if answer["statements"] else 0
                        now_ns = max(self._stories.now_ns[node], told_ns)
                    self._stories.add(node, answer["statements"], now_ns)
                    self._read[node] = answer["last"]
                    self._lost[node] = answer["lost"]
                    more += [node] if answer["more"] and not over else []
        self.lost = self._lost_before + sum(self._lost.values())
        for node in gone:
            del self._read[node]
            self._lost_before += self._lost.pop(node)
            self._stories.down(node)
        if not self._read:
            await self._require_fabric()
        await self._call([node for node in self._fabric.topology.node_names() if node not in self._read])
        await self._ask_qpns()

    async def _require_fabric(self) -> None:
        """No node answers: find out whether all are down or the fabric has ended."""
        try:
            await self._fabric.clock()
        except RefusedError:
            self.ended = "the fabric has ended"
        except NoAnswerError:
            pass

    async def _dismiss(self) -> None:
        await self._every(list(self._read), "dismiss", lambda _node: {"id": self._name}, DISMISS_S)

    async def _every(
        self, nodes: Iterable[str], op: str, args: Callable[[str], dict[str, Any]], wall_s: float = CALL_S
    ) -> list[tuple[str, dict[str, Any] | Exception | None]]:
        """Ask nodes; returns the answer of each, or the error when it refuses or is silent."""
        known = [node for node in nodes if op == "witness" or node in self._read]

        async def ask(node: str) -> dict[str, Any] | Exception | None:
            try:
                answer: dict[str, Any] | None = await self._fabric.call(node, op, args(node), wall_s)
                return answer
            except (RefusedError, NoAnswerError) as error:
                return error

        return list(zip(known, await asyncio.gather(*(ask(node) for node in known)), strict=True))


def _tell_new(journeys: Iterable[Journey], told: set[_Mark], tell: Callable[[Journey], None]) -> None:
    """Tell of journeys that are complete, each once."""
    for journey in journeys:
        if journey.complete and _mark(journey) not in told:
            told.add(_mark(journey))
            tell(journey)


def _mark(journey: Journey) -> _Mark:
    return journey.source, journey.destination, journey.destination_qpn, journey.psn, journey.began_ns


async def qpns(fabric: Verbs, nics: Iterable[str]) -> dict[tuple[int, int, int], int]:
    """The sender's QPN of every connected QP of these NICs, by (its NIC, the receiver's NIC, the receiver's QPN)."""
    found = {}
    for nic in nics:
        with suppress(RefusedError, NoAnswerError):
            for row in await fabric.call(nic, "qp_table", {}, CALL_S):
                if "peer_index" in row:
                    found[fabric.topology.nic_index(nic), row["peer_index"], row["peer_qpn"]] = row["qpn"]
    return found


async def choice_of(fabric: Verbs, nic: str, qpn: int, psns: str | None, every: int) -> Choice:
    """Choose the packets of one QP; `psns` as in `chosen_psns`. Raises ConfigError."""
    index = fabric.topology.nic_index(nic)
    rows = {row["qpn"]: row for row in await fabric.call(nic, "qp_table", {}, CALL_S)}
    if qpn not in rows or "peer_index" not in rows[qpn]:
        known = ", ".join(str(number) for number, row in rows.items() if "peer_index" in row)
        raise ConfigError("--qp", f"{nic} has no connected QP {qpn}", f"it has {known}" if known else "it has none")
    row = rows[qpn]
    first, count = chosen_psns(psns, row["psn_next"])
    return Choice(index, qpn, row["peer_index"], row["peer_qpn"], first, count, every)


def chosen_psns(text: str | None, psn_next: int) -> tuple[int, int]:
    """(first PSN, how many) for `next`, `N` or `N-M`; None: all from now on. Raises ConfigError."""
    if text is None or text == "next":
        return psn_next & PSN_MASK, NEXT_PSNS
    try:
        first, _, last = text.partition("-")
        bounds = int(first, 0), int(last or first, 0)
    except ValueError:
        bounds = -1, -1
    count = ((bounds[1] - bounds[0]) & PSN_MASK) + 1
    # Ranges wrap at 24 bits. A range over more than half of all PSNs was typed backwards.
    if not 0 <= min(bounds) <= max(bounds) <= PSN_MASK or count > PSN_MASK >> 1:
        raise ConfigError("--psn", f"{text!r} is no PSN", f"wanted: next, a number up to {PSN_MASK}, or FIRST-LAST")
    if (bounds[1] - psn_next) & PSN_MASK > PSN_MASK >> 1:
        raise ConfigError("--psn", f"PSN {bounds[1]} has been sent already", f"the next one is {psn_next & PSN_MASK}")
    return bounds[0], count
