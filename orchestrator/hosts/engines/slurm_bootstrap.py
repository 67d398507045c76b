"""What a task does on its node before it becomes the program of a share: a script sent there, alone.

It has nothing but the standard library. Orders come on standard input, each a line with its size and then JSON of that
size, so that not a byte is read of what follows; `take` reads one and is there already. Answers are lines of standard
output that begin with MARK. What is to be done is decided by `orchestrator.hosts.engines.node_line`.

First it finds a folder of the node itself, named after user and node, since nodes share file systems as often as not:
that is where relative paths are from. `there`: carry out an order of `orchestrator.hosts.engines.remote_script`. `put`:
write a file. `run`: run a command to its end. `become`: hold files open, go to a folder, and be the program from then
on.
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
"""Of what a command has written, the end."""


def own_folder(parent: str, node: str) -> str:
    """The folder of this user on this node, made if need be. Raises OSError."""
    folder = os.path.join(parent, f"mrcfabric-{os.getuid()}")
    os.makedirs(folder, 0o700, exist_ok=True)
    # Everybody can write into the folder for temporary files: one that another has made there is not ours.
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise PermissionError(1, f"{folder} belongs to somebody else")
    folder = os.path.join(folder, node)
    os.makedirs(folder, 0o700, exist_ok=True)
    return folder


def carry_out(order: dict[str, Any]) -> dict[str, Any]:
    """The answer to any order but `become`. Raises OSError."""
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
    """`folder`, `modules`, `held`, `arguments`: never comes back. Raises OSError."""
    os.chdir(order["folder"])
    for path in order["held"]:
        os.set_inheritable(os.open(path, os.O_RDONLY), True)
    if order["modules"]:
        os.environ["PYTHONPATH"] = os.pathsep.join(order["modules"])
    os.execv(sys.executable, [sys.executable, *order["arguments"]])


def stand(take: Callable[[], bytes]) -> None:
    """Say who this is, then do what is ordered."""

    def say(answer: dict[str, Any]) -> None:
        sys.stdout.write(f"\n{MARK}{json.dumps(answer)}\n")
        sys.stdout.flush()

    # Where we stand is no folder of modules.
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
    except OSError as error:  # in the program's stead, and in its words
        print(json.dumps({"where": order["folder"], "what": _why(error), "hint": ""}), flush=True)


def _why(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename else str(error)


if "take" in globals():
    stand(globals()["take"])
