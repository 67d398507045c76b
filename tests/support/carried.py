"""Hosts of a cluster that have our code already, as after an earlier launch.

To carry the code and to compile it costs a host more than most launches do. Launches that are about something else find
it there.
"""

import os
import shutil
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from orchestrator.hosts.engines import remote_script
from orchestrator.hosts.engines.payload import our_wheel
from tests.support.cluster import Host, prefix

RUN_DIR = "mrcfabric"
"""Where it is, in the folder of a host."""


def lay(hosts: Iterable[Host]) -> None:
    """Give every host the set that a launch from here would bring."""
    code = _settled()
    for host in hosts:
        there = host.folder / RUN_DIR / "code" / code.name
        # Each host holds a file of the set open; all others are only read.
        shutil.copytree(code, there, copy_function=os.link, ignore=shutil.ignore_patterns(remote_script.HELD))
        (there / remote_script.HELD).touch()


@cache
def _made() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix=prefix())


@cache
def _settled() -> Path:
    """The set, made once in the life of this process."""
    wheel = our_wheel()
    folder = Path(_made().name)
    draft, code = folder / "draft", folder / wheel.digest
    draft.write_bytes(wheel.content)
    assert remote_script.settle({"draft": str(draft), "target": str(code)}) == {"failed": ""}
    return code
