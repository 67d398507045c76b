"""The script that looks round on a host."""

import json
import os
import socket
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from orchestrator.hosts.engines import remote_script


def order(folder: Path, **more: object) -> dict[str, object]:
    return {"run_dir": str(folder), "ports": []} | more


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("have", True),
        ("have>=1.2,<2", True),
        ("have >= 1.2.3", True),
        ("have==1.2.3.0", True),
        ("have<1.2.3", False),
        ("have>1.2.3", False),
        ("have>=1.10", False),
        ("have<=1.2", False),
        ("have~=1.2", False),
        ("have; python_version < '3'", False),
        ("lacks>=1", False),
    ],
)
def test_a_requirement_is_met_or_not(text: str, met: bool) -> None:
    assert remote_script.satisfied(text, {"have": "1.2.3"}.get) is met


def test_a_version_may_have_letters() -> None:
    assert remote_script.satisfied("have>=2", {"have": "2.0rc1"}.get)


def test_what_there_is(tmp_path: Path) -> None:
    found = remote_script.look(order(tmp_path / "a/b"))
    assert found["python"] == list(sys.version_info[:3])
    assert found["run_dir"] == str(tmp_path / "a/b")
    assert found["unwritable"] == ""
    assert not list((tmp_path / "a/b").iterdir())


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert remote_script.look(order(tmp_path / "file/inside"))["unwritable"] == "Not a directory"
    assert remote_script.look(order(Path("/proc/none")))["unwritable"]


@pytest.mark.parametrize("kind", ["tcp", "udp"])
def test_ports_are_tried(kind: str, tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        if kind == "tcp":
            taken.listen()
        asked = [[kind, "127.0.0.1", port], [kind, "127.0.0.1", 0], [kind, "192.0.2.1", 0], [kind, "::1", 0]]
        assert remote_script.look(order(tmp_path, ports=asked))["ports"] == ["EADDRINUSE", "", "EADDRNOTAVAIL", ""]


def test_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "wheelhouse").mkdir()
    (tmp_path / "wheelhouse/a.whl").write_bytes(b"")
    asked = {"code": "c0", "packages": "p0", "requirements": ["pytest>=8", "nobodyhasthis"], "wheels": ["a.whl", "b"]}
    found = remote_script.look(order(tmp_path, **asked))
    assert found["missing"] == ["nobodyhasthis"]
    assert found["code"] == [str(tmp_path / "code/c0"), False]
    path, known = found["packages"]
    assert path.startswith(str(tmp_path / "packages/p0-cpython-3"))
    assert not known
    assert list(found["wheels"]) == ["a.whl"]


def test_a_set_is_settled_once_and_found_again(tmp_path: Path) -> None:
    for _launch in range(2):
        draft = tmp_path / "code/.draft"
        draft.parent.mkdir(exist_ok=True)
        with zipfile.ZipFile(draft, "w") as archive:
            archive.writestr("mod.py", "X = 1\n")
        settled = remote_script.settle({"draft": str(draft), "target": str(tmp_path / "code/c0")})
        assert settled == {"failed": ""}
        assert [path.name for path in (tmp_path / "code").iterdir()] == ["c0"]
    assert (tmp_path / "code/c0/mod.py").read_text() == "X = 1\n"
    assert list((tmp_path / "code/c0/__pycache__").iterdir())
    asked = {"code": "c0", "packages": "p0", "requirements": [], "wheels": []}
    assert remote_script.look(order(tmp_path, **asked))["code"] == [str(tmp_path / "code/c0"), True]


def test_old_sets_are_forgotten_unless_somebody_holds_them(tmp_path: Path) -> None:
    code = tmp_path / "code"
    for number in range(remote_script.KEPT + 3):
        (code / f"c{number}").mkdir(parents=True)
        (code / f"c{number}/{remote_script.HELD}").write_text("")
        os.utime(code / f"c{number}/{remote_script.HELD}", (number, number))
    with open(code / f"c0/{remote_script.HELD}"):
        (code / ".draft").mkdir()
        remote_script.settle({"draft": str(code / ".draft"), "target": str(code / "new")})
    assert sorted(path.name for path in code.iterdir()) == ["c0", "c3", "c4", "c5", "c6", "new"]


def test_drafts_of_launches_that_failed_are_swept(tmp_path: Path) -> None:
    for name in (".old", ".oldfolder", ".young"):
        (tmp_path / name).mkdir() if "folder" in name else (tmp_path / name).write_text("")
    for name in (".old", ".oldfolder"):
        os.utime(tmp_path / name, (0, 0))
    (tmp_path / ".draft").mkdir()
    remote_script.settle({"draft": str(tmp_path / ".draft"), "target": str(tmp_path / "new")})
    assert sorted(path.name for path in tmp_path.iterdir()) == [".young", "new"]


def test_a_draft_of_another_launch_may_vanish_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = os.listdir
    monkeypatch.setattr(os, "listdir", lambda path: [*listed(path), ".gone"])
    (tmp_path / ".draft").mkdir()
    assert remote_script.settle({"draft": str(tmp_path / ".draft"), "target": str(tmp_path / "new")}) == {"failed": ""}


def test_a_draft_that_becomes_nothing_is_removed(tmp_path: Path) -> None:
    (tmp_path / ".draft").mkdir()
    settled = remote_script.settle({"draft": str(tmp_path / ".draft"), "target": str(tmp_path / "none/new")})
    assert settled == {"failed": "No such file or directory"}
    assert not list(tmp_path.iterdir())


@pytest.mark.integration
def test_the_script_stands_alone(tmp_path: Path) -> None:
    """With no module of ours in reach, by an interpreter without packages."""
    asked = json.dumps({"do": "look", "run_dir": str(tmp_path), "ports": []})
    command = [sys.executable, "-I", "-S", remote_script.__file__, asked]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    [line] = [text for text in done.stdout.splitlines() if text.startswith(remote_script.MARK)]
    assert json.loads(line.removeprefix(remote_script.MARK))["run_dir"] == str(tmp_path)


def test_a_stamp_stands_for_the_very_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "oddlynamed"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "inner/code.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    first = remote_script.stamp(["oddlynamed"])
    (package / "__pycache__").mkdir()
    assert remote_script.stamp(["oddlynamed", "nosuchpackage"]) == first
    (package / "inner/code.py").write_text("x = 22\n")
    second = remote_script.stamp(["oddlynamed"])
    assert second != first
    found = remote_script.look(order(tmp_path, modules=["oddlynamed"], requirements=["pytest>=1", "nosuchpackage"]))
    assert (found["stamp"], found["missing"]) == (second, ["nosuchpackage"])
