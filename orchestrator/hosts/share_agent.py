"""`python -m orchestrator.hosts.share_agent`: an engine starts this on every host of a fabric but the leader's.

Owns the connection with the leader and the end of the share. The leader asks over one `KeyedStream`, and
`orchestrator.hosts.share_host` does what it asks. The agent does nothing unasked, except to end. It ends, with every
process it started, when the leader says so, when it has not heard the leader for the lease, and when its own fork
server or relay has ended. However the agent dies, the kernel ends the fork server with it.

The launch comes as one JSON line on standard input, so that the secret stands on no command line: `{"secret", "fabric",
"epoch", "number", "listen", "run_dir", "lease_s"}`, and `parent`, a process id, where the agent must not outlive that
process. When the agent listens, it prints one line to standard output: `{"address", "port", "pid", "version",
"python"}`. If it cannot, it prints `{"where", "what", "hint"}` and exits with code 2.

A request is `{"id", "op", ...}` in msgpack. The answer is `{"id", "ok": result}` or `{"id", "refused": [where, what,
hint]}`. A request that is repeated under the same id gets the same answer. `{"event": ...}` tells what happens unasked.
"""

import asyncio
import json
import os
import platform
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgpack
import uvloop
from setproctitle import setproctitle

from mrcfabric.control_message import Realm
from mrcfabric.errors import ConfigError
from orchestrator.hosts import remote_workers
from orchestrator.hosts.share_host import ShareHost
from orchestrator.process.forkserver import die_with_parent
from orchestrator.process.host_lease import HUNG_UP_S, LEASE_S, UNHEARD_S, beat_s
from orchestrator.process.keyed_stream import HUNG_UP, Endpoint, KeyedStream, Strangers
from orchestrator.process.launcher import ProcessFailedError

PURPOSE = b"share"
ANSWERS_KEPT = 1024
"""More than a leader has under way. A request it repeats is answered from here and not carried out again."""
REPEATABLE = remote_workers.REPEATABLE | {"beat", "machine", "read"}
"""Requests that may be carried out twice."""
ENDED = "the leader has ended the fabric"
EXIT_LOST = 1
"""Exit code: something that the share needs has ended, or the leader was not heard."""
EXIT_CONFIG = 2


class ShareAgent:
    """One launch of one fabric on one host."""

    def __init__(self, launch: dict[str, Any]) -> None:
        self.realm = Realm(bytes.fromhex(launch["secret"]), launch["fabric"], launch["epoch"])
        self.number = int(launch["number"])
        self._lease_s = float(launch.get("lease_s", LEASE_S))
        self._share_host = ShareHost(
            self.realm, self.number, Path(launch["run_dir"]).absolute(), self._tell, self._over
        )
        self._strangers: Strangers = {}
        self._leader: KeyedStream | None = None
        self._heard_s = time.monotonic()
        self._hung_up = False
        """Whether the leader's side closed the last connection."""
        self._leaving = ""
        """Why the agent is about to end, or "". This reason counts even if another one ends it first."""
        self.dismissed = False
        """Whether its end was asked for."""
        self._end: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._tasks: set[asyncio.Task[None]] = set()
        self._answers: dict[int, dict[str, Any] | None] = {}
        """The latest answers by id; None while a request is under way."""
        self._under_way: set[int] = set()
        """Requests under way. One that is repeated over a new connection is answered there."""
        self._ops: dict[str, Callable[[dict[str, Any]], Awaitable[Any]]] = {
            "beat": self._beat,
            **self._share_host.ops,
            "end": self._take_leave,
        }

    async def serve(self, listen: tuple[str, int], say: Callable[[dict[str, Any]], None]) -> str:
        """Serve the leader until the end; returns the reason. Raises OSError when it cannot listen at the address."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(self._accept, *listen)
        port = server.sockets[0].getsockname()[1]
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self._dismiss, f"signal {number}")
        say(
            {
                "address": listen[0],
                "port": port,
                "pid": os.getpid(),
                "version": version("mrcfabric"),
                "python": platform.python_version(),
            }
        )
        watching = loop.create_task(self._watch_lease())
        try:
            return await self._end
        finally:
            watching.cancel()
            server.close()
            for task in self._tasks:
                task.cancel()
            await self._share_host.close()
            for stream in (self._leader, *self._strangers):
                if stream is not None:
                    stream.close()

    def _dismiss(self, why: str) -> None:
        # Whoever asks while the share is ending already, as a leader that was told of the reason, has not caused it.
        if not self._end.done():
            self.dismissed = True
        self._over(why)

    def _over(self, why: str) -> None:
        if not self._end.done():
            self._end.set_result(self._leaving or why)

    async def _watch_lease(self) -> None:
        while self._lives():
            silent_s = time.monotonic() - self._heard_s
            self._share_host.note(heard=silent_s < UNHEARD_S and self._leader is not None)
            self._share_host.bound_logs()
            await asyncio.sleep(beat_s(self._lease_s))

    def _lives(self) -> bool:
        """Whether the lease still runs. Once it has run out the share is over, even if the leader comes back."""
        silent_s = time.monotonic() - self._heard_s
        hung_up = self._hung_up and self._leader is None and self._lease_s > HUNG_UP_S
        if silent_s < (HUNG_UP_S if hung_up else self._lease_s):
            return True
        how = "has hung up, and not been heard" if hung_up else "has not been heard"
        self._over(f"the leader {how} for {silent_s:.0f} s")
        return False

    def _hear(self) -> None:
        if self._lives():
            self._heard_s = time.monotonic()

    # The leader.

    def _accept(self) -> KeyedStream:
        return KeyedStream(
            Endpoint(self.realm, self.number, PURPOSE), self._ready, self._message, self._lost, self._strangers
        )

    def _ready(self, stream: KeyedStream) -> None:
        if self._leader is not None:
            self._leader.close("the leader has called again")
        self._leader = stream
        self._hear()
        self._share_host.tell_deaths()

    def _lost(self, stream: KeyedStream, why: str) -> None:
        if self._leader is stream:
            self._leader = None
            self._hung_up = why == HUNG_UP
            self._share_host.note(heard=False)

    def _tell(self, message: dict[str, Any]) -> None:
        if self._leader is not None:
            self._leader.send(msgpack.packb(message))

    def _message(self, stream: KeyedStream, message: bytes) -> None:
        self._hear()
        try:
            request = msgpack.unpackb(message, strict_map_key=False)
            ident, op = int(request["id"]), self._ops[request["op"]]
        except (ValueError, TypeError, KeyError, msgpack.UnpackException) as error:
            stream.close(f"it asks what nobody answers: {error!r}")
            return
        # A repeated request gets the kept answer, or that of the one under way. Only REPEATABLE ones are run again.
        if ident in self._answers:
            if (answer := self._answers[ident]) is not None:
                self._tell(answer)
            return
        if ident in self._under_way:
            return
        self._under_way.add(ident)
        if request["op"] not in REPEATABLE:
            self._answers[ident] = None
            if len(self._answers) > ANSWERS_KEPT:
                del self._answers[next(iter(self._answers))]
        task = asyncio.get_running_loop().create_task(self._answer(ident, op(request)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, ident: int, work: Awaitable[Any]) -> None:
        answer: dict[str, Any] = {"id": ident}
        try:
            answer["ok"] = await work
        except ConfigError as error:
            answer["refused"] = [error.where, error.what, error.hint]
        except (ProcessFailedError, OSError) as error:
            answer["refused"] = ["", str(error), ""]
        finally:
            self._under_way.discard(ident)
        if ident in self._answers:
            self._answers[ident] = answer
        self._tell(answer)

    async def _beat(self, _request: dict[str, Any]) -> dict[str, bool]:
        """What the leader hears with every beat."""
        return {"full": self._share_host.full}

    async def _take_leave(self, _request: dict[str, Any]) -> None:
        self._leaving = ENDED
        asyncio.get_running_loop().call_later(0.05, self._dismiss, self._leaving)


def main() -> int:
    """Read the launch, serve, print the reason of the end unless the leader asked for it. Returns the exit code."""

    def say(line: dict[str, Any]) -> None:
        print(json.dumps(line), flush=True)

    async def serve() -> tuple[str, bool]:
        host, port = launch["listen"]
        agent = ShareAgent(launch)
        return await agent.serve((host, port), say), agent.dismissed

    try:
        launch = json.loads(sys.stdin.readline())
        setproctitle(f"mrcfabric {launch['fabric']} share of host {launch['number']}")
        if "parent" in launch:
            die_with_parent(launch["parent"])
    except (ValueError, TypeError, KeyError):
        say({"where": "standard input", "what": "holds no launch", "hint": "an engine starts this, nobody by hand"})
        return EXIT_CONFIG

    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            why, dismissed = runner.run(serve())
    except OSError as error:
        where = f"TCP {launch['listen'][0]}:{launch['listen'][1]}"
        say({"where": where, "what": error.strerror or str(error), "hint": "is this an address of the host?"})
        return EXIT_CONFIG
    # Where the leader ended the fabric it knows why, and may be printing a report.
    if why != ENDED:
        print(f"share of host {launch['number']}: {why}", file=sys.stderr, flush=True)
    return 0 if dismissed else EXIT_LOST


if __name__ == "__main__":
    sys.exit(main())
