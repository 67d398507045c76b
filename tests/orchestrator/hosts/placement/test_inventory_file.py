"""Inventories as files: what they say, and that every mistake is told with its line."""

from pathlib import Path

import pytest

from mrcfabric.errors import ConfigError
from orchestrator.hosts.placement.inventory import Host, Pairing, Service, Ssh
from orchestrator.hosts.placement.inventory_file import load, parsed
from tests.checks.source import ROOT
from tests.support.inventories import WHOLE, complaint


def test_an_address_alone_is_a_host() -> None:
    whole = parsed("hosts.yaml", "hosts: {vm1: 10.0.0.1, vm2: 10.0.0.2}")
    assert whole.hosts == (Host.at("vm1", "10.0.0.1"), Host.at("vm2", "10.0.0.2"))
    assert (whole.rules.nics, whole.rules.switches, whole.rules.nodes_per_process) == ("spread", "by_plane", 1)
    assert whole.rules.orchestrator == ""


def test_everything_that_a_file_can_say() -> None:
    whole = parsed("conf/hosts.yaml", WHOLE)
    host = whole.host("vm2")
    assert (host.data, host.control, host.cores, host.memory_bytes) == ("10.0.0.2", "192.168.0.2", 8, 16 << 30)
    assert (host.python, host.run_dir, host.mtu, host.bandwidth_bps) == ("python3.12", "runs", 9000, 25_000_000_000)
    assert host.labels == {"rack": "a", "kind": "big", "row": "7"}
    assert host.ssh == Ssh("gate.example", 2222, "ubuntu", "conf/keys/vm2", "~/.ssh/known")
    assert host.service == Service("192.168.7.2", 4791, "conf/keys/cluster")
    assert whole.host("vm1").service == Service("", 4790, "conf/cluster.key")
    rules = whole.rules
    assert (rules.nics, rules.switches, rules.nodes_per_process, rules.orchestrator) == ("cores", "spread", 4, "vm1")
    assert rules.pin == (
        Pairing(("p0-*",), ("vm1",), "conf/hosts.yaml:20: rules.pin[0]"),
        Pairing(("tier=t1", "plane=1"), ("vm2",), "conf/hosts.yaml:21: rules.pin[1]"),
    )
    assert [(one.nodes, one.hosts) for one in rules.exclude] == [(("tier=nic",), ("vm3",)), ((), ("vm3",))]


def test_addresses_get_their_usual_spelling() -> None:
    hosts = parsed("x", "hosts: {a: 'FD00:0::1', b: {data: 'fd00::2', control: 'fd00:1::2'}}").hosts
    assert [(host.data, host.control) for host in hosts] == [("fd00::1", "fd00::1"), ("fd00::2", "fd00:1::2")]


def test_labels_mean_every_host_that_has_them_all() -> None:
    text = "hosts:\n" + "".join(f"  a{at}: {{data: 10.0.0.{at}, labels: {{rack: r{at % 2}}}}}\n" for at in range(1, 5))
    whole = parsed("x", text + "rules: {pin: [{nodes: h000, host: rack=r1}]}")
    assert whole.rules.pin[0].hosts == ("a1", "a3")


MISTAKES = (
    ("hosts: {vm1: 10.0.0.1}\nruls: {}", "hosts.yaml:2: ruls: no such key here (nearest is rules)"),
    ("", "hosts.yaml: is empty (an inventory has at least hosts)"),
    ("rules: {}", "hosts.yaml: hosts is missing (hosts: a table (1 to 1024))"),
    ("hosts: {}", "hosts.yaml:1: hosts: has 0 entries (wanted: a table (1 to 1024))"),
    ("hosts: [vm1, vm2]", "hosts.yaml:1: hosts: is a list (wanted: a table (1 to 1024))"),
    ("fabric: {planes: 2}\nhosts: {vm1: 10.0.0.1}", "hosts.yaml:1: fabric: no such key here (the topology is another"),
    (
        "hosts:\n  vm1: vm1.example",
        "hosts.yaml:2: hosts.vm1: vm1.example is no address (an address as 10.0",
    ),
    ("hosts:\n  vm1: {data: 10.0.0.300}", "hosts.yaml:2: hosts.vm1.data: 10.0.0.300 is no address"),
    ("hosts: {vm1: {cores: 2}}", "hosts.yaml:1: hosts.vm1: data is missing (data: a text"),
    ("hosts: {vm1: 0.0.0.0}", "0.0.0.0 is no host's address"),
    ("hosts: {vm1: 224.0.0.1}", "224.0.0.1 is no host's address"),
    ("hosts: {vm1: 'fe80::1'}", "fe80::1 means another host on every link"),
    ("hosts: {vm1: '::ffff:10.0.0.1'}", "is an IPv4 address in disguise (10.0.0.1)"),
    ("hosts: {vm1: 'fd00::1%eth0'}", "fd00::1%eth0 names an interface of one host (fd00::1)"),
    ("hosts: {vm 1: 10.0.0.1}", "vm 1 is no name of a host"),
    ("hosts: {none: 10.0.0.1}", "none is no name of a host"),
    ("hosts:\n  a: 10.0.0.1\n  a: 10.0.0.2", "hosts.yaml:3: a stands here twice"),
    ("hosts:\n  a: 10.0.0.1\n  b: 10.0.0.1", "hosts.yaml:3: hosts.b.data: 10.0.0.1 is an address of a"),
    ("hosts:\n  a: 10.0.0.1\n  b: {data: 10.0.0.2, control: 10.0.0.1}", "10.0.0.1 is an address of a"),
    ("hosts:\n  a: 10.0.0.1\n  b: 'fd00::2'", "fd00::2 cannot be reached from a (all data addresses are IPv4, as 10"),
    ("hosts:\n  a: 10.0.0.1\n  b: 127.0.0.1", "127.0.0.1 and 10.0.0.1 of a cannot reach each other"),
    ("hosts: {a: {data: 10.0.0.1, cores: 0}}", "hosts.a.cores: 0 will not do (wanted: a whole number (1 to 4096))"),
    (
        "hosts: {a: {data: 10.0.0.1, service: {address: vm2}}}",
        "hosts.yaml:1: hosts.a.service.address: vm2 is no address",
    ),
    ("hosts: {a: {data: 10.0.0.1, service: {port: 0}}}", "hosts.a.service.port: 0 will not do"),
    ("hosts: {a: {data: 10.0.0.1, mtu: 100}}", "hosts.a.mtu: 100 will not do"),
    ("hosts: {a: {data: 10.0.0.1, memory_bytes: 2XB}}", "wanted: a whole number (at least 0) or a size, as 64KiB"),
    ("hosts: {a: {data: 10.0.0.1, bandwidth_bps: 0}}", "hosts.a.bandwidth_bps: 0 will not do"),
    ("hosts: {a: {data: 10.0.0.1, labels: {rack: a b}}}", "hosts.a.labels.rack: a b is no word of a label"),
    ("hosts: {a: {data: 10.0.0.1, ssh: {usr: x}}}", "hosts.a.ssh.usr: no such key here (nearest is user)"),
    ("hosts: {a: {data: 10.0.0.1, ssh: {user: -oProxy}}}", "hosts.a.ssh.user: -oProxy is no name of a user"),
    ("hosts: {a: {data: 10.0.0.1, ssh: {address: -oProxy}}}", "hosts.a.ssh.address: -oProxy will not do"),
    ("hosts: {a: {data: 10.0.0.1, python: -c}}", "hosts.a.python: -c will not do"),
    ("hosts: {a: 10.0.0.1}\nrules: {nics: by_plane}", "hosts.yaml:2: rules.nics: by_plane will not do (wanted: one of"),
    ("hosts: {a: 10.0.0.1}\nrules: {nodes_per_process: 0}", "rules.nodes_per_process: 0 will not do"),
    (
        "hosts: {vm1: 10.0.0.1}\nrules: {orchestrator: vm2}",
        "rules.orchestrator: no host is called vm2 (nearest is vm",
    ),
    (
        "hosts: {vm1: 10.0.0.1}\nrules:\n  pin:\n    - {nodes: h000, host: vm}",
        "hosts.yaml:4: rules.pin[0].host: no ",
    ),
    ("hosts: {vm1: 10.0.0.1}\nrules: {pin: [{host: vm1}]}", "rules.pin[0]: nodes is missing"),
    (
        "hosts: {vm1: 10.0.0.1}\nrules: {exclude: [{host: rack=a}]}",
        "no host has the labels rack=a (no host has",
    ),
    ("hosts: {a: {data: 10.0.0.1, labels: {rack: a}}}\nrules: {exclude: [{host: rack=b}]}", "(nearest is rack=a)"),
)


@pytest.mark.parametrize(("text", "what"), MISTAKES, ids=lambda value: "")
def test_every_mistake_is_one_line(text: str, what: str) -> None:
    said = complaint(text)
    assert what in said
    assert said.startswith("hosts.yaml")
    assert "\n" not in said


def test_a_file_is_read_and_one_that_is_not_there_is_told(tmp_path: Path) -> None:
    file = tmp_path / "hosts.yaml"
    file.write_text(WHOLE)
    assert load(file).path == str(file)
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load(tmp_path / "none.yaml")


def test_the_inventory_of_the_document_can_be_read() -> None:
    document = (ROOT / "docs/CLUSTER.md").read_text()
    shown = parsed("hosts.yaml", document.partition("```yaml\n")[2].partition("```")[0])
    assert [host.name for host in shown.hosts] == ["vm1", "vm2"]
    assert shown.rules.pin[0].hosts == ("vm2",)
