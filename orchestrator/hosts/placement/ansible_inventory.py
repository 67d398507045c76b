"""An inventory in the form that Ansible reads, so that no second file can contradict it.

Owns what Ansible learns of a host: how to log in, which Python, where its share service listens, with which key. A
script (`deploy/ansible/hosts.py`) answers `--list` with it. The variables `mrcfabric_...` are those of the role
deploy/ansible/roles/mrcfabric.
"""

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any, Final

from mrcfabric.errors import ConfigError
from orchestrator.hosts.placement.inventory import Host, Inventory
from orchestrator.hosts.placement.inventory_file import load

GROUP: Final = "mrcfabric"
VARIABLE: Final = "MRCFABRIC_INVENTORY"
FILE: Final = "hosts.yaml"
EXIT_CONFIG: Final = 2


def listed(inventory: Inventory) -> dict[str, Any]:
    """All hosts in one group, with their variables. Relative files start from the folder of the inventory."""
    hosts = {host.name: _variables(host) for host in inventory.hosts}
    return {GROUP: {"hosts": list(hosts)}, "_meta": {"hostvars": hosts}}


def _variables(host: Host) -> dict[str, Any]:
    ssh = host.ssh
    told: dict[str, Any] = {
        "ansible_host": ssh.address,
        "ansible_port": ssh.port,
        "ansible_python_interpreter": host.python,
        "mrcfabric_python": host.python,
        "mrcfabric_listen": host.service.address or host.control,
        "mrcfabric_port": host.service.port,
        "mrcfabric_key": _path(host.service.key),
    }
    if ssh.user:
        told["ansible_user"] = ssh.user
    if ssh.key:
        told["ansible_ssh_private_key_file"] = _path(ssh.key)
    if ssh.known_hosts:
        # ssh takes a list of files there, with blanks between them and its own quoting.
        file = _path(ssh.known_hosts).replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
        told["ansible_ssh_common_args"] = shlex.join(["-o", f'UserKnownHostsFile="{file}"'])
    return told


def _path(name: str) -> str:
    """An absolute path: Ansible would look for a relative one in other folders."""
    return str(Path(name).expanduser().absolute())


def main() -> int:
    """Answer `--list`, which tells everything. Returns the exit code."""
    try:
        print(json.dumps(listed(load(os.environ.get(VARIABLE, FILE))), indent=2))
    except ConfigError as error:
        print(f"mrcfabric: {error}", file=sys.stderr)
        return EXIT_CONFIG
    return 0
