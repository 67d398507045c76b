"""The daemon of a NIC: the NIC core under the runner, its host API, and its ops beside those of all daemons.

ev_table {qpn}               one row per EV of a QP
ev_tables {qpns}             the same of several QPs, each row with its qpn; a QP that is gone has no rows
qp_table {}                  one row per QP
ev_probes {batch}            the results of a batch of the probe_evs command
ev_profiles {}               attributes of every EV profile
ev_profile {profile}         one row per EV of a profile that lists or has generated them
ev_events {limit}            takes EV events off their queue, oldest first; drop_count: events lost before one
reverse_paths {}             the EV and path of acknowledgements, by peer and plane
denied_paths {}              the standing list of barred paths: plane, path, peer_index (None: all)
link_table {}                what self probes have found of the links around the NIC, one row per way
state {}                     bytes of protocol state: now, at the peak and reserved, by QP and destination
bins {since}                 goodput bins (start, bytes placed per plane) from fabric time `since` on
programs {}                  every rank that ever ran here: state, steps, latencies, flows, bytes verified
progress {}                  the cheap part of `programs`: state, number of steps, bytes per flow
"""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mrcfabric.command_table import CommandTable
from mrcfabric.control import Op
from mrcfabric.daemon import Daemon, instant_of
from mrcfabric.daemon_config import DaemonConfig
from mrcfabric.daemon_process import run_tables
from mrcfabric.errors import ConfigError, RefusedError
from mrcfabric.glance import NicRest
from mrcfabric.link_port import LinkEnd
from mrcfabric.metrics import Family
from mrcfabric.runner import Runner
from mrcfabric.witness import Witness
from nicd import metrics
from nicd.compose import nic_config
from nicd.core import commands as asked
from nicd.core import commands_paths as paths_asked
from nicd.core.events import STATUS_OK, Completion
from nicd.programs.commands import RunProgram, StopProgram
from nicd.programs.hosted_nic import HostedNic
from nicd.verbs_server import VerbsServer

EV_EVENTS_PER_ANSWER = 256
SOCKET_PATH_BYTES_MAX = 107
"""Longest path of a Unix socket (sun_path, without the closing zero)."""


def run_nicd(config: Mapping[str, Any], fds: Sequence[int] = (), title: str = "") -> int:
    """The fork server's entry: run one NIC in this process until told to stop; returns the exit code.

    `config` is a table as `mrcfabric.daemon_config` describes it. Descriptors in it are the numbers that this process
    has; `fds` are the process's own and not needed. `title` names the process; by default it has the node's name.
    """
    return run_tables("nicd", [config], build, title)


def build(config: DaemonConfig, stop: asyncio.Event) -> Daemon:
    """The daemon of one NIC. Raises ConfigError."""
    return NicDaemon(config, stop)


class NicDaemon(Daemon):
    """One NIC."""

    kind = "nic"
    commands = CommandTable(
        [
            asked.RegisterMemory,
            asked.DeregisterMemory,
            asked.CreateQp,
            asked.ConnectQp,
            asked.ModifyQp,
            asked.DestroyQp,
            asked.PostWrite,
            asked.SetCarrier,
            asked.SetImpairment,
            asked.SetPauseStorm,
            asked.SetReceiveRate,
            asked.SetManager,
            asked.SetManagerPace,
            asked.StartManager,
            asked.StopManager,
            asked.ProbeLinks,
            asked.ProbeLoop,
            paths_asked.DenyEv,
            paths_asked.AllowEv,
            paths_asked.DenyPaths,
            paths_asked.AllowPaths,
            paths_asked.CreateEvProfile,
            paths_asked.ModifyEvProfile,
            paths_asked.DestroyEvProfile,
            paths_asked.DenyProfileEv,
            paths_asked.AllowProfileEv,
            paths_asked.ReplaceEv,
            paths_asked.ProbeEvs,
            RunProgram,
            StopProgram,
        ]
    )

    def __init__(self, config: DaemonConfig, stop: asyncio.Event) -> None:
        composed = nic_config(config.topology, config.node)
        self.nic = HostedNic(composed, config.start_ns)
        self._verbs: VerbsServer | None = None
        super().__init__(config, self.nic, stop)
        if config.verbs is not None:
            _check_socket_path(config.verbs)
            self._verbs = VerbsServer(config.verbs, self._from_application, config.node, composed.index)

    def own_ops(self) -> Mapping[str, Op]:
        """The ops that the module's text lists."""
        return {
            "ev_table": self._ev_table,
            "ev_tables": self._ev_tables,
            "qp_table": self._qp_table,
            "denied_paths": self._denied_paths,
            "reverse_paths": self._reverse_paths,
            "ev_probes": self._ev_probes,
            "ev_profiles": self._ev_profiles,
            "ev_profile": self._ev_profile,
            "ev_events": self._ev_events,
            "link_table": self._link_table,
            "state": self._state,
            "bins": self._bins,
            "programs": self._programs,
            "progress": self._progress,
        }

    def own_counters(self) -> dict[str, Callable[[], Any]]:
        programs: dict[str, Callable[[], Any]] = {"programs": self.nic.host.counters}
        return programs if self._verbs is None else {**programs, "verbs": self._verbs.counters}

    def own_glance(self) -> tuple[list[Any], NicRest]:
        return self.nic.glance(self.nic.host.glance())

    def own_totals(self) -> Sequence[int]:
        return self.nic.totals()

    @staticmethod
    def noteworthy(event: Any) -> bool:
        """Keep all events but answers and successful completions, which only their askers need."""
        if isinstance(event, Completion):
            return event.status != STATUS_OK
        return Daemon.noteworthy(event)

    def deliver(self, events: list[Any]) -> None:
        if self._verbs is not None:
            self._verbs.deliver(events)

    def attach(self, runner: Runner, links: list[LinkEnd], slot: int, *, alone: bool = True) -> None:
        if self._verbs is not None:
            try:
                self._verbs.start()
            except OSError as error:
                raise ConfigError(f"verbs socket {self.config.verbs}", error.strerror or str(error)) from None
        super().attach(runner, links, slot, alone=alone)

    def close(self) -> None:
        super().close()
        if self._verbs is not None:
            self._verbs.close()

    def drop(self) -> None:
        super().drop()
        if self._verbs is not None:
            self._verbs.drop()

    def set_witness(self, witness: Witness | None) -> None:
        self.nic.set_witness(witness)

    def families(self, counters: dict[str, Any]) -> list[Family]:
        return metrics.collect(self.config.realm.fabric, self.config.node, counters)

    def _from_application(self, command: asked.Command) -> None:
        self.drive.command(command)

    async def _ev_table(self, args: dict[str, Any]) -> list[dict[str, Any]]:
        qpn = instant_of(args, "qpn")
        if qpn is None:
            raise RefusedError("ev_table needs qpn")
        if all(row["qpn"] != qpn for row in self.nic.qp_table()):
            raise RefusedError(f"{self.config.node} has no QP {qpn}")
        return self.nic.ev_table(qpn)

    async def _ev_tables(self, args: dict[str, Any]) -> list[dict[str, Any]]:
        qpns = args.get("qpns")
        if not isinstance(qpns, list) or not all(isinstance(qpn, int) for qpn in qpns):
            raise RefusedError("ev_tables needs qpns, a list of whole numbers")
        return [{"qpn": qpn, **row} for qpn in dict.fromkeys(qpns) for row in self.nic.ev_table(qpn)]

    async def _qp_table(self, _args: dict[str, Any]) -> list[dict[str, Any]]:
        return self.nic.qp_table()

    async def _ev_probes(self, args: dict[str, Any]) -> dict[str, Any]:
        batch = instant_of(args, "batch")
        if batch is None:
            raise RefusedError("ev_probes needs batch")
        return self.nic.ev_probes(batch)

    async def _ev_profiles(self, _args: dict[str, Any]) -> list[dict[str, Any]]:
        return self.nic.ev_profiles()

    async def _ev_profile(self, args: dict[str, Any]) -> list[dict[str, Any]]:
        number = instant_of(args, "profile")
        if number is None:
            raise RefusedError("ev_profile needs profile")
        return self.nic.ev_profile(number)

    async def _ev_events(self, args: dict[str, Any]) -> list[dict[str, Any]]:
        limit = instant_of(args, "limit")
        return self.nic.take_ev_events(EV_EVENTS_PER_ANSWER if limit is None else min(limit, EV_EVENTS_PER_ANSWER))

    async def _reverse_paths(self, _args: dict[str, Any]) -> list[dict[str, Any]]:
        return self.nic.reverse_paths()

    async def _denied_paths(self, _args: dict[str, Any]) -> list[dict[str, int | None]]:
        return self.nic.denied_paths()

    async def _link_table(self, _args: dict[str, Any]) -> dict[str, Any]:
        return self.nic.link_table()

    async def _state(self, _args: dict[str, Any]) -> dict[str, Any]:
        return self.nic.state_report()

    async def _bins(self, args: dict[str, Any]) -> list[Any]:
        return self.nic.bins(instant_of(args, "since") or 0)

    async def _programs(self, _args: dict[str, Any]) -> list[dict[str, Any]]:
        return self.nic.host.records()

    async def _progress(self, _args: dict[str, Any]) -> dict[str, dict[str, Any]]:
        return self.nic.host.progress()


def _check_socket_path(path: str) -> None:
    if len(os.fsencode(path)) > SOCKET_PATH_BYTES_MAX:
        raise ConfigError(f"verbs socket {path}", f"is longer than {SOCKET_PATH_BYTES_MAX} bytes")
    if not os.path.isdir(os.path.dirname(path) or "."):
        raise ConfigError(f"verbs socket {path}", "its folder does not exist")
