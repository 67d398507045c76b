"""The key of a cluster: which file is one, and what is sealed with it."""

import os
from pathlib import Path

import pytest

from mrcfabric.errors import ConfigError
from orchestrator.hosts.cluster_key import ClusterKey, write_new
from tests.support.packages import NEEDS_ROOT


def written(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / "cluster.key"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_a_new_key_is_its_owners_alone_and_is_never_written_over(tmp_path: Path) -> None:
    path = tmp_path / "cluster.key"
    write_new(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(ClusterKey.read(path).realm.secret) == 32
    with pytest.raises(ConfigError, match="is there already"):
        write_new(path)
    with pytest.raises(ConfigError, match="cannot be written: No such file"):
        write_new(tmp_path / "nowhere" / "cluster.key")


@pytest.mark.parametrize(
    ("text", "mode", "complaint"),
    [
        ("ab" * 32, 0o604, "can be read by other users"),
        ("ab" * 32, 0o620, "can be read by other users"),
        ("ab" * 31, 0o600, "has 31 bytes"),
        ("ab" * 65, 0o600, "has 65 bytes"),
        ("no key", 0o600, "not hexadecimal"),
        ("\xe4", 0o600, "it is no text"),
        ("", 0o600, "has 0 bytes"),
    ],
)
def test_what_will_not_do_is_said(tmp_path: Path, text: str, mode: int, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint) as caught:
        ClusterKey.read(written(tmp_path, text, mode))
    assert "\n" not in str(caught.value)
    assert text not in str(caught.value).replace(str(tmp_path), "") or not text


def test_a_key_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        ClusterKey.read(tmp_path / "cluster.key")


@pytest.mark.skipif(os.geteuid() != 0, reason=f"{NEEDS_ROOT}: only root has files of root")
def test_what_root_hands_to_a_group_is_a_key(tmp_path: Path) -> None:
    path = written(tmp_path, "ab" * 32 + "\n", 0o440)
    assert ClusterKey.read(path).realm.secret == bytes.fromhex("ab" * 32)
    os.chown(path, 65534, -1)
    with pytest.raises(ConfigError, match="can be read by other users"):
        ClusterKey.read(path)


def test_only_who_has_the_key_reads_what_is_sealed(tmp_path: Path) -> None:
    key, other = ClusterKey(bytes(32)), ClusterKey(bytes(31) + b"\1")
    sealed = key.seal(b"secret words")
    assert b"secret" not in sealed
    assert key.seal(b"secret words") != sealed
    assert key.unseal(sealed) == b"secret words"
    for bad in (sealed[:-1], sealed + b"\0", bytes([sealed[0] ^ 1]) + sealed[1:], b"", sealed[:12]):
        with pytest.raises(ValueError, match="not sealed with this key"):
            key.unseal(bad)
    with pytest.raises(ValueError, match="not sealed with this key"):
        other.unseal(sealed)
