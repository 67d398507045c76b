"""The tests mirror the tree, every folder is a package that ships, and every file says what it owns."""

import tomllib
from pathlib import Path

from tests.checks import source
from tests.checks.exceptions import UNTWINNED
from tests.checks.source import PACKAGES, ROOT, relative

OBVIOUS_LINES = 12


def shipped() -> list[Path]:
    return [path for path in source.python_files() if path.relative_to(ROOT).parts[0] in PACKAGES]


def twin(path: Path) -> Path:
    """Where the tests of a module live: nicd/core/mrc/sack.py -> tests/nicd/core/mrc/test_sack.py."""
    return ROOT / "tests" / path.relative_to(ROOT).with_name(f"test_{path.stem.strip('_')}.py")


def test_every_module_has_a_twin() -> None:
    lonely = {relative(path) for path in shipped() if path.stem != "__init__" and not twin(path).is_file()}
    assert not sorted(lonely - UNTWINNED.keys()), "write their tests"


def test_the_list_of_untwinned_modules_only_shrinks() -> None:
    lonely = {relative(path) for path in shipped() if not twin(path).is_file()}
    assert not sorted(UNTWINNED.keys() - lonely), "has a twin now, or is gone: remove it from the exceptions"
    assert all(UNTWINNED.values()), "say why"


def test_no_test_outlives_its_module() -> None:
    """tests/nicd/core/mrc/test_sack.py and test_sack_window.py both need nicd/core/mrc/sack.py."""
    names = {path.relative_to(ROOT).with_suffix("").as_posix().replace("__main__", "main") for path in shipped()}
    orphans = []
    for path in source.python_files():
        inside = path.relative_to(ROOT).parts
        if inside[0] != "tests" or inside[1] not in PACKAGES or not path.name.startswith("test_"):
            continue
        folder = "/".join(inside[1:-1])
        words = path.stem.removeprefix("test_").split("_")
        wanted = {f"{folder}/{'_'.join(words[:count])}" for count in range(1, len(words) + 1)}
        if not wanted & names:
            orphans.append(relative(path))
    assert not orphans


def test_test_folders_are_packages() -> None:
    """Otherwise tests/nicd would shadow nicd."""
    folders = {path.parent for path in source.python_files() if relative(path).startswith("tests/")}
    assert not [relative(folder) for folder in folders if not (folder / "__init__.py").is_file()]


def test_every_package_ships() -> None:
    """The package list of pyproject.toml is spelled out, so it can be forgotten."""
    listed = tomllib.loads(source.text(ROOT / "pyproject.toml"))["tool"]["setuptools"]["packages"]
    real = {".".join(path.relative_to(ROOT).parent.parts) for path in shipped() if path.stem == "__init__"}
    assert sorted(listed) == sorted(real)


def test_every_module_says_what_it_owns() -> None:
    silent = [
        relative(path)
        for path in source.python_files()
        if source.text(path).strip() and not source.outline(path).explained
    ]
    assert not silent


def contract_methods() -> set[str]:
    """What the protocols of mrcfabric/node.py explain once for every core and event."""
    return {function.name for function in source.outline(ROOT / "mrcfabric/node.py").functions}


def test_every_public_function_is_explained_or_obvious() -> None:
    """A public function of more than a few lines has a docstring; a private or a tiny one may do without."""
    explained = contract_methods()
    mute = [
        f"{function.where} in line {function.line}"
        for path in shipped()
        for function in source.outline(path).functions
        if function.lines > OBVIOUS_LINES and not function.explained
        if not function.name.startswith("_") and function.name not in explained
    ]
    assert not mute
