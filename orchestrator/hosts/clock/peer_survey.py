"""What a relay finds out about other hosts, and tells its agent: their clocks, the ways there, who waits for whom.

Owns when what is measured, and the report. How is `clock_talk`'s, `path_probe`'s and `waiting`'s; what the leader makes
of all reports is `orchestrator.hosts.clock.host_pairs`'s.
"""

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from mrcfabric.clock import ClockPage
from mrcfabric.control_message import Address, Realm
from orchestrator.hosts.clock.clock_talk import ClockTalk
from orchestrator.hosts.clock.path_probe import Path, PathProbe
from orchestrator.hosts.clock.waiting import LOOK_S, Waiting


class PeerSurvey:
    """One relay's. `open` it before others can hear us, `close` it at the end."""

    def __init__(
        self,
        page: ClockPage,
        realm: Realm,
        here: int,
        host_of: Sequence[int],
        peers: Sequence[Sequence[tuple[int, int]]],
        addresses: Sequence[Address],
        frame_bytes: int,
        report: Callable[[dict[str, Any]], None],
    ) -> None:
        """`addresses`: on the data network, of the sockets for probes; `report` hears a line for every peer."""
        self.talk = ClockTalk()
        self._here = here
        own = (ends for node, ends in enumerate(peers) if host_of[node] == here)
        self._neighbours = {host_of[peer] for ends in own for peer, _ in ends}
        self._waiting = Waiting(page, peers, host_of, here)
        self._probe = PathProbe(realm, here, addresses, frame_bytes)
        self._report = report
        self._paths: dict[int, Path] = {}
        self._measuring: dict[int, asyncio.Task[None]] = {}
        self._looked_s = 0.0
        self._life = f"{os.getpid()}-{time.monotonic_ns()}"
        """Tells this relay from one before it, whose waits do not come again."""

    def open(self) -> None:
        """Listen for probes. Raises ConfigError."""
        self._probe.open()

    def close(self) -> None:
        """Measure no more."""
        for task in self._measuring.values():
            task.cancel()
        self._probe.close()

    def greet(self, peer: int) -> None:
        """A host is there: measure the way to it, where frames go."""
        if peer in self._neighbours and peer != self._here and peer not in self._measuring:
            self._measuring[peer] = task = asyncio.get_running_loop().create_task(self._measure(peer))
            task.add_done_callback(lambda _: self._measuring.pop(peer, None))

    async def _measure(self, peer: int) -> None:
        self._paths[peer] = await self._probe.measure(peer)
        self.tell(peer)

    def look(self, now_s: float) -> None:
        """Look who waits, now and then; `now_s` is of the loop's clock."""
        if now_s - self._looked_s >= LOOK_S:
            self._looked_s = now_s
            self._waiting.look(time.monotonic_ns())

    def tell(self, peer: int) -> None:
        """Report all that is known of a host; of our own, who waits for whom within it, if there is anybody."""
        if peer == self._here and peer not in self._neighbours:
            return
        path = self._paths.get(peer)
        self._report(
            {
                "peer": peer,
                "life": self._life,
                "clock": self.talk.report(peer),
                "path": None if path is None else asdict(path),
                "waited_ns": self._waiting.waited_ns.get(peer, 0),
                "ran_ns": self._waiting.ran_ns,
            }
        )
