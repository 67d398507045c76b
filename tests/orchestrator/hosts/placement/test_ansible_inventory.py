"""What Ansible is told of the hosts of an inventory."""

import json
import shlex
from pathlib import Path

import pytest

from orchestrator.hosts.placement.ansible_inventory import listed, main
from orchestrator.hosts.placement.inventory_file import parsed
from tests.support.inventories import WHOLE


def test_every_host_with_what_its_role_needs() -> None:
    told = listed(parsed("/conf/hosts.yaml", WHOLE))
    assert told["mrcfabric"] == {"hosts": ["vm1", "vm2", "vm3"]}
    assert told["_meta"]["hostvars"]["vm1"] == {
        "ansible_host": "10.0.0.1",
        "ansible_port": 22,
        "ansible_python_interpreter": "python3",
        "mrcfabric_python": "python3",
        "mrcfabric_listen": "10.0.0.1",
        "mrcfabric_port": 4790,
        "mrcfabric_key": "/conf/cluster.key",
    }
    second = told["_meta"]["hostvars"]["vm2"]
    assert (second["ansible_host"], second["ansible_port"], second["ansible_user"]) == ("gate.example", 2222, "ubuntu")
    assert (second["mrcfabric_listen"], second["mrcfabric_port"]) == ("192.168.7.2", 4791)
    assert second["ansible_ssh_private_key_file"] == "/conf/keys/vm2"
    assert second["ansible_ssh_common_args"] == f"-o 'UserKnownHostsFile=\"{Path.home()}/.ssh/known\"'"
    assert second["mrcfabric_key"] == "/conf/keys/cluster"


def test_ssh_takes_a_path_with_blanks_and_signs_for_one_file() -> None:
    text = "hosts: {vm1: {data: 10.0.0.1, ssh: {known_hosts: 'of 50%/\"all\"'}}}"
    told = listed(parsed("/my conf/hosts.yaml", text))["_meta"]["hostvars"]["vm1"]["ansible_ssh_common_args"]
    assert shlex.split(told) == ["-o", 'UserKnownHostsFile="/my conf/of 50%%/\\"all\\""']


def test_the_file_is_named_by_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main() == 2
    assert capsys.readouterr().err == "mrcfabric: hosts.yaml: cannot be read: No such file or directory\n"
    (tmp_path / "lab.yaml").write_text("hosts: {vm1: 'fd00::1'}")
    monkeypatch.setenv("MRCFABRIC_INVENTORY", "lab.yaml")
    assert main() == 0
    told = json.loads(capsys.readouterr().out)
    assert told["_meta"]["hostvars"]["vm1"]["mrcfabric_key"] == str(tmp_path / "cluster.key")
