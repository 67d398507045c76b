"""What a task does before it is the program, order by order; the whole dialogue: test_node_line.py."""

import base64
import os
import sys
from pathlib import Path

import pytest

from orchestrator.hosts.engines import slurm_bootstrap
from tests.support.packages import NEEDS_ROOT


def test_the_folder_of_a_node_is_its_users_alone(tmp_path: Path) -> None:
    folder = slurm_bootstrap.own_folder(str(tmp_path), "h2")
    assert folder == str(tmp_path / f"mrcfabric-{os.getuid()}" / "h2")
    assert (tmp_path / f"mrcfabric-{os.getuid()}").stat().st_mode & 0o777 == 0o700
    assert slurm_bootstrap.own_folder(str(tmp_path), "h2") == folder


def test_a_folder_that_somebody_else_has_made_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"mrcfabric-{os.getuid()}").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PermissionError, match="belongs to somebody else"):
        slurm_bootstrap.own_folder(str(tmp_path), "h2")
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.skipif(os.getuid() != 0, reason=f"{NEEDS_ROOT}: only root can give a folder away")
def test_a_folder_of_another_user_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "mrcfabric-0").mkdir()
    os.chown(tmp_path / "mrcfabric-0", 12345, 12345)
    with pytest.raises(PermissionError, match="belongs to somebody else"):
        slurm_bootstrap.own_folder(str(tmp_path), "h2")


def test_files_are_written_for_the_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "a/b"
    assert (
        slurm_bootstrap.carry_out({"do": "put", "path": str(path), "content": base64.b64encode(b"carried").decode()})
        == {}
    )
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"carried", 0o600)


def test_commands_are_run_to_their_end(tmp_path: Path) -> None:
    words = [sys.executable, "-c", "import sys; sys.stderr.write('x' * 100_000 + 'end'); sys.exit(3)"]
    answer = slurm_bootstrap.carry_out({"do": "run", "words": words})
    assert (answer["code"], len(answer["output"])) == (3, slurm_bootstrap.OUTPUT_BYTES_MAX)
    assert answer["output"].endswith("xend")
