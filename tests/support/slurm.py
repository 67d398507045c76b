"""A real Slurm over the hosts of a cluster: its controller on `home`, a slurmd on every other host, munge on all.

    async with cluster(hosts=3) as hosts, slurm(hosts) as jobs:
        job = await jobs.allocate()
        await hosts.home.run([...], jobs.within(job))

Nothing of it has a place on the machine: configuration, state and key are below the cluster's folder, sockets and logs
in the hosts' own /run and /var/log, and all daemons end with the PID 1 of their host.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from tests.support.cluster import Cluster, Host
from tests.support.namespaces import Finished
from tests.support.packages import program
from tests.support.wait import eventually_true

READY_WALL_S: Final = 30.0
CORES: Final = 2
SILENT_S: Final = 5
"""After so long without a word of it a node is down, for the controller."""
_KEY_BYTES: Final = 128
_CONFIG: Final = """
ClusterName=tests
SlurmctldHost=home({controller})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
StateSaveLocation={state}
SlurmdSpoolDir=/run/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=/var/log/slurmctld.log
SlurmdLogFile=/var/log/slurmd.log
{communication}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
ReturnToService=2
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdTimeout={silent}
SlurmctldTimeout=30
InactiveLimit=0
KillWait=2
WaitTime=0
MinJobAge=300
SchedulerParameters=batch_sched_delay=0,sched_interval=1
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
{nodes}
PartitionName=all Nodes=ALL Default=YES State=UP MaxTime=60
"""


class Slurm:
    """The cluster's Slurm, as a user on `home` has it."""

    def __init__(self, hosts: Cluster) -> None:
        self._hosts = hosts
        self._folder = hosts.folder / "slurm"
        self._key = self._folder / "munge.key"
        self._daemons: list[asyncio.subprocess.Process] = []
        self.environment = {"SLURM_CONF": str(self._folder / "slurm.conf")}

    async def start(self) -> None:
        """All daemons; returns when every node can be had."""
        await asyncio.to_thread(self._write)
        await asyncio.gather(*(self.serve(host) for host in self._hosts))
        home = self._hosts.home
        await self._munge(home)
        await self._daemon(home, "slurmctld", "-D", "-c")
        await eventually_true(self._all_idle, READY_WALL_S)

    async def serve(self, host: Host) -> None:
        """munged and slurmd on a host that has just come up."""
        await self._munge(host)
        await self._daemon(host, "slurmd", "-D", "-N", host.name)

    async def allocate(self, *options: str) -> str:
        """The number of a new job that holds all nodes, or those of the options, until it is cancelled."""
        nodes = options or (f"--nodes={len(self._hosts.hosts)}",)
        command = ["salloc", "--no-shell", "--exclusive", "--no-kill", "--quiet", *nodes]
        (await self.run(command)).well()
        jobs = (await self.run(["squeue", "--noheader", "--format=%i", "--sort=-i"])).well().split()
        return jobs[0]

    def within(self, job: str) -> dict[str, str]:
        """The environment of a command in an allocation: what `salloc` gives its shell."""
        count = len(self._hosts.hosts)
        return {
            **self.environment,
            "SLURM_JOB_ID": job,
            "SLURM_JOB_NODELIST": f"h[1-{count}]",
            "SLURM_JOB_NUM_NODES": str(count),
            "SLURM_JOB_CPUS_PER_NODE": f"{CORES}(x{count})",
        }

    async def run(self, argv: Sequence[str]) -> Finished:
        """Run a command on `home` to its end."""
        return await self._hosts.home.run(argv, self.environment)

    async def cancel(self, job: str) -> None:
        """End a job, and wait until the controller has its nodes back."""
        (await self.run(["scancel", job])).well()

        async def over() -> bool:
            return not (await self.run(["squeue", "--noheader", "--jobs", job])).out.strip()

        await eventually_true(over, READY_WALL_S)

    async def stop(self) -> None:
        """End the daemons; those of a host that has died have ended with it."""
        for daemon in self._daemons:
            if daemon.returncode is None:
                daemon.kill()
        for daemon in self._daemons:
            await daemon.wait()

    def _write(self) -> None:
        self._folder.mkdir()
        (self._folder / "state").mkdir()
        self._key.touch(0o600)
        self._key.write_bytes(secrets.token_bytes(_KEY_BYTES))
        names = [(host.name, host.address) for host in self._hosts]
        nodes = [f"NodeName={name} NodeAddr={address} CPUs={CORES} RealMemory=1000" for name, address in names]
        six = ":" in self._hosts.home.address
        config = _CONFIG.format(
            controller=self._hosts.home.address,
            state=self._folder / "state",
            communication="CommunicationParameters=EnableIPv6,DisableIPv4" if six else "",
            silent=SILENT_S,
            nodes="\n".join(nodes),
        )
        Path(self.environment["SLURM_CONF"]).write_text(config)
        (self._folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")

    async def _munge(self, host: Host) -> None:
        script = (
            'mkdir -p -m 755 /run/munge; exec "$@" --foreground --key-file="$KEY" --socket=/run/munge/munge.socket.2 '
            "--pid-file=/run/munge/munged.pid --seed-file=/run/munge/munged.seed --num-threads=2"
        )
        await self._daemon(host, "sh", "-c", script, "sh", str(program("munged")), KEY=str(self._key))

    async def _daemon(self, host: Host, name: str, *options: str, **environment: str) -> None:
        log = (self._folder / f"{host.name}.{name}.log").open("ab")
        with log:
            self._daemons.append(
                await asyncio.create_subprocess_exec(
                    *host.entering(),
                    *(f"{key}={value}" for key, value in {**self.environment, **environment}.items()),
                    str(program(name)),
                    *options,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
            )

    async def _all_idle(self) -> bool:
        told = await self.run(["sinfo", "--noheader", "--Node", "--format=%T"])
        return told.code == 0 and told.out.split() == ["idle"] * len(self._hosts.hosts)


@asynccontextmanager
async def slurm(hosts: Cluster) -> AsyncIterator[Slurm]:
    """Slurm over these hosts; it ends with the block. Skips the test, or fails it in CI, where it is not installed."""
    for name in ("slurmctld", "slurmd", "munged", "srun", "salloc", "sbatch"):
        program(name)
    made = Slurm(hosts)
    try:
        await made.start()
        yield made
    finally:
        await made.stop()
