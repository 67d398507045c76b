"""A worker process: opens its NIC, runs its role, and ends.

Owns the entry point that the fork server calls, and the roles. `station.py` has what all roles work with. Every failure
becomes one "failed" message of one line, and exit code 1.

    worker -> orchestrator   what the station and the role say, done | failed
    orchestrator -> worker   the same, (closes the channel)
"""

import contextlib
import socket
from collections.abc import Callable, Mapping
from typing import Any, Final

from setproctitle import setproctitle

from nicd.verbs import Device, VerbsError
from orchestrator.workers import allreduce, traffic
from orchestrator.workers.channel import ChannelClosedError, WorkerChannel
from orchestrator.workers.station import Station, WorkloadError

EXIT_FAILED = 1
ROLES: Final[Mapping[str, Callable[[Station, Mapping[str, Any]], None]]] = {
    "allreduce": allreduce.run,
    "traffic": traffic.run,
}


def main(arguments: Mapping[str, Any], fds: list[int]) -> int:
    """A workload process: `arguments` are `name`, `verbs`, `role` and the role's own, `fds[0]` the channel."""
    setproctitle(f"mrc-worker {arguments['name']}")
    return work(arguments, socket.socket(fileno=fds[0]))


def work(arguments: Mapping[str, Any], sock: socket.socket) -> int:
    """Run the worker in any process or thread. Returns the exit code."""
    channel = WorkerChannel(sock)
    try:
        with Device.open(arguments["verbs"]) as nic:
            ROLES[arguments["role"]](Station(channel, nic, arguments["name"]), arguments)
            channel.send("done")
            while channel.receive():
                pass
    except ChannelClosedError:
        # The orchestrator closed the channel of a worker that is done, or of all.
        return 0
    except (VerbsError, WorkloadError, OSError) as error:
        with contextlib.suppress(ChannelClosedError):
            channel.send("failed", reason=f"{arguments['name']}: {error}")
        return EXIT_FAILED
    finally:
        channel.close()
    return 0
