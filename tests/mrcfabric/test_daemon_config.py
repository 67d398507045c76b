"""Configurations of daemons: what they become, and what every mistake says."""

import json
from pathlib import Path
from typing import Any

import pytest

from mrcfabric.control import write_secret
from mrcfabric.daemon_config import ClockConfig, address, from_table, load
from mrcfabric.errors import ConfigError
from tests.support.daemons import DILATION, SECRET, tables


def table(**changes: Any) -> dict[str, Any]:
    return tables()["p0-t0-0"] | changes


def test_a_table_by_hand() -> None:
    config = from_table(table(start_ns="2us", commands=[{"at_ns": 7, "op": "x"}], metrics_listen="[::1]:80"))
    assert (config.node, config.realm.fabric, config.realm.secret) == ("p0-t0-0", "tiny", SECRET)
    assert [link.port for link in config.links] == [0, 1, 2]
    assert {link.delay_ns for link in config.links} == {config.topology.link_delay_ns}
    assert config.start_ns == 2000
    assert config.metrics_listen == ("::1", 80)
    assert config.commands[0].args == {}
    assert not config.clock.shared
    assert config.clock.dilation == DILATION


def test_a_table_from_the_agent() -> None:
    raw = table(
        clock={"page_fd": 3, "slot": 2, "doorbell_fd": 4, "agent_doorbell_fd": 5}, alive_fd=6, incarnation=1, crowd=608
    )
    for link in raw["links"]:
        link |= {"peer_slot": 1, "peer_port": 0, "peer_doorbell": 9, "delay_ns": 1000, "path_mtu": 1500}
    config = from_table(raw)
    assert config.clock == ClockConfig(page_fd=3, slot=2, doorbell_fd=4, agent_doorbell_fd=5)
    assert config.clock.shared
    assert (config.links[0].peer_doorbell, config.links[0].path_mtu) == (9, 1500)
    assert (config.alive_fd, config.incarnation, config.crowd) == (6, 1, 608)


def test_what_the_run_folder_gives(tmp_path: Path) -> None:
    write_secret(tmp_path / "secret", SECRET[::-1])
    raw = tables()["h001"]
    del raw["secret"]
    config = from_table(raw | {"run_dir": str(tmp_path)})
    assert config.realm.secret == SECRET[::-1]
    assert config.verbs == str(tmp_path / "verbs" / "h001.sock")


@pytest.mark.parametrize(
    ("value", "wanted"),
    [(["::1", 5], ("::1", 5)), ("127.0.0.1:5000", ("127.0.0.1", 5000)), (("10.0.0.1", 0), ("10.0.0.1", 0))],
)
def test_addresses(value: Any, wanted: Any) -> None:
    assert address("control", value) == wanted


@pytest.mark.parametrize("value", ["", "127.0.0.1", "name:5", "1.2.3.4:99999", ["1.2.3.4"], [1, 2], 5, ["::1", "5"]])
def test_no_addresses(value: Any) -> None:
    with pytest.raises(ConfigError, match="control"):
        address("control", value)


def first_link(**changes: Any) -> dict[str, Any]:
    raw = table()
    raw["links"][0] |= changes
    return raw


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (None, "configuration: is no table"),
        ([], "configuration: is no table"),
        ({1: 2}, "configuration: is no table"),
        (table(nodes="x"), "no setting is called nodes .nearest is node"),
        ({"node": "h000"}, "links: is missing"),
        (table(node="p0-t0-1"), "p0-t0-1"),
        (table(node=5), "node: 5 will not do"),
        (table(topology={"planes": 99}), "topology.planes"),
        (table(topology=[1]), "topology: is no table"),
        (table(secret="zz"), "secret: the secret is not hexadecimal"),
        (table(secret_file="/nowhere"), "secret: stands beside secret_file"),
        (table(control=["127.0.0.1", 70000]), "control port: 70000"),
        (table(incarnation=True), "incarnation: True will not do"),
        (table(start_ns=-1), "start_ns: -1"),
        (table(links=table()["links"][:2]), "links: port 2 of p0-t0-0 has no link .to p0-t1-0"),
        (table(links=table()["links"] * 2), "links.3..port: port 0: stands here twice"),
        (table(links={}), "links: is no list"),
        (first_link(port=9), "port 9: p0-t0-0 has no such port .it has ports 0 to 2"),
        (first_link(peer_node="h001"), "'h001' is not at port 0 of p0-t0-0 .h000 is"),
        (first_link(peer="somewhere"), r"links\[0\].peer: somewhere is no address"),
        (first_link(peer_doorbell=-1), "peer_doorbell: -1"),
        (first_link(path_mtu=100), "path_mtu: 100"),
        (table(clock={"page_fd": 3}), "clock.slot: is missing"),
        (table(clock={"dilation": 0}), "clock.dilation: 0"),
        (table(clock={"wall_epoch_s": "now"}), "clock.wall_epoch_s: 'now'"),
        (table(commands=[{"op": "x"}]), r"commands\[0\].at_ns: None"),
        (table(commands=[{"at_ns": 5}]), r"commands\[0\].op: None"),
        (table(trace="yes"), "trace: 'yes' will not do .wanted: true or false"),
    ],
)
def test_mistakes(raw: Any, text: str) -> None:
    with pytest.raises(ConfigError, match=text) as caught:
        from_table(raw)
    assert "\n" not in str(caught.value)


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "t0.yaml"
    path.write_text(json.dumps(table()))
    assert load(path).node == "p0-t0-0"
    path.write_text("node: [")
    with pytest.raises(ConfigError, match=r"t0.yaml:1: is no YAML"):
        load(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="is no YAML"):
        load(path)
    path.write_text("node: h000")
    with pytest.raises(ConfigError, match=r"t0.yaml: links: is missing"):
        load(path)
    with pytest.raises(ConfigError, match="absent: cannot be read: No such file"):
        load(tmp_path / "absent")
