"""Which signals end a command: SIGHUP only where nobody asked to ignore it."""

import signal

from orchestrator.process.end_signals import end_signals


def test_who_was_started_with_nohup_does_not_end_with_its_terminal() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        assert set(end_signals()) == {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        assert set(end_signals()) == {signal.SIGINT, signal.SIGTERM}
    finally:
        signal.signal(signal.SIGHUP, before)
