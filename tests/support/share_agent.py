"""A share agent that starts the processes of tests too: `python -m tests.support.share_agent`, for `support.shares`."""

import inspect
import sys

from orchestrator.hosts import remote_workers, share_host
from orchestrator.hosts.share_agent import main
from tests.orchestrator import entries

if __name__ == "__main__":
    ours = {f"{entries.__name__}:{name}" for name, _ in inspect.getmembers(entries, inspect.isfunction)}
    share_host.STARTED |= ours
    remote_workers.STARTED |= ours
    sys.exit(main())
