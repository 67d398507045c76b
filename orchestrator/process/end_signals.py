"""The signals that end a command in good order: Ctrl-C, SIGTERM, and SIGHUP from a terminal that closes.

SIGHUP is left out where it is ignored: who starts a command with `nohup` wants it to go on when the terminal closes.
"""

import signal


def end_signals() -> tuple[signal.Signals, ...]:
    """The signals for which a command sets its own handler."""
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return (signal.SIGINT, signal.SIGTERM) if ignored else (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
