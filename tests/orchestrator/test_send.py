"""A file crosses a small fabric of real daemons."""

import hashlib
from pathlib import Path

import pytest

from mrcfabric.errors import ConfigError
from orchestrator.fabric import Fabric
from orchestrator.send import MESSAGE_BYTES, Transfer, send_in_new, send_in_running
from tests.support.fabrics import SMALL


@pytest.mark.integration
@pytest.mark.slow
async def test_a_file_arrives_in_a_fabric_of_its_own_and_in_a_running_one(tmp_path: Path) -> None:
    content = bytes(range(251)) * 4501  # a little more than one message
    assert len(content) % MESSAGE_BYTES
    (tmp_path / "in").write_bytes(content)
    what = Transfer(tmp_path / "in", "h000", "h003", tmp_path / "out")
    record = await send_in_new(SMALL, tmp_path / "a", "plane", what)
    assert record["same"]
    assert record["sha256"] == hashlib.sha256(content).hexdigest()
    assert record["bytes"] == len(content)
    assert (tmp_path / "out").read_bytes() == content
    assert await send_in_running(tmp_path / "a", what) is None
    async with Fabric.launch(SMALL, tmp_path / "b", pack="plane"):
        again = await send_in_running(tmp_path / "b", Transfer(tmp_path / "in", "h001", "h002"))
    assert again is not None
    assert again["same"]


@pytest.mark.parametrize(
    ("source", "target", "name", "text"),
    [
        ("h000", "h000", "full", "itself"),
        ("h000", "h09", "full", "no such|nearest"),
        ("h000", "p0-t0-0", "full", "p0-t0-0"),
        ("h000", "h001", "empty", "0 bytes"),
        ("h000", "h001", "missing", "No such file"),
        ("h000", "h001", "", "directory"),
    ],
)
def test_what_cannot_be_sent_is_refused_before_anything_starts(
    tmp_path: Path, source: str, target: str, name: str, text: str
) -> None:
    (tmp_path / "full").write_bytes(b"x")
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(ConfigError, match=text):
        Transfer(tmp_path / name, source, target).check(SMALL)


@pytest.mark.parametrize(("out", "text"), [("no/out", "No such file"), ("", "directory"), ("in", "file to be sent")])
def test_a_place_that_cannot_be_written_is_refused_before_anything_starts(tmp_path: Path, out: str, text: str) -> None:
    (tmp_path / "in").write_bytes(b"x")
    with pytest.raises(ConfigError, match=f"--out .*{text}"):
        Transfer(tmp_path / "in", "h000", "h001", tmp_path / out).check(SMALL)
    assert (tmp_path / "in").read_bytes() == b"x"
