"""Keys of share services: the same place in a pod as beside the inventory, or a clear refusal."""

from dataclasses import replace
from pathlib import Path

import pytest

from mrcfabric.errors import ConfigError
from orchestrator.hosts.placement.inventory import Host, Service
from orchestrator.kubernetes.keys import Keys


def host(name: str, key: str) -> Host:
    return replace(Host.at(name, "10.0.0.1"), service=Service(key=key))


def test_one_key_for_all_is_one_item() -> None:
    hosts = [host("a", "lab/cluster.key"), host("b", "lab/cluster.key")]
    keys = Keys("lab/hosts.yaml", hosts)
    assert list(keys.by_item) == ["cluster.key"]
    key = keys.of(hosts[1])
    assert (key.item, key.path, key.file) == ("cluster.key", "cluster.key", Path("lab/cluster.key"))


def test_keys_of_their_own_keep_their_folders() -> None:
    keys = Keys("hosts.yaml", [host("a", "keys/a"), host("b", "keys/b")])
    assert {item: key.path for item, key in keys.by_item.items()} == {"keys.a": "keys/a", "keys.b": "keys/b"}


@pytest.mark.parametrize(
    ("keys", "what"),
    [
        (["/etc/cluster.key"], "lies elsewhere than the inventory"),
        (["~/cluster.key"], "lies elsewhere than the inventory"),
        (["../cluster.key"], "lies elsewhere than the inventory"),
        (["cluster key"], "no name in a secret"),
        (["k/a", "k.a"], "would both be k.a"),
    ],
)
def test_what_cannot_be_in_a_pod_is_refused(keys: list[str], what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        Keys("hosts.yaml", [host(f"h{number}", key) for number, key in enumerate(keys)])
