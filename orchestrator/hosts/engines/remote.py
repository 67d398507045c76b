"""Works on a host over one SSH connection: runs commands, copies files, and runs the script that looks there.

Owns how words are quoted for the login shell, and the error for a connection that breaks.
`orchestrator.hosts.engines.ssh` and `orchestrator.hosts.engines.payload` decide what to do there.
"""

import asyncio
import contextlib
import inspect
import json
import posixpath
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final

import asyncssh

from mrcfabric.errors import ConfigError
from orchestrator.hosts.engines import remote_script
from orchestrator.hosts.engines.host_facts import OLDEST_PYTHON
from orchestrator.hosts.engines.login import Line
from orchestrator.hosts.placement.inventory import Host
from orchestrator.process.launcher import ProcessFailedError

ANSWER_WALL_S: Final = 60.0
"""How long the script may take there."""
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126
# Any Python can read this, so that an old one says that it is too old.
_CHECKED: Final = f"""import sys
if sys.version_info < {OLDEST_PYTHON}:
    sys.stdout.write('\\n{remote_script.MARK}{{"python": [%d, %d, %d]}}\\n' % sys.version_info[:3])
else:
    exec(compile(sys.stdin.read(), 'there', 'exec'))
"""


class Remote:
    """A host with an open SSH connection."""

    def __init__(self, host: Host, connection: asyncssh.SSHClientConnection, line: Line) -> None:
        self.host = host
        self.connection = connection
        self.line = line

    def broken(self, error: Exception) -> ProcessFailedError:
        """The error to raise when the connection breaks."""
        lost = self.line.lost if isinstance(error, asyncssh.ConnectionLost) else str(error) or type(error).__name__
        return ProcessFailedError(f"host {self.host.name}: the connection broke: {lost}")

    async def run(self, words: Sequence[str], given: bytes = b"", within_s: float = ANSWER_WALL_S) -> tuple[int, str]:
        """Run a command to its end. Returns its exit code (-1: a signal) and its output. Raises ProcessFailedError."""
        try:
            process = await self.connection.create_process(command(words), encoding=None, stderr=asyncssh.STDOUT)
            with contextlib.suppress(BrokenPipeError):  # it has ended already; its output says why
                process.stdin.write(given)
                process.stdin.write_eof()
            done = await process.wait(timeout=within_s)
        except asyncssh.TimeoutError:
            raise ProcessFailedError(f"host {self.host.name}: {words[0]} has not ended within {within_s:g} s") from None
        except (OSError, asyncssh.Error) as error:
            raise self.broken(error) from None
        output = done.stdout
        assert isinstance(output, bytes)
        if done.exit_status is None and done.exit_signal is None:
            raise ProcessFailedError(f"host {self.host.name}: the connection broke: {self.line.lost}")
        return -1 if done.exit_status is None else done.exit_status, output.decode(errors="replace")

    async def there(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out an order of `remote_script` with the host's Python, in one round trip.

        Raises ConfigError when there is no such Python, ProcessFailedError when it fails.
        """
        python = self.host.python
        script = inspect.getsource(remote_script).encode()
        code, output = await self.run([python, "-c", _CHECKED, json.dumps(order)], script)
        for text in output.splitlines():
            if text.startswith(remote_script.MARK):
                answer: dict[str, Any] = json.loads(text.removeprefix(remote_script.MARK))
                return answer
        if code in (_NOT_FOUND, _NOT_EXECUTABLE):
            raise ConfigError(
                f"host {self.host.name}",
                f"has no Python: `{python}` is not there",
                "install Python 3.11 or newer, or name the interpreter as the host's `python`",
            )
        raise ProcessFailedError(f"host {self.host.name}: `{python}` failed there: {last_words(output)}")

    async def put(self, files: Mapping[str, bytes]) -> None:
        """Write files: absolute path -> content, for the user alone to read. Raises ConfigError, ProcessFailedError."""
        if not files:
            return
        try:
            async with self.connection.start_sftp_client() as sftp:
                await _write_all(sftp, files)
        except asyncssh.ChannelOpenError as error:
            hint = "let its sshd_config have a `Subsystem sftp`"
            raise ConfigError(f"host {self.host.name}", f"takes no files: {error.reason}", hint) from None
        except (asyncssh.SFTPConnectionLost, asyncssh.SFTPNoConnection) as error:
            raise self.broken(error) from None
        except asyncssh.SFTPError as error:
            what = f"files cannot be copied below {posixpath.dirname(next(iter(files)))}: {error.reason}"
            raise ConfigError(f"host {self.host.name}", what, "is its disk full?") from None
        except (OSError, asyncssh.Error) as error:
            raise self.broken(error) from None


async def _write_all(sftp: asyncssh.SFTPClient, files: Mapping[str, bytes]) -> None:
    for folder in {posixpath.dirname(path) for path in files}:
        await sftp.makedirs(folder, exist_ok=True)
    await asyncio.gather(*(_write(sftp, path, content) for path, content in files.items()))


async def _write(sftp: asyncssh.SFTPClient, path: str, content: bytes) -> None:
    attributes = asyncssh.SFTPAttrs(permissions=0o600)
    async with sftp.open(path, "wb", attributes) as file:
        await file.write(content)


def command(words: Sequence[str]) -> str:
    """The words as one line for any shell. A program below `~/` is below the folder where a login begins."""
    program, *arguments = words
    if program.startswith("~/"):
        first = f'"$HOME"/{shlex.quote(program[2:])}'
    else:
        first = shlex.quote(program)
    return " ".join(["exec", first, *map(shlex.quote, arguments)])


def last_words(output: str) -> str:
    """The last line that is not empty."""
    said = [line.strip() for line in output.splitlines() if line.strip()]
    return said[-1] if said else "it said nothing"
