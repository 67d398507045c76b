"""The folder of one running fabric: who holds it, where it listens, its secret, its logs.

`RunFolder.claim` takes a lock that the kernel releases when the agent dies, however it dies. So a folder is in use
exactly while the lock is held, and the next claim removes what a killed agent left. A fabric writes nothing outside its
folder. Readers such as `mrcfabric status` use `read_state`.
"""

import contextlib
import fcntl
import json
import os
import secrets
import shutil
import stat
import time
from pathlib import Path
from typing import Any, Self

from mrcfabric.errors import ConfigError
from orchestrator.process.new_folders import make, take_back
from orchestrator.process.ports import command_of

SECRET_BYTES = 32
ROOM_BYTES_MIN = 64 * 1024
# Unix socket addresses hold 107 characters; the longest name in a folder is `verbs/h131071.sock`.
PATH_CHARS_MAX = 86

END_WALL_S = 10.0
"""How long a fabric may take to end after its agent has stopped answering."""
END_POLL_S = 0.05

ENDED = "the fabric has ended: "
"""What the last line of an agent's log begins with when nobody asked for the end."""
_TAIL_BYTES = 4096

_LOCK = "lock"
_STATE = "state.json"
_SECRET = "secret"
_READ_TOKEN = "read.token"
_TARGETS = "targets.json"
_AGENT_SOCKET = "agent.sock"
_LOGS = "logs"
_VERBS = "verbs"
_PROMETHEUS = "prometheus"
_EVENTS = "events.jsonl"
_SWEPT = (_STATE, _SECRET, _READ_TOKEN, _TARGETS, _AGENT_SOCKET)


def default_path(name: str) -> Path:
    """The folder of a fabric of this name, unless the operator names another."""
    return Path("out") / name


class RunFolder:
    """A claimed folder. `claim` makes it, `release` gives it back."""

    def __init__(self, path: Path, lock_fd: int, folder_fd: int, secret: bytes, made: list[Path]) -> None:
        self.secret = secret
        self.transient = False
        """The fabric has not started: `release` removes the folder too, if the claim made it and nothing was logged."""
        self._claimed = path
        self._lock_fd = lock_fd
        self._folder_fd: int | None = folder_fd
        self._made = made

    @classmethod
    def claim(cls, path: Path, *, keep_logs: bool = False) -> Self:
        """Make and lock the folder, remove what an earlier run left, and write a new secret.

        `keep_logs`: the earlier run's logs stay. Raises ConfigError when another agent holds the folder, when it
        belongs to another user or others may write in it, when it has files that are no fabric's, when it cannot be
        written, or when its path is too long for Unix socket addresses.
        """
        path = path.absolute()
        if len(os.fsencode(path)) > PATH_CHARS_MAX:
            raise ConfigError(
                f"run folder {path}",
                f"is longer than {PATH_CHARS_MAX} characters, too long for the sockets in it",
                "name a shorter one with --run-dir",
            )
        made = _make(path)
        try:
            lock_fd = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise _unwritable(path, error) from error
        try:
            fcntl.flock(lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(lock_fd, 32, 0).decode(errors="replace").strip()
            os.close(lock_fd)
            raise ConfigError(
                f"run folder {path}",
                f"a fabric is already running there ({_describe(holder)})",
                "stop it with `mrcfabric down`, or take another folder by --run-dir",
            ) from error
        if not os.fstat(lock_fd).st_nlink:  # another start has failed meanwhile, and removed its folder
            os.close(lock_fd)
            return cls.claim(path, keep_logs=keep_logs)
        folder_fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        folder = cls(path, lock_fd, folder_fd, secrets.token_bytes(SECRET_BYTES), made)
        folder.transient = True
        try:
            folder._furnish(keep_logs)
        except OSError as error:
            folder.release()
            raise _unwritable(path, error) from error
        except ConfigError:
            folder.release()
            raise
        folder.transient = False
        return folder

    def _furnish(self, keep_logs: bool) -> None:
        os.ftruncate(self._lock_fd, 0)
        os.pwrite(self._lock_fd, f"{os.getpid()}\n".encode(), 0)
        _sweep(self._inside, logs=not keep_logs)
        (self.path / _LOGS).mkdir(exist_ok=True)
        (self.path / _VERBS).mkdir(mode=0o700, exist_ok=True)
        self._write(_SECRET, self.secret.hex() + "\n")

    @property
    def path(self) -> Path:
        """Where the folder is now: as it was named at first, or where somebody has moved it."""
        if self._folder_fd is not None:
            mine = os.fstat(self._folder_fd)
            for path in (self._claimed, Path(os.readlink(self._inside))):
                with contextlib.suppress(OSError):
                    if os.path.samestat(os.stat(path), mine):
                        return path
        return self._claimed

    @property
    def _inside(self) -> Path:
        """The folder itself, even if another one has its name now. For this process, until `release`."""
        return Path(f"/proc/self/fd/{self._folder_fd}")

    @property
    def agent_socket(self) -> Path:
        return self.path / _AGENT_SOCKET

    def log(self, process: str) -> Path:
        """The log file of a process, which has the name of a node, or of a plane whose switches are packed."""
        return self.path / _LOGS / f"{process}.log"

    @property
    def logs(self) -> Path:
        """The folder of the logs, as this process can use it."""
        return self._inside / _LOGS

    @property
    def events(self) -> Path:
        """The event log, as this process can use it; the part before it is in `events.1.jsonl`."""
        return self._inside / _EVENTS

    def verbs_socket(self, nic: str) -> Path:
        """The socket at which applications reach a NIC."""
        return verbs_socket(self.path, nic)

    @property
    def prometheus(self) -> Path:
        """The folder of a Prometheus beside the fabric: its configuration and its data. It is kept like the logs."""
        return self.path / _PROMETHEUS

    def write_state(self, state: dict[str, Any]) -> None:
        """Replace state.json in one step, readable by the owner alone. Raises ConfigError when the disk is full."""
        self._write(_STATE, json.dumps(state, indent=1, sort_keys=True) + "\n")

    def write_targets(self, targets: list[dict[str, Any]]) -> None:
        """Replace the Prometheus file_sd list in one step. Raises as `write_state`."""
        self._write(_TARGETS, json.dumps(targets, indent=1) + "\n", mode=0o644)

    def write_read_token(self) -> str:
        """Write a new token that every reader must show. Only the owner can read the file. Raises as `write_state`."""
        token = secrets.token_urlsafe(SECRET_BYTES)
        self._write(_READ_TOKEN, token + "\n")
        return token

    def remove_targets(self) -> None:
        """Tell Prometheus that there is nothing left to scrape here."""
        (self._inside / _TARGETS).unlink(missing_ok=True)

    def release(self) -> None:
        """Remove everything but logs, events and Prometheus's data, then free the folder for the next fabric.

        Nothing is left of a `transient` folder.
        """
        _sweep(self._inside, logs=False)
        if self.transient and self.path in self._made:
            self._remove()
        self._claimed, folder_fd = self.path, self._folder_fd
        self._folder_fd = None
        if folder_fd is not None:
            os.close(folder_fd)
        os.close(self._lock_fd)

    def _write(self, name: str, text: str, mode: int = 0o600) -> None:
        """Replace one of its files in one step."""
        draft = self._inside / (name + ".new")
        try:
            fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
            with os.fdopen(fd, "w") as out:
                out.write(text)
            draft.replace(self._inside / name)
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise _unwritable(self.path, error) from error

    def _remove(self) -> None:
        """Remove the folder, and what was made above it, unless something was logged."""
        logs = [*(self.path / _LOGS).glob("*.log"), *self.path.glob("events*.jsonl")]
        if any(log.stat().st_size for log in logs):
            return
        for log in logs:
            log.unlink()
        (self.path / _LOCK).unlink(missing_ok=True)
        take_back([self.path / _LOGS, *self._made])


def verbs_socket(path: Path, nic: str) -> Path:
    """The socket at which applications reach a NIC of the fabric in a run folder."""
    return path / _VERBS / f"{nic}.sock"


def read_state(path: Path) -> dict[str, Any] | None:
    """The state of the fabric that runs in this folder; None if none does, whatever files are there."""
    path = path.absolute()
    if not is_held(path):
        return None
    try:
        state = json.loads((path / _STATE).read_text())
    except (OSError, ValueError):
        return None
    return state if isinstance(state, dict) else None


def unasked_end(path: Path) -> str:
    """Why the fabric that ran in this folder last has ended; "" when somebody asked for it, or none ever ran there."""
    try:
        if (path / _STATE).exists() and not is_held(path):
            return "its agent was killed"
        with (path / _LOGS / "agent.log").open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL_BYTES))
            last = log.read().decode(errors="replace").rstrip().rpartition("\n")[2]
    except OSError:
        return ""
    return last.removeprefix(ENDED) if last.startswith(ENDED) else ""


def is_owners_alone(path: Path) -> bool:
    """Whether the fabric in a folder asks every reader for a token."""
    return (path / _READ_TOKEN).exists()


def is_full(path: Path) -> bool:
    """Whether the disk under a folder has no room for the next lines of a log."""
    try:
        disk = os.statvfs(path)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < ROOM_BYTES_MIN


def is_held(path: Path) -> bool:
    """Whether a living agent holds the folder's lock."""
    try:
        fd = os.open(path / _LOCK, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


def sweep_dead(path: Path) -> bool:
    """Remove what a killed agent left in its folder, except what `release` keeps. Returns whether there was anything.

    Touches nothing while an agent holds the folder.
    """
    try:
        fd = os.open(path / _LOCK, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        left = any((path / name).exists() for name in (*_SWEPT, _VERBS))
        _sweep(path, logs=False)
    except OSError:
        return False
    finally:
        os.close(fd)
    return left


def has_ended(path: Path) -> bool:
    """Whether an agent that no longer answers has ended. Waits up to END_WALL_S for one that is about to."""
    end = time.monotonic() + END_WALL_S
    while is_held(path):
        if time.monotonic() > end:
            return False
        time.sleep(END_POLL_S)
    return True


def holder_pid(path: Path) -> int | None:
    """The process that claimed the folder last. Valid only while `is_held`."""
    try:
        return int((path / _LOCK).read_text())
    except (OSError, ValueError):
        return None


def _make(path: Path) -> list[Path]:
    """Returns the folders that were made."""
    try:
        made = make(path, 0o700)
        found = path.stat()
        # In this order: another start in the same folder makes the lock before any other file.
        strange = any(path.iterdir()) and not (path / _LOCK).exists()
    except OSError as error:
        raise _unwritable(path, error) from error
    # A user who may write here could put his socket in the place of ours.
    if found.st_uid != os.geteuid():
        raise ConfigError(
            f"run folder {path}", f"belongs to user {found.st_uid}, not to {os.geteuid()}", "name one of your own"
        )
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        mode = stat.S_IMODE(found.st_mode)
        raise ConfigError(f"run folder {path}", f"is writable for others (mode {mode:04o})", f"chmod go-w {path}")
    if strange:
        raise ConfigError(f"run folder {path}", "holds files that are no fabric's", "name an empty or a new folder")
    return made


def _unwritable(path: Path, error: OSError) -> ConfigError:
    return ConfigError(f"run folder {path}", error.strerror or str(error), "name another with --run-dir")


def _describe(holder: str) -> str:
    return f"pid {holder}: {command_of(int(holder))}" if holder.isdigit() else "just starting"


def _sweep(path: Path, *, logs: bool) -> None:
    for name in _SWEPT:
        (path / name).unlink(missing_ok=True)
    shutil.rmtree(path / _VERBS, ignore_errors=True)
    if logs:
        shutil.rmtree(path / _PROMETHEUS, ignore_errors=True)
        for log in (*(path / _LOGS).glob("*.log"), *path.glob("events*.jsonl")):
            log.unlink(missing_ok=True)
