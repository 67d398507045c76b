"""A system's settings beneath those of a topology: order, places, mistakes."""

from pathlib import Path

import pytest

from mrcfabric import bundles
from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from mrcfabric.topology_file import load, read, read_system, with_system

MINE = "about: For tests.\nsource: Nobody.\nnic: {rto_ns: 0.5ms, path_policy: oblivious}\nswitch:\n  trim: false\n"


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "my-own.yaml"
    path.write_text(MINE)
    return path


@pytest.mark.parametrize("name", bundles.names())
def test_every_system_that_ships_says_what_it_is_and_whom_it_follows(name: str) -> None:
    system = read_system(name)
    assert system.name == name
    assert system.about.endswith(".")
    assert system.source


def test_a_system_is_read_with_units_and_places(mine: Path) -> None:
    system = read_system(str(mine))
    assert (system.name, system.about, system.source) == ("my-own", "For tests.", "Nobody.")
    assert system.tables == {"nic": {"rto_ns": 500_000, "path_policy": "oblivious"}, "switch": {"trim": False}}
    assert system.places["nic.rto_ns"] == f"{mine}:3"
    assert system.places["switch.trim"] == f"{mine}:5"


def test_defaults_then_the_system_then_the_file_then_flags(mine: Path, tmp_path: Path) -> None:
    file = tmp_path / "fabric.yaml"
    file.write_text("planes: 4\nsystem: my-own.yaml\nnic: {path_policy: single, evs_max: 64}\n")
    source = read(file, ["nic.evs_max=32"])
    topology = source.topology
    assert topology.system == topology.system_name == "my-own"
    assert topology.nic == {"rto_ns": 500_000, "path_policy": "single", "evs_max": 32}
    assert topology.switch == {"trim": False}
    assert source.places["nic.rto_ns"] == f"{mine}:3"
    assert source.places["nic.path_policy"] == f"{file}:3"
    assert source.places["nic.evs_max"] == "--set nic.evs_max=32"


def test_the_flag_wins_over_the_system_of_the_file(mine: Path, tmp_path: Path) -> None:
    file = tmp_path / "fabric.yaml"
    file.write_text("system: my-own.yaml\n")
    assert load(file, ["system=mrc"]) == with_system(Topology(), "mrc")


def test_without_a_file_it_goes_beneath_the_demonstration(mine: Path) -> None:
    topology = load(None, [f"system={mine}", "planes=4"])
    assert (topology.name, topology.planes, topology.switch) == ("demo", 4, {"trim": False})


def test_the_system_mrc_is_what_runs_without_one() -> None:
    plain, named = Topology(), with_system(Topology(), "mrc")
    assert plain.system_name == named.system_name == "mrc"
    assert {**named.to_dict(), "system": ""} == {**plain.to_dict(), "system": ""}
    assert Topology.from_dict(named.to_dict()) == named
    assert "system" not in plain.to_dict(), "a fabric without one has the digest that it always had"


def test_without_a_system_the_transport_gives_the_name() -> None:
    assert Topology(nic={"transport": "rc"}).system_name == "rc"


def test_a_topology_has_one_system(mine: Path) -> None:
    named = with_system(Topology(nic={"rto_ns": 7}), str(mine))
    assert named.nic == {"rto_ns": 7, "path_policy": "oblivious"}
    with pytest.raises(ConfigError, match="is my-own already"):
        with_system(named, "mrc")


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("source: x\nnic: {}\n", 0, "about is missing"),
        ("about: x\n", 0, "source is missing"),
        ("", 0, "is empty"),
        ("about: x\nsource: y\nplanes: 8\n", 3, "no key of a system is called planes"),
        ("about: x\nsource: y\nswtich: {}\n", 3, "nearest is switch"),
        ("about: x\nsource: y\nnic: 5\n", 3, "must be a table"),
        ("about: x\nsource: y\nnic:\n  a: 1\n  a: 2\n", 5, "twice"),
        ("about: [x]\nsource: y\n", 1, "one value"),
        ("about: {\n", 2, "no YAML"),
    ],
)
def test_mistakes_in_a_system_are_told_with_its_line(mine: Path, text: str, line: int, what: str) -> None:
    mine.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(None, [f"system={mine}"])
    assert str(caught.value).startswith(f"{mine}:{line}: " if line else f"{mine}: ")
    assert what in str(caught.value)


def test_an_unknown_system_is_told_with_the_place_that_names_it(tmp_path: Path) -> None:
    file = tmp_path / "fabric.yaml"
    file.write_text("planes: 4\nsystem: mcr\n")
    with pytest.raises(ConfigError, match=rf"^{file}:2: no system is called mcr \(nearest is mrc; there are "):
        load(file)
    with pytest.raises(ConfigError, match=r"^--system mcr: no system is called mcr"):
        load(None, ["system=mcr"])
    with pytest.raises(ConfigError, match=r"gone\.yaml: cannot be read"):
        load(None, ["system=./gone.yaml"])


def test_the_name_of_the_file_must_do_as_a_label(tmp_path: Path) -> None:
    odd = tmp_path / "My System.yaml"
    odd.write_text(MINE)
    with pytest.raises(ConfigError, match="lower-case letters, digits and hyphens"):
        load(None, [f"system={odd}"])
