"""A fabric that runs on this host, as a Python object: launch it, ask its daemons, break it, close it.

`mrcfabric up`, the demo, measurements and tests launch their fabric here. Scripts use `orchestrator.fabric.Fabric`,
which adds workloads and watches. Owns the order in which the parts start and end. The parts do the work: `layout`
(where everything runs), `launcher` (processes), `daemons` (daemons), `timekeeper` (fabric time), `fault_injector`,
`lifecycle` (deaths and returns), `state_file`, `run_folder` and `ports`.

    async with LaunchedFabric.launch(Topology.demo(), Path("out/demo")) as fabric:
        await fabric.inject(once("link_down", "p0-t0-0~p0-t1-2", at_ns=fabric.soon_ns()))
        print(await fabric.call("h003", "counters"))
"""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, Self

import nicd.metrics
import switchd.metrics
from mrcfabric.control import Realm
from mrcfabric.errors import RefusedError
from mrcfabric.topology import Topology
from mrcfabric.topology_file import with_system
from mrcfabric.units import NEVER, Instant
from nicd.programs.program import Program
from orchestrator.fabric import arguments, readings, stalls
from orchestrator.fabric.daemons import SCRAPE_WALL_S, Daemons
from orchestrator.fabric.fault_injector import FaultInjector
from orchestrator.fabric.journal import Journal
from orchestrator.fabric.lifecycle import Lifecycle
from orchestrator.fabric.polling import Glances, Poller
from orchestrator.fabric.program_loading import ProgramLoading
from orchestrator.fabric.readings import ClockReading, Death
from orchestrator.fabric.state_file import StateFile
from orchestrator.fabric.tallies import Counted, Tallies
from orchestrator.fabric.worker_processes import WorkerProcesses
from orchestrator.faults.absence import deaf
from orchestrator.faults.fault import Fault
from orchestrator.faults.table import FaultTable, Stamped
from orchestrator.hosts import doctor
from orchestrator.hosts.clock.host_pairs import Row
from orchestrator.hosts.clock.timekeeper import Timekeeper
from orchestrator.hosts.cluster import Cluster
from orchestrator.hosts.placement.layout import PRELOADED, Layout, Pack, check_size
from orchestrator.hosts.placement.site import LOOPBACK, Sites
from orchestrator.planning import plan
from orchestrator.process import log_bounds, ports
from orchestrator.process.launcher import Child, Launcher, ProcessFailedError
from orchestrator.process.run_folder import RunFolder, default_path

ASKED: Final = "somebody asked for it"
"""Why a fault is healed, unless its owner has gone."""


class LaunchedFabric(Counted):
    """A fabric whose daemons run. Make it with `launch`, which closes it at the end of the block."""

    def __init__(
        self,
        topology: Topology,
        folder: RunFolder,
        pack: Pack,
        port_base: int | None,
        trace: bool,
        limit_ns: Instant = NEVER,
        cluster: Cluster | None = None,
        http_host: str = LOOPBACK,
    ) -> None:
        super().__init__(topology)
        self.folder = folder
        self.journal = Journal()
        self.epoch = time.time_ns()  # distinguishes this launch from every other
        self.cluster = Cluster() if cluster is None else cluster
        sites = self.cluster.sites
        self.layout = Layout(topology, pack, sites, http_host, cores=doctor.cores_for(pack, sites))
        self.host_map = self.cluster.sites.host_map(topology)
        self._launcher = Launcher()
        self._launcher.start(f"mrcfabric {topology.name} fork server", PRELOADED, folder.log("forkserver"))
        self._closing = False
        self.workers = WorkerProcesses(self.cluster)
        self._serving: list[asyncio.Task[None]] = []
        self.broken: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Set, with the reason, when the whole fabric has failed."""
        self._launcher.on_death, self._launcher.on_lost = self._died, self._lost
        self.cluster.on_death, self.cluster.on_lost, self.cluster.on_broken = self._died, self._lost_host, self._lost
        self.cluster.on_joined = lambda host: self.journal.note("host_restarted", self.now_ns(), host=host)
        self.limit_owner: str | None = None if limit_ns == NEVER else ""
        """Who controls how far fabric time may go; None: nobody, it runs freely."""
        self._block: ports.PortBlock | None = None
        self._timekeeper: Timekeeper | None = None
        try:
            self._block = ports.allocate(self.layout.port_count, port_base)
            self.layout.port_base = self._block.base
            self.time = self._timekeeper = Timekeeper(
                self.layout.peers(),
                self.layout.doorbells_here,
                (topology.link_delay_ns, topology.link_delay_ns_max),
                0.0 if topology.dilation == "auto" else float(topology.dilation),
                limit_ns,
                several=self.cluster.sites.several,
            )
            self._realm = Realm(folder.secret, topology.name, self.epoch)
            self.daemons = Daemons(self.layout, self.cluster, self.time, self._realm, trace)
            self.tallies = Tallies(self.time.page, self.layout.slot, list(topology.node_names()))
            self.poller = Poller(self.daemons, self.time)
            table = FaultTable(topology)
            self.lifecycle = Lifecycle(
                topology, table, self.host_map, self.cluster, self.daemons, self.time, self.tallies, self.journal
            )
            self.injector = FaultInjector(
                topology, table, self.host_map, self.daemons, self.lifecycle, self.time, self.journal
            )
            self.programs = ProgramLoading(topology, self.daemons, self.lifecycle, self.time)
            self._state_file = StateFile(folder, self.daemons, self.epoch, self._launcher.pid, self.journal)
        except BaseException:
            self._launcher.abandon()
            self._release()
            raise

    @classmethod
    @asynccontextmanager
    async def launch(
        cls,
        topology: Topology,
        run_dir: str | Path | None = None,
        *,
        system: str | None = None,
        pack: Pack = "none",
        port_base: int | None = None,
        trace: bool = False,
        limit_ns: Instant | None = None,
        cluster: Cluster | None = None,
        http_host: str = LOOPBACK,
    ) -> AsyncIterator[Self]:
        """Start every daemon of `topology`, yield the fabric when all are ready, and close it afterwards.

        `run_dir` (default: out/NAME) stays claimed meanwhile. `system`: a system, by name or path, whose settings go
        beneath those of `topology`. `port_base` None picks free ports. `trace` keeps a digest of everything that each
        node does. At `limit_ns` time stands still until somebody calls `limit`. `cluster` holds the hosts (default:
        this one). Daemons serve metrics at `http_host`. Raises ConfigError (folder in use, ports in use, a daemon
        refuses its configuration) or ProcessFailedError; then no process is left running.
        """
        arguments.check_launch(topology, system, pack, limit_ns, trace, port_base, cluster, http_host)
        topology = topology if system is None else with_system(topology, system)
        sites = Sites() if cluster is None else cluster.sites
        check_size(topology, sites)
        doctor.require(topology, pack, sites)
        plan.check(topology)
        folder = RunFolder.claim(arguments.folder("run_dir", run_dir) or default_path(topology.name))
        folder.transient = True
        try:
            limit = NEVER if limit_ns is None else limit_ns
            fabric = cls(topology, folder, pack, port_base, trace, limit, cluster, http_host)
        except BaseException:
            folder.release()
            raise
        try:
            await fabric._start()
            yield fabric
        finally:
            await fabric.close()

    async def _start(self) -> None:
        self._launcher.attach()
        await self.cluster.open(self._launcher, self.layout, self.time, self._realm, self.folder)
        await self.daemons.start_all(self.broken)
        loop = asyncio.get_running_loop()
        watching = stalls.watch(self.daemons, self.time, self.journal)
        works = (self.time.serve(), watching, log_bounds.keep(self.folder.logs))
        self._serving = [loop.create_task(work) for work in works]
        self.folder.transient = False
        self._state_file.write()
        self.lifecycle.on_change = lambda: self._state_file.update(self.now_ns())
        self.journal.note("ready", 0, daemons=self.topology.nodes, processes=len(self.layout.processes))

    async def close(self) -> None:
        """End every process, then release ports, page and folder. Safe to repeat."""
        if self._closing:
            return
        self._closing = True
        for task in self._serving:
            task.cancel()
        try:
            await self.poller.close()
            await self.lifecycle.close()
            await self.workers.close()
            await self._launcher.stop()
        except ProcessFailedError:
            pass  # the fork server has ended, and all its processes on this host with it
        finally:
            self.daemons.close()
            self._launcher.abandon()
            try:
                await self.cluster.close()
            finally:
                if self._serving:
                    await asyncio.wait(self._serving)
                self._release()
                self.folder.release()

    def _release(self) -> None:
        if self._timekeeper is not None:
            self._timekeeper.close()
        if self._block is not None:
            self._block.close()

    def _died(self, child: Child) -> None:
        if not self._closing and child not in self.workers:
            self.lifecycle.died(child)
            self._state_file.update(self.now_ns())

    def _lost(self, why: str) -> None:
        if not self._closing and not self.broken.done():
            self.broken.set_result(why)

    def _lost_host(self, name: str, why: str) -> None:
        if not self._closing:
            self.journal.note("host_lost", self.now_ns(), host=name, why=why)

    # Asking.

    async def call(
        self, node: str, op: str, args: Mapping[str, Any] | None = None, timeout_s: float | None = None
    ) -> Any:
        """Ask a node's daemon to carry out an op of its control channel (`mrcfabric.daemon` lists them); its answer.

        Raises ConfigError (no such node), RefusedError (the daemon refuses or is down), NoAnswerError
        (`orchestrator.process.answer_wait`).
        """
        return await self.daemons.call(*arguments.request(node, op, args), timeout_s)

    async def command(
        self, node: str, op: str, args: Mapping[str, Any], at_ns: Instant | None = None, timeout_s: float | None = None
    ) -> Any:
        """Have a node's core carry out a command at `at_ns`, or as soon as possible; returns its result."""
        answer = await self.call(node, "command", {"op": op, "args": dict(args), "at_ns": at_ns}, timeout_s)
        return answer["result"]

    async def schedule(self, commands: Sequence[Stamped]) -> None:
        """Send stamped commands to the daemons. Returns when they have them, long before they carry them out.

        When a node refuses a command at its instant, the journal gets a note of kind `refused`.
        """
        await self.lifecycle.schedule(commands)

    async def counters(
        self,
        nodes: Sequence[str] | None = None,
        *,
        timeout_s: float | None = None,
        silent: list[str] | None = None,
        parts: Sequence[str] | None = None,
    ) -> dict[str, dict[str, Any]]:
        """The counters of these nodes (None: all) that are not down; `parts` limits them to these parts.

        A daemon that does not answer in time is added to `silent`; without that list NoAnswerError is raised.
        """
        return await self.daemons.counters(nodes, timeout_s, silent, parts)

    async def fidelity(self) -> dict[str, Any]:
        """As `Verbs.fidelity`, with the packing that ran and how many processes it came to."""
        return {**await super().fidelity(), "pack": self.layout.pack, "processes": len(self.layout.processes)}

    async def glances(self, nodes: Sequence[str] | None = None) -> Glances:
        """The glances of these daemons (None: all). Cheap to repeat (`orchestrator.fabric.polling`)."""
        return await self.poller.look(nodes)

    async def metrics(self, node: str) -> str:
        """What a node counts, as Prometheus text (docs/METRICS.md). Raises as `call`."""
        counted = await self.call(node, "counters", timeout_s=SCRAPE_WALL_S)
        render = nicd.metrics.render if self.topology.parse_node(node).tier == "nic" else switchd.metrics.render
        return render(self.topology.name, node, counted).decode()

    async def host_pairs(self) -> list[Row]:
        """As `Verbs.host_pairs`. Daemons that hear no other host are not asked, so their latest losses are missing."""
        if not self.cluster.sites.several:
            return []
        cut = deaf(self.faults(), self.now_ns())
        await self.counters([node for node in self.topology.node_names() if node not in cut], parts=("fidelity",))
        return self.known_pairs()

    def known_pairs(self) -> list[Row]:
        """As `host_pairs`, from what the daemons last reported; nobody is asked."""
        return self.cluster.pairs.rows(self.layout, self.daemons.past.counters())

    def now_ns(self) -> Instant:
        """The fabric time that every living node has reached."""
        return self.time.now_ns()

    def soon_ns(self) -> Instant:
        """The earliest instant for which a command sent now is not late."""
        return self.time.soon_ns()

    def verbs_path(self, nic: str) -> str:
        """The path of a NIC's host API socket.

        Raises ConfigError when the name is not that of a NIC, RefusedError when the NIC is on another host.
        """
        self.topology.nic_index(nic)
        self.layout.sites.require_here(nic)
        return self.workers.verbs_path(nic)

    def alive(self, node: str) -> bool:
        """Whether the node's process runs."""
        return self.daemons.member(node).alive

    def unexpected_deaths(self) -> list[str]:
        """Daemons that ended although nobody asked for it, and how each ended."""
        return list(self.lifecycle.unexpected)

    async def deaths(self) -> list[Death]:
        """The deaths that nobody asked for, with the last log lines of each daemon."""
        return readings.deaths(self.journal, self.folder.path)

    # Time and work.

    async def clock(self) -> ClockReading:
        """Read what time it is, how far it may go, and whether anything is pending."""
        return ClockReading.of(self.time, self.cluster.whole)

    async def limit(self, at_ns: Instant | None, owner: str = "") -> Instant | None:
        """Let everything up to and including `at_ns` happen, then stand still; None: let time go on for good.

        Returns the instant at which time will stand still: later than `at_ns` if the furthest node is already past it.
        A node in the middle of a step may end that step later, but never beyond `soon_ns`. Raises RefusedError when
        another owner controls time.
        """
        if self.limit_owner not in (None, owner):
            raise RefusedError(f"fabric time is in the hands of {self.limit_owner or 'somebody else'}")
        bound_ns = self.time.limit(None if at_ns is None else arguments.instant("at_ns", at_ns))
        self.limit_owner = None if at_ns is None else owner
        return None if at_ns is None else bound_ns

    async def load(self, program: Program, at_ns: Instant | None = None) -> None:
        """Give every NIC of a program its part, at an instant before the program begins or as soon as possible.

        Without `at_ns`, returns when the NICs have taken their parts, and raises RefusedError with the reason of a NIC
        that refuses; fabric time must be running. With `at_ns`, returns when the daemons have the command; a refusal
        becomes a note in the journal. Raises ConfigError for a NIC that does not exist.
        """
        await self.programs.load(program, at_ns)

    async def stop_work(self, program: Program) -> dict[str, str]:
        """Have all living NICs of a program end and forget it at one instant; returns NIC -> error where that failed.

        A NIC that does not know it (it was started again) has nothing to end. Afterwards the program's name and number
        can be used again. Fabric time must be running.
        """
        return await self.programs.stop(program)

    # Breaking.

    async def inject(self, fault: Fault) -> Fault:
        """Inject a fault whose windows lie in the future. Returns it as resolved, once the daemons have been told.

        The future begins at `soon_ns` while time runs. Raises ConfigError for a fault that makes no sense. Raises
        RefusedError for a fault that comes too late. When a node is to return, fabric time waits until it is ready.
        """
        return await self.injector.inject(fault)

    async def heal(self, fault_id: str, at_ns: Instant | None = None, why: str = ASKED) -> Fault | None:
        """End a fault at an instant, by default soon; returns what is left of it. A dead node is started again.

        `why`: the cause in the event log. Raises RefusedError when there is no such fault or it is over,
        ProcessFailedError when the node does not start.
        """
        return await self.injector.heal(fault_id, at_ns, why)

    def faults(self) -> list[Fault]:
        """Every injected fault that has not ended, and every death that nobody asked for."""
        return self.injector.faults()

    def active_faults(self) -> list[Fault]:
        """Every fault that is in force now."""
        return self.injector.active()

    async def live_faults(self) -> list[Fault]:
        """`faults`, in the form that scripts call."""
        return self.faults()

    # State for other programs.

    def state(self) -> dict[str, Any]:
        """The content of state.json (`orchestrator.fabric.state_file`)."""
        return self._state_file.content()
