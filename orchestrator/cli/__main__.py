"""The console script `mrcfabric`, and `python -m orchestrator.cli`.

Imports nothing that Python has not loaded yet. So Ctrl-C while the command is still being imported ends it without a
traceback; from then on `orchestrator.cli.main` handles Ctrl-C.
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
    heeded = _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler  # not by a background job of a script
    if heeded:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    from orchestrator.cli.main import main as run

    if heeded:
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)
    code = run()
    gc.freeze()  # what is left goes with the process: nothing need look through it
    return code


if __name__ == "__main__":
    sys.exit(main())
