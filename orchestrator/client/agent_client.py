"""Finds a running fabric for a command and talks to its agent: plain HTTP over the run folder's Unix socket.

`orchestrator.agent.agent` is the other end. This module imports only the standard library and little of the project, so
that commands start fast.
"""

import errno
import http.client
import json
import os
import socket
from pathlib import Path
from typing import Any

from mrcfabric.errors import ConfigError, RefusedError
from mrcfabric.naming import shown
from orchestrator.client import answers
from orchestrator.process import run_folder

ANSWER_WALL_S = 600.0
OUT = Path("out")
OF_ITS_OWNER = "a fabric answers the user who started it"


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, wall_s: float) -> None:
        super().__init__("localhost", timeout=wall_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class AgentClient:
    """Asks the agent of one fabric; calls block."""

    def __init__(self, folder: Path, state: dict[str, Any], wall_s: float = ANSWER_WALL_S) -> None:
        """`wall_s`: how long to wait for an answer."""
        self.folder = folder
        self.state = state
        self._wall_s = wall_s

    @property
    def endpoint(self) -> str:
        """The agent's socket, in the run folder as it is found now.

        The folder may have been renamed, be mounted elsewhere, or have a name that our locale reads in another way.
        """
        return os.path.join(os.path.realpath(self.folder), Path(self.state["agent_socket"]).name)

    def get(self, path: str) -> Any:
        """Get the JSON at a path. Raises ConfigError or RefusedError with the agent's message."""
        return self._ask("GET", path, None)

    def post(self, path: str, **body: Any) -> Any:
        """Post a change and return the answer; None values are left out. Raises as `get`."""
        return self.post_text(path, json.dumps({key: value for key, value in body.items() if value is not None}))

    def post_text(self, path: str, text: str) -> Any:
        """Post a body as it is. Raises as `get`."""
        return self._ask("POST", path, text)

    def call(self, node: str, op: str, args: dict[str, Any] | None = None) -> Any:
        """Ask a node's daemon an op of its control channel."""
        return self.post("/call", node=node, op=op, args=args)

    def _ask(self, method: str, path: str, text: str | None) -> Any:
        connection = _UnixConnection(self.endpoint, self._wall_s)
        try:
            connection.request(method, path, text, {"Content-Type": "application/json"} if text else {})
            response = connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise RefusedError(
                f"the agent of {self.state.get('name')} cannot be reached: {cause_of(error)}{self._stopped()}"
            ) from error
        finally:
            connection.close()
        if response.status != http.client.OK:
            raise refusal(response.status, content)
        try:
            return answers.loads(content)
        except ValueError:
            raise refusal(response.status, content) from None

    def _stopped(self) -> str:
        """What to add to "timed out" where the agent's process is stopped; else ""."""
        from orchestrator.process.answer_wait import sight

        pid = run_folder.holder_pid(self.folder)
        seen = None if pid is None else sight(pid)
        stopped = seen is not None and seen.state == "T"
        return f"; its process is stopped (`kill -CONT {pid}` lets it go on)" if stopped else ""


def cause_of(error: Exception) -> str:
    """Why an agent cannot be reached. Its socket opens after its daemons are ready, and closes before they end."""
    if getattr(error, "errno", None) == errno.ENOENT:
        return "it is starting or ending; ask again in a moment"
    return getattr(error, "strerror", None) or str(error) or "no answer"


def refusal(status: int, content: bytes) -> ConfigError | RefusedError:
    """The error for an answer that reports a failure, with the agent's message if there is one."""
    try:
        answer = json.loads(content)
        if status in (http.client.BAD_REQUEST, http.client.NOT_FOUND):
            return ConfigError(answer["where"], answer["what"], answer["hint"])
        return RefusedError(answer["error"])
    except (ValueError, KeyError, TypeError):
        return RefusedError(f"the agent answered {status}: {content[:200]!r}")


def find(name: str | None, run_dir: Path | None, wall_s: float = ANSWER_WALL_S) -> AgentClient:
    """Find the running fabric by folder, by name, or as the only one below `out/`. Raises ConfigError."""
    folder = folder_of(name, run_dir)
    state = run_folder.read_state(folder)
    if state is None:
        if _is_closed(folder):
            raise ConfigError(str(folder), "Permission denied", OF_ITS_OWNER)
        hint = "it is still starting" if run_folder.is_held(folder) else "start one with `mrcfabric up`"
        why = run_folder.unasked_end(folder)
        raise ConfigError(str(folder), f"no fabric runs there{why and f'; the last one has ended: {why}'}", hint)
    return AgentClient(folder, state, wall_s)


def folder_of(name: str | None, run_dir: Path | None) -> Path:
    """Find the run folder, whether or not a fabric runs there. Raises ConfigError when it is ambiguous."""
    if run_dir is not None:
        return run_dir
    if name is not None:
        return _named(name)
    held = running()
    if len(held) > 1:
        raise ConfigError(
            "fabric", f"{len(held)} are running: {', '.join(path.name for path in held)}", "name one with --name"
        )
    if held:
        return held[0]
    known = sorted(OUT.glob("*/lock"), key=lambda lock: lock.stat().st_mtime)
    if not known:
        closed = sorted(path.name for path in OUT.glob("*") if _is_closed(path))
        others = f"; {', '.join(closed)} may not be looked into: {OF_ITS_OWNER}" if closed else ""
        raise ConfigError("fabric", f"none runs below {os.path.abspath(OUT)}", "start one with `mrcfabric up`" + others)
    return known[-1].parent


def _is_closed(folder: Path) -> bool:
    """Whether this user may not look into a folder that is there, as into that of another user's fabric."""
    return os.path.isdir(folder) and not os.access(folder, os.R_OK | os.X_OK)


def _named(name: str) -> Path:
    """The folder of this name, or that of the fabric of this name that runs in another one below `out/`."""
    own = run_folder.default_path(name)
    try:
        if (own / "lock").exists():
            return own
    except OSError as error:
        raise ConfigError(f"--name {shown(name)}", error.strerror or "is no name") from None
    namesakes = [path for path in running() if (run_folder.read_state(path) or {}).get("name") == name]
    if len(namesakes) > 1:
        folders = ", ".join(map(str, namesakes))
        raise ConfigError(
            f"--name {name}", f"{len(namesakes)} fabrics are called so", f"--run-dir with one of {folders}"
        )
    return namesakes[0] if namesakes else own


def running() -> list[Path]:
    """The folders below `out/` in which a fabric runs."""
    return sorted(lock.parent for lock in OUT.glob("*/lock") if run_folder.is_held(lock.parent))
