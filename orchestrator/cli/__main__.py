"""The console script `mrcfabric`, and `python -m orchestrator.cli`.

Imports nothing that Python has not loaded yet. Until the command's own function is called there is nothing to clean up,
and Ctrl-C ends the process without a word, wherever Python is; so it does again when that function has ended.
`orchestrator.cli.interrupts` handles Ctrl-C in between.
"""

import _signal  # type: ignore[import-not-found] # `signal` imports other modules: time enough for a Ctrl-C
import gc
import sys

GARBAGE_LOOKED_FOR_AFTER = (100_000, 10, 10)
"""Thresholds of the garbage collector. What a command imports stays to its end: with those of Python itself a sixth of
the CPU of `mrcfabric validate` goes to looking through modules."""


def main() -> int:
    """Run the command line; returns the exit code for `sys.exit`."""
    gc.set_threshold(*GARBAGE_LOOKED_FOR_AFTER)
    # A background job of a script ignores it.
    left = _signal.SIG_IGN if _signal.getsignal(_signal.SIGINT) is _signal.SIG_IGN else _signal.SIG_DFL
    _signal.signal(_signal.SIGINT, left)
    from orchestrator.cli.main import EXIT_INTERRUPTED
    from orchestrator.cli.main import main as run

    try:
        code = run()
        _signal.signal(_signal.SIGINT, left)
    except KeyboardInterrupt:  # a second one, while the first ends the command
        code = EXIT_INTERRUPTED
        _signal.signal(_signal.SIGINT, left)
    gc.freeze()  # what is left goes with the process: nothing need look through it
    return code


if __name__ == "__main__":
    sys.exit(main())
