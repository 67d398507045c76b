"""From an inventory to the cluster of a fabric: orchestrator first, idle hosts left out, what does not fit refused."""

from pathlib import Path

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from orchestrator.cli.flags import KNOWS_HOSTS
from orchestrator.hosts.build import ENGINES, HOSTS_OF, build, engine_of, placed, sites_of
from orchestrator.hosts.engines.local import LocalEngine
from orchestrator.hosts.engines.ssh import SshEngine
from orchestrator.hosts.placement.site import LEADER, LOOPBACK
from orchestrator.process.host_lease import LEASE_S

SMALL = Topology(name="built", planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2)
THREE = """\
hosts:
  vm1: {data: 10.0.0.1, control: 10.1.0.1, cores: 8}
  vm2: {data: 10.0.0.2, cores: 8}
  vm3: {data: 10.0.0.3, cores: 8}
"""


def inventory(folder: Path, rules: str = "", hosts: str = THREE) -> Path:
    path = folder / "inventory.yaml"
    path.write_text(hosts + rules)
    return path


def silent(_line: str) -> None:
    raise AssertionError("nothing has been started that could say anything")


def test_every_node_has_the_host_that_the_placement_gave_it(tmp_path: Path) -> None:
    placement = placed(SMALL, inventory(tmp_path))
    sites = sites_of(placement)
    assert [site.name for site in sites.sites] == ["orchestrator", "vm1", "vm2", "vm3"]
    assert (sites.sites[1].data, sites.sites[1].control) == ("10.0.0.1", "10.1.0.1")
    for node in SMALL.node_names():
        assert sites.site(node).name == placement.host_of(node).name


def test_the_orchestrators_own_host_comes_first_and_carries_daemons(tmp_path: Path) -> None:
    sites = sites_of(placed(SMALL, inventory(tmp_path, "rules: {orchestrator: vm2}\n")))
    assert [site.name for site in sites.sites] == ["vm2", "vm1", "vm3"]
    assert LEADER in {sites.number(node) for node in SMALL.node_names()}


def test_an_orchestrator_that_is_no_host_needs_no_address(tmp_path: Path) -> None:
    sites = sites_of(placed(SMALL, inventory(tmp_path)))
    assert (sites.sites[LEADER].data, sites.sites[LEADER].control) == (LOOPBACK, LOOPBACK)
    assert LEADER not in {sites.number(node) for node in SMALL.node_names()}


def test_a_host_without_nodes_is_not_started(tmp_path: Path) -> None:
    pinned = "rules: {pin: [{nodes: ['*'], host: vm2}]}\n"
    cluster = build(SMALL, inventory(tmp_path, pinned), "ssh", None, LEASE_S, silent)
    assert [site.name for site in cluster.sites.sites] == ["orchestrator", "vm2"]


def test_the_first_node_alone_makes_a_host_one_that_carries_something(tmp_path: Path) -> None:
    pinned = "rules: {pin: [{nodes: [h000], host: vm3}, {nodes: ['*'], host: vm2}]}\n"
    sites = sites_of(placed(SMALL, inventory(tmp_path, pinned)))
    assert sites.site("h000").name == "vm3"


def test_the_flag_overrides_the_rule_of_how_many_share_a_process(tmp_path: Path) -> None:
    path = inventory(tmp_path, "rules: {nodes_per_process: 2}\n")
    assert sites_of(placed(SMALL, path)).nodes_per_process == 2
    assert sites_of(placed(SMALL, path, 4)).nodes_per_process == 4
    with pytest.raises(ConfigError, match="--nodes-per-process 0"):
        placed(SMALL, path, 0)


def test_what_does_not_fit_is_refused_before_anything_starts(tmp_path: Path) -> None:
    cut = inventory(tmp_path, hosts=THREE.replace("cores: 8}", "cores: 8, mtu: 1280}", 1))
    with pytest.raises(ConfigError, match="vm1: frames to other hosts take"):
        build(SMALL, cut, "ssh", None, LEASE_S, silent)


def test_a_command_given_on_another_machine_than_the_one_that_leads_is_told_so(tmp_path: Path) -> None:
    path = inventory(tmp_path, "rules: {orchestrator: vm2}\n", THREE.replace("10.0.0.2", "198.51.100.2"))
    with pytest.raises(
        ConfigError, match=r"host vm2: this machine has no address 198.51.100.2 \(give the command on vm2"
    ):
        build(SMALL, path, "ssh", None, LEASE_S, silent)


def test_engines_have_names() -> None:
    assert isinstance(engine_of("local"), LocalEngine)
    assert isinstance(engine_of("ssh"), SshEngine)
    with pytest.raises(ConfigError, match="--engine rsh: no such engine"):
        engine_of("rsh")
    with pytest.raises(ConfigError, match="`mrcfabric manifests` writes what a cluster starts"):
        engine_of("kubernetes")


def test_an_engine_carries_wheels_or_says_that_it_does_not(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no wheel in it"):
        engine_of("ssh", tmp_path)
    (tmp_path / "msgpack-1.2.4-py3-none-any.whl").write_bytes(b"a wheel")
    assert isinstance(engine_of("ssh", tmp_path), SshEngine)
    with pytest.raises(ConfigError, match="--wheelhouse: the engine local carries no packages"):
        engine_of("local", tmp_path)


def test_engines_that_know_their_hosts_need_no_inventory(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(HOSTS_OF) == set(KNOWS_HOSTS) <= set(ENGINES)
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    with pytest.raises(ConfigError, match="--engine slurm: this is no allocation"):
        build(SMALL, None, "slurm", None, LEASE_S, silent)
