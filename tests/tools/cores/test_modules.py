"""The list of compiled modules: they exist, and every source that they take anything from is known."""

from pathlib import Path

from tools.cores.modules import compiled, module_name, sources

ROOT = Path(__file__).parents[3]


def test_every_module_of_the_list_is_there_once() -> None:
    paths = compiled()
    assert not [path for path in paths if not (ROOT / path).is_file()]
    assert len({module_name(path) for path in paths}) == len(paths)
    assert module_name(Path("nicd/core/nic.py")) == "nicd.core.nic"


def test_what_gives_types_or_constants_is_among_the_sources() -> None:
    found = {path.as_posix() for path in sources(ROOT, compiled())}
    assert {path.as_posix() for path in compiled()} < found
    assert {"mrcfabric/egress_config.py", "nicd/core/settings_paths.py", "mrcfabric/__init__.py"} < found
    assert "nicd/daemon.py" not in found


def test_imports_are_followed_wherever_they_stand(tmp_path: Path) -> None:
    package = tmp_path / "nicd"
    package.mkdir()
    texts = {
        "__init__": "",
        "one": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from nicd import two\n",
        "two": "import json\ndef late():\n    import nicd.three\n",
        "three": "from orchestrator import api\n",
        "four": "",
    }
    for name, text in texts.items():
        (package / f"{name}.py").write_text(text)
    found = [path.as_posix() for path in sources(tmp_path, [Path("nicd/one.py")])]
    assert found == ["nicd/__init__.py", "nicd/one.py", "nicd/three.py", "nicd/two.py"]
