"""How long the nodes of a host have waited for horizons of each host, in wall time.

Pure, over the clock page. A drive that waits says in the page for which neighbour's horizon: always the slowest
neighbour's (`mrcfabric.drive`). `Waiting` samples that, and so knows how many nodes wait for which host, and how long
in all. It is as good as asking every daemon, and costs no daemon anything. A node waits for a horizon as its own host
has heard of it, so the time that news are under way counts for the host they come from.
"""

from collections.abc import Sequence
from typing import Final

from mrcfabric.clock import ClockPage
from mrcfabric.units import NEVER, NS_PER_S

LOOK_S: Final = 0.05
"""How often to sample: seldom enough to cost nothing, often enough for sums in seconds."""
GAP_NS_MAX: Final = NS_PER_S
"""The longest time one sample stands for. After a longer gap this process itself stood still, and cannot know."""


class Waiting:
    """The waiting of one host's nodes. Call `look` every LOOK_S."""

    def __init__(self, page: ClockPage, peers: Sequence[Sequence[tuple[int, int]]], host_of: Sequence[int], here: int):
        """`peers` as for `ClockPage.create`; `host_of[node]` is a host's number, `here` ours."""
        self._page = page
        self._ends = [
            (page.want_word(peer, peer_port), page.horizon_word(peer), host_of[peer])
            for node, ports in enumerate(peers)
            if host_of[node] == here
            for peer, peer_port in ports
        ]
        self._looked_ns: int | None = None
        self.ran_ns = 0
        """Wall time in which fabric time went on, or should have."""
        self.waited_ns = dict.fromkeys(sorted({host for _, _, host in self._ends}), 0)
        """Host -> how long our nodes have waited for it, summed over nodes; our own host is among them."""

    def look(self, now_ns: int) -> None:
        """Count the time since the last look as if the page had been as it is now; `now_ns` is of a monotonic clock."""
        former, self._looked_ns = self._looked_ns, now_ns
        if former is None or self._page.asleep:
            return
        passed = min(now_ns - former, GAP_NS_MAX)
        self.ran_ns += passed
        words = self._page.words
        for want, horizon, host in self._ends:
            wanted = words[want]
            if words[horizon] < wanted < NEVER:
                self.waited_ns[host] += passed
