"""Standard input, output and error of a command, whatever the caller made of them.

Owns one rule for all commands. What standard output cannot take, because the disk is full or the caller closed it
(`>&-`), is told in one line when the command ends, and then the command has not succeeded; a pipe whose reader has gone
is no error. What standard error cannot take is lost, and changes nothing.
"""

import errno
import io
import os
import sys
from typing import Any, Final, TextIO

_OUTPUT: Final = 1
_ERROR: Final = 2


class _Output(io.FileIO):
    """Standard output: keeps the first error, also if whoever wrote goes on without it."""

    lost: OSError | None = None

    def write(self, data: Any) -> Any:
        try:
            return super().write(data)
        except OSError as error:
            self.lost = self.lost or error
            raise


class _Error(io.FileIO):
    """Standard error: takes everything, and writes what it can."""

    def write(self, data: Any) -> Any:
        try:
            return super().write(data)
        except OSError:
            return len(data)


_output: _Output | None = None


def open_all() -> None:
    """Make the three what this module says. Under a test that has put others in their place only closed ones."""
    global _output
    _fill_closed()
    if type(sys.stdout) is io.TextIOWrapper:
        _output = _Output(_OUTPUT, "w", closefd=False)
        # Signs that its encoding lacks come out as `?`, instead of ending the command.
        sys.stdout = _text(_output, sys.stdout, "replace")
    if type(sys.stderr) is io.TextIOWrapper:
        sys.stderr = _text(_Error(_ERROR, "w", closefd=False), sys.stderr, sys.stderr.errors)


def _fill_closed() -> None:
    """Open /dev/null for each that the caller closed, so that no socket gets its number.

    Standard output only for reading: to write there fails, as it does where a file is closed.
    """
    for number, name, access in ((0, "stdin", os.O_RDWR), (1, "stdout", os.O_RDONLY), (2, "stderr", os.O_RDWR)):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, access)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            # For the life of the process.
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))  # noqa: SIM115


def _text(raw: io.FileIO, before: TextIO, errors: str | None) -> io.TextIOWrapper:
    """What people write text to, as buffered as `before`."""
    assert isinstance(before, io.TextIOWrapper)
    before.flush()
    through = before.write_through
    under: Any = raw if through else io.BufferedWriter(raw)
    return io.TextIOWrapper(under, before.encoding, errors, line_buffering=before.line_buffering, write_through=through)


def output_lost() -> OSError | None:
    """Write what is left, and say what kept something from being written to standard output; None: nothing that
    counts. Afterwards it takes everything, to no end: Python tries again when it ends, and would print an error."""
    if _output is None:
        return None
    try:
        sys.stdout.flush()
    except OSError as error:
        _output.lost = _output.lost or error
    if _output.lost is None:
        return None
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, _OUTPUT)
    os.close(nowhere)
    return None if _output.lost.errno == errno.EPIPE else _output.lost
