"""The hosts under one fabric: starts their shares, watches that they hear each other, and ends them.

Owns the order of these steps. An engine (`orchestrator.hosts.engines`) starts the share agent of a host. `hosts.share`
and `hosts.remote_share` are the shares themselves. A fabric on one host uses `Cluster()`, which has the leader's share
alone.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mrcfabric.control_message import Realm
from mrcfabric.errors import ConfigError, RefusedError
from orchestrator.hosts.clock import path_check
from orchestrator.hosts.clock.host_pairs import HostPairs
from orchestrator.hosts.clock.timekeeper import Timekeeper
from orchestrator.hosts.engines.engine import UNSEEN
from orchestrator.hosts.host_start import Host, Running
from orchestrator.hosts.log_copies import LogCopies
from orchestrator.hosts.placement.layout import Layout, ProcessPlan
from orchestrator.hosts.placement.site import LEADER, Sites
from orchestrator.hosts.remote_share import RemoteShare
from orchestrator.hosts.share import HEARD_WALL_S, RELAY, LocalShare, RelayProcess, Share, open_descriptors
from orchestrator.process.host_lease import LEASE_S
from orchestrator.process.launcher import Child, Launcher, ProcessFailedError
from orchestrator.process.run_folder import RunFolder

HEARD_POLL_S = 0.005
WATCH_S = 0.5
STOP_WALL_S = 30.0
"""How long an engine may take to end what it left on a host."""
LOGS_WALL_S = 5.0
"""How long the copies of logs may take when a fabric ends."""


@dataclass(frozen=True, slots=True)
class _Opened:
    """What `Cluster.open` was given, for a fabric on several hosts."""

    layout: Layout
    time: Timekeeper
    realm: Realm


@dataclass(frozen=True, slots=True)
class Apart:
    """A host that does not hear others, or that others do not hear. Fabric time stands still meanwhile."""

    host: str
    others: list[str]
    for_s: float
    lease_s: float
    """The cluster gives the host up after this time."""


class Cluster:
    """All hosts of one fabric. `open` after the launcher listens, `close` after the daemons have ended."""

    def __init__(self, sites: Sites | None = None, hosts: Sequence[Host] = (), lease_s: float = LEASE_S) -> None:
        """`hosts`: one for each of `sites`, without the leader's own."""
        self.sites = Sites() if sites is None else sites
        self.pairs = HostPairs([site.name for site in self.sites.sites])
        assert len(hosts) == len(self.sites.sites) - 1
        self.on_death: Callable[[Child], None] = lambda _child: None
        self.on_lost: Callable[[str, str], None] = lambda _site, _why: None
        """Called with the name of a host that is given up, and the reason. The deaths of its processes follow."""
        self.on_joined: Callable[[str], None] = lambda _site: None
        """Called with the name of a host whose share has been started again."""
        self.restarts: Counter[int] = Counter()
        """How often the share of each host has been started again."""
        self.on_warning: Callable[[str], None] = lambda _what: None
        """Called with a condition that makes the fabric slower than necessary; `warnings` keeps it."""
        self.warnings: list[str] = []
        self.on_broken: Callable[[str], None] = lambda _why: None
        """Called when the leader's own relay has ended: the leader then hears no host."""
        self._hosts = hosts
        self._lease_s = lease_s
        self._running: dict[int, Running] = {}
        self._local: LocalShare | None = None
        self._remote: dict[int, RemoteShare] = {}
        self._post: RelayProcess | None = None
        self._watching: asyncio.Task[None] | None = None
        self._opened: _Opened | None = None
        self._unheard_s: dict[tuple[int, int], float] = {}
        """(host, other): `host` does not hear `other`; since when."""
        self._plans: list[ProcessPlan] = []
        self._copies: LogCopies | None = None
        self._starting: set[int] = set()
        """Hosts whose share is being started again."""

    def share(self, number: int) -> Share:
        """The share of a site, by its number. `open` makes it."""
        assert self._local is not None, "open first"
        return self._local if number == LEADER else self._remote[number]

    async def open(self, launcher: Launcher, layout: Layout, time: Timekeeper, realm: Realm, folder: RunFolder) -> None:
        """Make every host ready for daemons. Raises ConfigError, ProcessFailedError; call `close` even then."""
        own = [plan.name for plan in layout.processes if plan.site == LEADER]
        names = [*own, RELAY] if self.sites.several else own
        doorbells = dict(zip(names, time.doorbells, strict=True))
        self._plans, self._copies = layout.processes, LogCopies(folder.logs)
        self._local = LocalShare(launcher, folder)
        self._local.descriptors = await open_descriptors(launcher, time.page, time.agent_doorbell, doorbells)
        if not self.sites.several:
            return
        self._opened = _Opened(layout, time, realm)
        await self._start_agents()
        await asyncio.gather(*(self._furnish(self._remote[number]) for number in sorted(self._remote)))
        self._post = RelayProcess(lambda report: self.pairs.take(LEADER, report))
        await self._post.start(
            launcher, layout, LEADER, realm, self._local.descriptors, self._local.folder / "logs" / f"{RELAY}.log"
        )
        relay = self._post.child
        assert relay is not None
        relay.ended.add_done_callback(lambda _ended: self.on_broken(self._without(relay)))
        await asyncio.gather(*(share.start_relay() for share in self._remote.values()))
        # Only then may daemons start: all hosts hear each other, and the relays have measured the paths of frames.
        await self._until_heard()
        layout.cut = path_check.judge(layout, self.pairs, self._warn)
        self._watching = asyncio.get_running_loop().create_task(self._watch())

    async def close(self) -> None:
        """End every share, then what the engines left on the hosts. Safe to repeat. At the end raises what an engine
        raised, or ProcessFailedError for an engine that did not end its part in time."""
        self.on_broken = lambda _why: None
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait([self._watching])
            self._watching = None
        await self._fetch_logs()
        await asyncio.gather(*(share.close() for share in self._remote.values()))
        running, self._running = self._running, {}
        stops = await asyncio.gather(*(self._stop(*one) for one in running.items()), return_exceptions=True)
        if self._post is not None:
            self._post.close()
            self._post = None
        for failure in stops:
            if isinstance(failure, BaseException):
                raise failure

    async def fetch_log(self, node: str) -> None:
        """Copy the log of a daemon, as far as it is written, to the leader's folder. The leader's own are there.

        Raises ConfigError (there is none), ProcessFailedError (its host is lost), OSError (the copy cannot be written).
        """
        if (number := self.sites.number(node)) != LEADER:
            assert self._copies is not None, "open first"
            await self._copies.fetch(self._remote[number], node, node)

    async def _fetch_logs(self) -> None:
        """Copy all logs of hosts that are not lost, with those of relays and workers, for reading after the end."""
        if self._copies is None:
            return
        living = {number: share for number, share in self._remote.items() if share.lost is None and share.furnished}
        copies = [self._copies.fetch(share, RELAY, f"{RELAY}.{share.site.name}") for share in living.values()]
        names = [(one.site, name) for one in self._plans if one.site in living for name in {one.name, *one.nodes}]
        names += [(number, name) for number, share in living.items() for name in share.workers]
        copies += [self._copies.fetch(living[number], name, name) for number, name in names]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOGS_WALL_S):
                await asyncio.gather(*copies, return_exceptions=True)  # the fabric ends even without the copies

    async def kill_share(self, number: int) -> None:
        """SIGKILL all processes of a host's share at once. Returns when they are gone, at the latest after the lease.

        The kill was asked for: `on_lost` is not called, and the processes count as ended on request
        (`Child.asked_for`). Raises RefusedError for the leader's own share.
        """
        if number == LEADER:
            raise RefusedError(f"host {self.sites.sites[LEADER].name} leads the fabric: it ends with its own share")
        await self._remote[number].kill()

    async def start_share(self, number: int) -> None:
        """Start the share of a host again that is lost or was killed.

        Afterwards its clock page has all that the fabric's has, all hosts hear each other, and it can start daemons.
        Raises RefusedError for a share that runs or is being started. Raises ConfigError and ProcessFailedError as
        `open` does; the host then stays lost.
        """
        name = self.sites.sites[number].name
        if number == LEADER or self._remote[number].lost is None:
            raise RefusedError(f"the share of host {name} runs")
        if number in self._starting:
            raise RefusedError(f"the share of host {name} is being started already")
        self._starting.add(number)
        try:
            await self._restart(number)
        finally:
            self._starting.discard(number)

    async def _restart(self, number: int) -> None:
        site = self.sites.sites[number]
        await self._stop_former(number)
        # A host that still hears the former share would count as hearing the new one.
        await self._until(
            lambda: not any(number in heard for heard in self._hearing().values()),
            lambda: ConfigError(f"host {site.name}", f"what it had is still heard after {HEARD_WALL_S:g} s"),
        )
        share: RemoteShare | None = None
        try:
            share = await self._start_agent(number)
            await self._furnish(share, again=True)
            await share.start_relay()
            await self._until_heard(share)
            if share.lost is not None:
                raise ProcessFailedError(f"host {site.name} is lost: {share.lost}")
        except BaseException as error:
            if share is not None:
                await share.close()
            await self._stop_former(number)
            if share is not None and isinstance(error, ConfigError):
                raise ConfigError(error.where, error.what, "mend that, and restart the host again") from None
            raise
        self._remote[number] = share
        self._tell_of(share)
        self.restarts[number] += 1
        self.on_joined(site.name)

    async def _stop_former(self, number: int) -> None:
        """End what an engine has started on a host, if there is anything."""
        if (running := self._running.pop(number, None)) is not None:
            await self._stop(number, running)

    async def _stop(self, number: int, running: Running) -> None:
        try:
            async with asyncio.timeout(STOP_WALL_S):
                await running.stop()
        except TimeoutError:
            name = self.sites.sites[number].name
            raise ProcessFailedError(
                f"host {name}: what was started there has not ended in {STOP_WALL_S:g} s"
            ) from None

    async def _start_agents(self) -> None:
        async def start(number: int) -> None:
            share = self._remote[number] = await self._start_agent(number)
            self._tell_of(share)

        numbers = range(LEADER + 1, len(self.sites.sites))
        started = await asyncio.gather(*map(start, numbers), return_exceptions=True)
        for failure in started:
            if isinstance(failure, BaseException):
                raise failure

    async def _start_agent(self, number: int) -> RemoteShare:
        """Have one host's share agent started, and connect to it."""
        assert self._opened is not None, "open first"
        site, host, realm = self.sites.sites[number], self._hosts[number - 1], self._opened.realm
        running = await host.start(
            {
                "secret": realm.secret.hex(),
                "fabric": realm.fabric,
                "epoch": realm.epoch,
                "number": number,
                "listen": [site.control, 0],
                "run_dir": host.run_dir,
                "lease_s": self._lease_s,
            }
        )
        self._running[number] = running
        share = RemoteShare(site, number, running.address, realm, self._lease_s)
        share.on_found = lambda report: self.pairs.take(number, report)
        running.ended.add_done_callback(lambda ended: _ended(share, ended))
        await share.open()
        return share

    def _tell_of(self, share: RemoteShare) -> None:
        """From now on, report deaths of a share's processes, and its loss, to the fabric."""
        assert self._opened is not None, "open first"
        share.on_reached = self._opened.time.has_reached
        share.on_death = lambda child: self.on_death(child)
        share.on_lost = lambda why: self.on_lost(share.site.name, why)

    async def _furnish(self, share: RemoteShare, *, again: bool = False) -> None:
        """Send a share the fabric's present state. `again`: its host had a share of this launch before."""
        assert self._opened is not None, "open first"
        layout, page = self._opened.layout, self._opened.time.page
        await share.furnish(
            {
                "topology": layout.topology.to_dict(),
                "pack": layout.pack,
                "cores": list(layout.cores),
                "sites": [[site.name, site.data, site.control] for site in self.sites.sites],
                "of_node": dict(self.sites.of_node),
                "nodes_per_process": self.sites.nodes_per_process,
                "alone": sorted(self.sites.alone),
                "port_base": layout.port_base,
                "dilation": page.dilation,
                "limit_ns": page.limit,
                "again": again,
            }
        )
        if self._hosts[share.number - 1].own_ports:
            await share.reserve(layout.port_count, layout.port_base)

    async def _until_heard(self, joining: RemoteShare | None = None) -> None:
        """Wait until every relay, that of a `joining` share too, hears all others and has measured the paths there."""
        assert self._post is not None
        assert self._opened is not None
        pairs = self._opened.layout.host_pairs()

        def heard() -> bool:
            shares = [*self._remote.values()] if joining is None else [joining]
            for share in shares:
                if share.lost is not None:
                    raise ProcessFailedError(f"host {share.site.name} is lost: {share.lost}")
            return not self._unheard(joining) and all(self.pairs.path(*pair) is not None for pair in pairs)

        def deaf() -> ConfigError:
            here, other = (self.sites.sites[number] for number in min(self._unheard(joining) or pairs))
            return ConfigError(
                f"host {here.name}",
                f"does not hear host {other.name} at {other.control} after {HEARD_WALL_S:g} s",
                "TCP between the control addresses must pass, at the ports of the fabric's block",
            )

        await self._until(heard, deaf)

    async def _until(self, reached: Callable[[], bool], why: Callable[[], ConfigError]) -> None:
        """Wait for a condition on what relays report.

        Raises `why` when it is not met in time, ProcessFailedError when our own relay has ended.
        """
        assert self._post is not None
        deadline = asyncio.get_running_loop().time() + HEARD_WALL_S
        while not reached():
            if asyncio.get_running_loop().time() > deadline:
                raise why()
            if self._post.child is not None and not self._post.child.alive:
                raise ProcessFailedError(self._without(self._post.child))
            await asyncio.sleep(HEARD_POLL_S)

    def _warn(self, what: str) -> None:
        self.warnings.append(what)
        self.on_warning(what)

    def _without(self, relay: Child) -> str:
        return f"the relay of host {self.sites.sites[LEADER].name} has ended: {relay.how_it_ended()}"

    def _hearing(self, joining: RemoteShare | None = None) -> dict[int, set[int]]:
        """Host that is not lost -> the hosts that its relay hears."""
        if self._post is None:
            return {}
        remote = self._remote if joining is None else self._remote | {joining.number: joining}
        return {LEADER: self._post.heard} | {one.number: one.heard for one in remote.values() if one.lost is None}

    def _unheard(self, joining: RemoteShare | None = None) -> set[tuple[int, int]]:
        """(host, other): neither is lost, and `host` does not hear `other`."""
        hearing = self._hearing(joining)
        return {(here, other) for here in hearing for other in hearing if other not in {here, *hearing[here]}}

    def condition(self, number: int) -> tuple[str, str]:
        """The state of a host's share: `runs`, `starts`, or `lost` with the reason."""
        share = self._remote.get(number)
        why = None if share is None else share.lost
        return ("starts", "") if number in self._starting else ("runs", "") if why is None else ("lost", why)

    def unheard_by(self, number: int) -> list[str]:
        """The hosts that this host does not hear. Its nodes wait for theirs."""
        return [self.sites.sites[other].name for here, other in sorted(self._unheard()) if here == number]

    @property
    def whole(self) -> bool:
        """Whether all hosts hear each other. While they do not, time stands still, and no daemon is to blame."""
        return not self._unheard()

    async def _watch(self) -> None:
        """If two hosts cannot hear each other for a lease, give up the host that is in most such pairs."""
        while True:
            await asyncio.sleep(WATCH_S)
            now = asyncio.get_running_loop().time()
            self._unheard_s = {pair: self._unheard_s.get(pair, now) for pair in self._unheard()}
            apart = self.apart()
            if apart is not None and apart.for_s >= self._lease_s:
                others = ", ".join(apart.others)
                number = next(share.number for share in self._remote.values() if share.site.name == apart.host)
                self._remote[number].fail(f"it and {others} do not hear each other for {self._lease_s:g} s")

    def apart(self) -> "Apart | None":
        """While not all hosts hear each other: the host that is in most such pairs. Noticed within WATCH_S."""
        since = self._unheard_s
        living = [share.number for share in self._remote.values() if share.lost is None]
        if not since or not living or self.whole:
            return None
        number = max(living, key=lambda one: (sum(one in pair for pair in since), one))
        others = {one for pair in since if number in pair for one in pair} - {number}
        names = [self.sites.sites[one].name for one in (number, *sorted(others))]
        for_s = asyncio.get_running_loop().time() - min(since.values())
        return Apart(names[0], names[1:], for_s, self._lease_s)


def _ended(share: RemoteShare, ended: "asyncio.Future[str]") -> None:
    if not ended.cancelled():
        how = ended.result()
        if how.startswith(UNSEEN):
            share.doubt(f"the engine has lost sight of its agent: {how}")
        else:
            share.fail(f"its agent has ended: {how}")
