"""Where the lines of a run go, for as long as anybody takes them.

Owns that a reader who has seen enough (`| head`), or a full disk behind a redirection, ends the lines and not the run.
What stands in them is `lines`'s and `stream`'s.
"""

import os
from typing import TextIO


class Outlet:
    """A file for lines that grows silent when it takes no more."""

    def __init__(self, out: TextIO) -> None:
        self._out: TextIO | None = out

    def say(self, line: str) -> None:
        """Write a line and have it seen at once."""
        if self._out is None:
            return
        try:
            self._out.write(line + "\n")
            self._out.flush()
        except OSError:
            # The interpreter must not stumble over it at its end either.
            with open(os.devnull, "w") as nowhere:
                os.dup2(nowhere.fileno(), self._out.fileno())
            self._out = None
