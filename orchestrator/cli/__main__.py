"""The console script `mrcfabric`, and `python -m orchestrator.cli`.

Imports nothing that Python has not loaded yet. So Ctrl-C while the command is still being imported ends it without a
traceback; from then on `orchestrator.cli.main` handles Ctrl-C.
"""

import _signal  # type: ignore[import-not-found] # `signal` imports other modules: time enough for a Ctrl-C
import sys


def main() -> int:
    """Run the command line; returns the exit code for `sys.exit`."""
    heeded = _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler  # not by a background job of a script
    if heeded:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    from orchestrator.cli.main import main as run

    if heeded:
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)
    return run()


if __name__ == "__main__":
    sys.exit(main())
