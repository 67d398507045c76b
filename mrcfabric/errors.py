"""The kinds of error, kept apart.

- `WireError`: bytes from outside are wrong. Raised inside `mrcfabric.wire` only, caught once where a core takes a
  packet, and turned into a counted, named drop.
- A peer that breaks the protocol is not an exception at all: it is a trigger of the QP's state table.
- `ConfigError`: the operator is wrong. One line: where, what, hint; exit code 2; nothing started.
- `RefusedError`: a command that a running daemon cannot carry out. Sent back to whoever asked.
- Our own mistakes are `assert`s; the daemon dies loudly and the orchestrator reports it.
"""


class WireError(ValueError):
    """Bytes that are no well-formed packet; `reason` is a short name fit for a counter."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ConfigError(Exception):
    """A mistake of the operator: where it stands, what it is, and how to mend it."""

    def __init__(self, where: str, what: str, hint: str = "") -> None:
        super().__init__(f"{where}: {what}" + (f" ({hint})" if hint else ""))
        self.where = where
        self.what = what
        self.hint = hint


class RefusedError(Exception):
    """A well-formed request that a daemon refuses, with the reason as text."""
