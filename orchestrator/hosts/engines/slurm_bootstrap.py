"""What a Slurm task does on its node before it becomes the program of a share: a script that is sent there alone.

It uses the standard library alone. Orders come on standard input: a line with a size, then JSON of that size, so that
the script reads no byte of what follows. `take`, which is defined before this runs, reads one. Answers are lines of
standard output that begin with MARK. `orchestrator.hosts.engines.node_line` gives the orders.

First the script makes a folder of its own, named after user and node, since nodes often share file systems. Relative
paths start there. `there`: carry out an order of `orchestrator.hosts.engines.remote_script`. `put`: write a file.
`run`: run a command to its end. `become`: hold files open, go to a folder, and become the program.
"""

import base64
import json
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

MARK = "mrcfabric-node "
OUTPUT_BYTES_MAX = 64 * 1024
"""How much of a command's output is kept, from its end."""


def own_folder(parent: str, node: str) -> str:
    """The folder of this user on this node; makes it if needed. Raises OSError."""
    folder = os.path.join(parent, f"mrcfabric-{os.getuid()}")
    os.makedirs(folder, 0o700, exist_ok=True)
    # Everybody can write into the folder for temporary files, so another user may have made this one.
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise PermissionError(1, f"{folder} belongs to somebody else")
    folder = os.path.join(folder, node)
    os.makedirs(folder, 0o700, exist_ok=True)
    return folder


def carry_out(order: dict[str, Any]) -> dict[str, Any]:
    """Carry out any order but `become`, and return the answer. Raises OSError."""
    if order["do"] == "there":
        script: dict[str, Any] = {"__name__": "there"}
        exec(compile(order["script"], "there", "exec"), script)
        asked = dict(order["order"])
        return {"answer": script[asked.pop("do")](asked)}
    if order["do"] == "put":
        os.makedirs(os.path.dirname(order["path"]) or ".", exist_ok=True)
        with open(os.open(order["path"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(base64.b64decode(order["content"]))
        return {}
    assert order["do"] == "run", order
    done = subprocess.run(
        order["words"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    return {"code": done.returncode, "output": done.stdout[-OUTPUT_BYTES_MAX:].decode(errors="replace")}


def become(order: dict[str, Any]) -> None:
    """Replace this process by the program. `order`: `folder`, `modules`, `held`, `arguments`. Raises OSError."""
    os.chdir(order["folder"])
    for path in order["held"]:
        os.set_inheritable(os.open(path, os.O_RDONLY), True)
    if order["modules"]:
        os.environ["PYTHONPATH"] = os.pathsep.join(order["modules"])
    os.execv(sys.executable, [sys.executable, *order["arguments"]])


def stand(take: Callable[[], bytes]) -> None:
    """Say which Python and which task this is, then carry out orders until one is `become`."""

    def say(answer: dict[str, Any]) -> None:
        sys.stdout.write(f"\n{MARK}{json.dumps(answer)}\n")
        sys.stdout.flush()

    # The working folder must not be a folder of modules.
    sys.path[:] = [path for path in sys.path if path]
    try:
        os.chdir(own_folder(tempfile.gettempdir(), os.environ.get("SLURMD_NODENAME", os.uname().nodename)))
    except OSError as error:
        say({"python": list(sys.version_info[:3]), "failed": _why(error)})
        return
    step = f"{os.environ.get('SLURM_JOB_ID', '')}.{os.environ.get('SLURM_STEP_ID', '')}"
    say({"python": list(sys.version_info[:3]), "step": step, "pid": os.getpid()})
    while (order := json.loads(take()))["do"] != "become":
        try:
            say(carry_out(order))
        except OSError as error:
            say({"failed": _why(error)})
    try:
        become(order)
    except OSError as error:  # report it as the program would
        print(json.dumps({"where": order["folder"], "what": _why(error), "hint": ""}), flush=True)


def _why(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename else str(error)


if "take" in globals():
    stand(globals()["take"])
