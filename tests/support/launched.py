"""A program as engines start it: reads its launch, says where it listens, does what it is asked, and ends.

Its launch: `listen` [address, port]; and as wanted `refuse` (what it says instead, exit code 2), `exit` (at once, with
this code, after a line of log), `silent` (it never says anything), `stubborn` (it ignores SIGTERM), `family` (it has a
child). Whoever connects writes one line: `log TEXT`, `exit CODE`, `hang up`, or `tell`, which is answered in JSON.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from typing import Any


def facts(launch: dict[str, Any]) -> dict[str, Any]:
    import orchestrator

    try:
        dependency = version("tinydependency")
    except PackageNotFoundError:
        dependency = ""
    return {
        "launch": launch,
        "code": orchestrator.__file__,
        "version": version("mrcfabric"),
        "dependency": dependency,
        "folder": os.getcwd(),
        "files": {name: open(name).read() for name in launch.get("read", [])},
        "python": sys.executable,
        "command": open(f"/proc/{os.getpid()}/cmdline").read(),
        "environment": dict(os.environ),
    }


def serve(launch: dict[str, Any], door: socket.socket) -> None:
    while True:
        caller, _address = door.accept()
        with caller, caller.makefile("rw") as talk:
            order, _, rest = talk.readline().strip().partition(" ")
            if order == "log":
                print(rest, file=sys.stderr, flush=True)
            elif order == "exit":
                sys.exit(int(rest))
            elif order == "tell":
                print(json.dumps(facts(launch)), file=talk, flush=True)


def main() -> None:
    launch = json.loads(sys.stdin.readline())
    print("launched", file=sys.stderr, flush=True)
    if launch.get("stubborn"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if launch.get("family"):
        subprocess.Popen(["sleep", "1000"])
    if launch.get("silent"):
        time.sleep(1000)
    if "refuse" in launch:
        print(json.dumps(launch["refuse"]), flush=True)
        sys.exit(2)
    if "exit" in launch:
        print("it is over", file=sys.stderr, flush=True)
        sys.exit(launch["exit"])
    address, port = launch["listen"]
    with socket.create_server((address, port), family=socket.AF_INET6 if ":" in address else socket.AF_INET) as door:
        print(json.dumps({"address": address, "port": door.getsockname()[1], "pid": os.getpid()}), flush=True)
        serve(launch, door)


if __name__ == "__main__":
    main()
