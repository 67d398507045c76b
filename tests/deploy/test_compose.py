"""The compose files: what the Compose Specification takes, with commands, addresses and files of one mind."""

import re
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
import yaml
from compose_spec import PyCompose

from mrcfabric.topology_file import read
from orchestrator.hosts.build import placed
from orchestrator.hosts.placement.budget import budget
from orchestrator.hosts.placement.fit import refuse
from orchestrator.hosts.placement.inventory_file import load
from tests.checks.source import ROOT
from tests.support.command_lines import understood

DEPLOY = ROOT / "deploy"
INVENTORY = DEPLOY / "compose.inventory.yaml"
VARIABLE = re.compile(r"\$\{\w+:-(\w*)\}")


def text(name: str) -> str:
    """A file with the defaults of its variables, and nothing said by reference."""
    return yaml.safe_dump(yaml.safe_load(VARIABLE.sub(r"\1", (DEPLOY / name).read_text())))


@pytest.fixture
def services() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(text("compose.hosts.yaml"))["services"]
    return found


@pytest.mark.parametrize("name", ["compose.yaml", "compose.hosts.yaml"])
def test_the_specification_takes_it(name: str) -> None:
    compose = PyCompose.from_yaml(text(name))
    compose.validate()
    with pytest.raises(ValueError, match="restrt"):
        PyCompose.from_yaml(text(name).replace("restart:", "restrt:", 1))


def test_both_files_go_together(services: dict[str, Any]) -> None:
    base = yaml.safe_load(text("compose.yaml"))
    assert base["name"] == yaml.safe_load(text("compose.hosts.yaml"))["name"]
    assert not base["services"].keys() & services.keys()
    owner = base["services"]["prometheus"]["user"]
    assert {one["user"] for one in services.values()} == {owner}, "Prometheus reads the run folders"
    folders = {volume.partition(":")[0] for volume in base["services"]["prometheus"]["volumes"]}
    assert "../out" in folders
    assert "../out:/run/mrcfabric/out" in services["lead"]["volumes"]


def test_every_host_of_the_inventory_is_a_share(services: dict[str, Any]) -> None:
    compose = yaml.safe_load(text("compose.hosts.yaml"))
    (subnet,) = compose["networks"]["fabric"]["ipam"]["config"]
    (key,) = compose["secrets"]
    hosts = load(INVENTORY).hosts
    assert {host.name for host in hosts} == services.keys() - {"lead"}
    for host in hosts:
        one = services[host.name]
        told = {name.removeprefix("MRCFABRIC_SHARE_"): value for name, value in one["environment"].items()}
        assert understood(one["command"])[0] == "share"
        assert told["LISTEN"] == f"{host.data}:{host.service.port}"
        assert told["KEY"] == host.service.key == f"/run/secrets/{key}"
        assert one["tmpfs"][0].partition(":")[0] == told["RUN_DIR"]
        assert one["networks"]["fabric"]["ipv4_address"] == host.data
        assert ip_address(host.data) in ip_network(subnet["subnet"])


def test_who_leads_has_a_fabric_that_fits(services: dict[str, Any]) -> None:
    lead = services["lead"]
    name, words = understood(lead["command"])
    assert (name, words["engine"]) == ("up", "service")
    assert f"./{INVENTORY.name}:{words['inventory']}:ro" in lead["volumes"]
    assert words["metrics_address"] == lead["networks"]["fabric"]["ipv4_address"]
    refuse(budget(placed(read(None, list(words["settings"])).topology, INVENTORY)))


def test_no_container_may_do_more_than_it_needs(services: dict[str, Any]) -> None:
    for one in services.values():
        assert one["cap_drop"] == ["ALL"]
        assert one["read_only"] is True
        assert one["security_opt"] == ["no-new-privileges:true"]
        assert Path(DEPLOY / one["build"]["context"], one["build"]["dockerfile"]).is_file()
