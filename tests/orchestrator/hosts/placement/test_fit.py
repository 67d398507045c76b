"""What does not fit is told, each in one line, and what does is not."""

from dataclasses import replace

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from orchestrator.hosts.placement.budget import Budget, budget
from orchestrator.hosts.placement.fit import notes, refuse
from orchestrator.hosts.placement.inventory import Inventory, Pairing, Rules
from orchestrator.hosts.placement.placing import place
from tests.support.inventories import inventory

DEMO = Topology.demo()


def asked(inventory: Inventory, topology: Topology = DEMO) -> Budget:
    return budget(place(topology, inventory))


def told(budget: Budget) -> list[str]:
    return [f"{'refused' if note.refused else 'warned'} {note.error}" for note in notes(budget)]


def with_first(**values: object) -> Inventory:
    """Three hosts, the first with these values."""
    whole = inventory((64, 64, 64))
    first, *rest = whole.hosts
    return replace(whole, hosts=(replace(first, **values), *rest))  # type: ignore[arg-type]


def test_what_fits_is_not_spoken_of() -> None:
    assert told(asked(with_first(mtu=9000, memory_bytes=8 << 30, bandwidth_bps=100_000_000_000))) == []
    refuse(asked(with_first()))


def test_ports_beyond_the_range_are_refused() -> None:
    wide = Topology(planes=8, t0_per_plane=16, t1_per_plane=64, nics_per_t0=64)
    found = asked(inventory((64,)), wide)
    assert told(found) == [
        "refused vm1: its 1,664 nodes need 34,434 ports, there are 22,000 (more hosts, or a smaller fabric)"
    ]
    with pytest.raises(ConfigError, match="34,434 ports"):
        refuse(found)
    assert told(asked(inventory((64, 64)), wide)) == []


@pytest.mark.parametrize(
    ("mtu", "hint"),
    [
        (1500, "mtu_bytes: 1024 fits"),
        (576, "mtu_bytes: 256 fits"),
        (400, "no mtu_bytes is small enough"),
    ],
)
def test_frames_longer_than_the_mtu_of_a_host_are_refused(mtu: int, hint: str) -> None:
    assert told(asked(with_first(mtu=mtu))) == [
        f"refused vm1: frames to other hosts take 4,280 bytes, its mtu is {mtu:,} ({hint})"
    ]


def test_frames_as_long_as_the_mtu_fit() -> None:
    assert told(asked(with_first(mtu=4280))) == []


def test_a_host_that_sends_nothing_to_others_has_no_need_of_an_mtu() -> None:
    alone = replace(with_first(mtu=1500), rules=Rules("pack", "pack"))
    assert told(asked(alone)) == [f"warned vm{at}: carries no node (it is not needed for this fabric)" for at in (2, 3)]


def test_too_little_memory_is_a_warning() -> None:
    assert told(asked(with_first(memory_bytes=100_000_000))) == [
        "warned vm1: asks for 0.2 GB for its processes, it has 0.1 GB (regions of applications not counted)"
    ]


def test_a_rule_that_means_nothing_is_a_warning() -> None:
    rules = Rules(pin=(Pairing(("p9-*",), ("vm1",), "x.yaml:7: rules.pin[0]"),))
    assert told(asked(inventory((64, 64, 64), rules))) == [
        "warned x.yaml:7: rules.pin[0]: means no node here that an earlier rule does not"
    ]


@pytest.mark.parametrize(
    ("values", "dilation", "what"),
    [
        (
            {"cores": 2},
            2000,
            r"2\.6 cores are asked for, it has 2, for a dilation of 2,000 \(.* 1\.3 times",
        ),
        ({}, 500, "its heaviest process asks for 1.7 cores and can use one"),
        (
            {"bandwidth_bps": 1_000_000_000},
            2000,
            r"1\.52 Gb/s to other hosts are asked for, it has 1, .* 1\.5 times",
        ),
    ],
)
def test_a_pace_that_a_host_cannot_keep_is_a_warning(values: dict[str, int], dilation: int, what: str) -> None:
    found = notes(asked(with_first(**values), replace(DEMO, dilation=dilation)))
    assert not any(note.refused for note in found)
    with pytest.raises(ConfigError, match=what):
        raise found[0].error
    assert not notes(asked(with_first(**values), replace(DEMO, dilation=20_000)))


def test_a_host_that_holds_all_others_back_is_a_warning() -> None:
    (warning,) = told(asked(with_first(cores=1)))
    assert warning == (
        "warned vm1: sets the pace at full load, 6.2 times slower than with all cores evenly loaded "
        "(rules: nics: cores, switches: cores)"
    )
    assert told(asked(replace(with_first(cores=8), rules=Rules("cores", "cores")))) == []
    assert told(asked(with_first(cores=None))) == []
