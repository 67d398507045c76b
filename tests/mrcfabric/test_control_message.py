"""Messages and secrets of the control channel."""

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.control_message import MAC_BYTES, new_secret, read_secret, seal, unseal, write_secret
from mrcfabric.errors import ConfigError
from tests.support.control import REALM


@given(st.binary(max_size=200))
def test_random_bytes_never_raise(datagram: bytes) -> None:
    assert isinstance(unseal(datagram, REALM.secret), str)
    body = seal({}, REALM.secret)
    assert unseal(body, REALM.secret) == {}
    mac = hashlib.blake2b(datagram, key=REALM.secret, digest_size=MAC_BYTES, person=b"mrcfabric-ctl").digest()
    assert isinstance(unseal(mac + datagram, REALM.secret), str | dict)


def test_secret_files(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    secret = new_secret()
    write_secret(path, secret)
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_secret(path) == secret
    path.chmod(0o644)
    with pytest.raises(ConfigError, match="other users"):
        read_secret(path)
    path.write_text("zz")
    path.chmod(0o600)
    with pytest.raises(ConfigError, match="not hexadecimal"):
        read_secret(path)
    path.write_text("00")
    with pytest.raises(ConfigError, match="1 bytes"):
        read_secret(path)
    with pytest.raises(ConfigError, match="cannot read"):
        read_secret(tmp_path / "absent")
