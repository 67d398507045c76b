"""What a relay measures about other hosts and tells its agent: their clocks, the paths there, who waits for whom.

Owns when to measure, and the report. `clock_talk`, `path_probe` and `waiting` measure. On the leader's side
`orchestrator.hosts.clock.host_pairs` joins the reports of all relays.
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
    """The survey of one relay. `open` it before others can reach us, `close` it at the end."""

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
        """`addresses`: of the sockets for probes, on the data network; `report` receives a line about each peer."""
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
        """Identifies this relay: the sums of waiting times of a former relay do not go on in its successor."""

    def open(self) -> None:
        """Listen for probes. Raises ConfigError."""
        self._probe.open()

    def close(self) -> None:
        """Stop measuring."""
        for task in self._measuring.values():
            task.cancel()
        self._probe.close()

    def greet(self, peer: int) -> None:
        """A host has connected: measure the path to it, if frames go there."""
        if peer in self._neighbours and peer != self._here and peer not in self._measuring:
            self._measuring[peer] = task = asyncio.get_running_loop().create_task(self._measure(peer))
            task.add_done_callback(lambda _: self._measuring.pop(peer, None))

    async def _measure(self, peer: int) -> None:
        self._paths[peer] = await self._probe.measure(peer)
        self.tell(peer)

    def look(self, now_s: float) -> None:
        """Sample, every `waiting.LOOK_S`, which nodes wait; `now_s` is of the loop's clock."""
        if now_s - self._looked_s >= LOOK_S:
            self._looked_s = now_s
            self._waiting.look(time.monotonic_ns())

    def tell(self, peer: int) -> None:
        """Report all that is known of a host. Of our own: which nodes wait for each other, if any are neighbours."""
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
