"""The import contracts name the real modules: a new module cannot slip past them."""

import configparser
import functools

from tests.checks import source
from tests.checks.source import ROOT


@functools.cache
def contracts() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(ROOT / ".importlinter")
    return parser


def names(contract: str, option: str) -> set[str]:
    return set(contracts()[f"importlinter:contract:{contract}"][option].split())


def children(package: str) -> set[str]:
    depth = package.count(".") + 1
    return {name for name in source.modules() if name.startswith(f"{package}.") and name.count(".") == depth}


def test_every_shared_module_is_either_pure_or_kept_from_the_cores() -> None:
    pure = names("pure-cores", "source_modules")
    shells = names("pure-cores", "forbidden_modules")
    shared = children("mrcfabric")
    assert not sorted(shared - pure - shells), "list it in .importlinter, as pure or as forbidden"
    assert not {name for name in pure | shells if name.startswith("mrcfabric.")} - shared, "gone: remove it"
    assert not pure & shells


def test_cores_see_nothing_of_their_daemons() -> None:
    forbidden = names("cores-below-daemons", "forbidden_modules")
    for daemon in ("nicd", "switchd"):
        around = children(daemon) - {f"{daemon}.core"}
        assert not sorted(around - forbidden), "list it in .importlinter"
        assert not {name for name in forbidden if name.startswith(f"{daemon}.")} - around, "gone: remove it"


def test_every_package_is_under_contract() -> None:
    assert set(contracts()["importlinter"]["root_packages"].split()) == set(source.PACKAGES)


def test_nothing_of_the_orchestrator_lies_outside_its_rooms() -> None:
    """A module beside the packages has no layer, and whatever has no layer is soon imported by everything."""
    flat = [name for name in children("orchestrator") if (ROOT / f"{name.replace('.', '/')}.py").is_file()]
    assert not sorted(flat), "put it into a package of orchestrator/"


def test_every_room_has_its_layer() -> None:
    listed = {name for line in contracts()["importlinter:contract:orchestrator-layers"]["layers"].splitlines()
              for name in line.replace("|", " ").split()}  # fmt: skip
    assert listed == {name.rpartition(".")[2] for name in children("orchestrator")}
