"""What a transport answers that lacks a part: nothing, in the same form as one that has it."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from mrcfabric.errors import RefusedError
from mrcfabric.units import Buffer, Instant
from nicd.compose import nic_config
from nicd.core.board import Board
from nicd.core.qp_state import QpState
from nicd.core.transport import Transport
from tests.nicd.core.bench import PLANES, Bench, topology


class Bare(Transport):
    """QPs and nothing else."""

    name = "bare"

    def receive(self, now: Instant, port: int, packet: Buffer) -> str:
        return "taken"

    def qpn_of(self, packet: Buffer) -> int | None:
        return None

    def carrier_changed(self, now: Instant, port: int) -> None:
        """Nobody minds."""

    @property
    def qps(self) -> Mapping[int, Any]:
        return {5: SimpleNamespace(state=QpState.RTS), 6: SimpleNamespace(state=QpState.ERROR)}

    def bytes_placed(self, qpn: int) -> int:
        return 0

    def qp_table(self) -> list[dict[str, int | str]]:
        return []

    def state_report(self) -> dict[str, Any]:
        return {}


@pytest.fixture
def bare() -> Bare:
    return Bare(Board(nic_config(topology(), "h000"), 4_200))


def test_it_has_the_counters_of_mrc(bare: Bare) -> None:
    counters = bare.counters()
    assert counters.keys() == Bench().transport.counters().keys()
    assert counters["peer_ports_down"] == [0] * PLANES
    assert counters["ev_states"].keys() == Bench().transport.counters()["ev_states"].keys()
    assert counters["windows"].keys() == Bench().transport.counters()["windows"].keys()
    assert counters["state_bytes"].keys() == Bench().transport.counters()["state_bytes"].keys()


def test_it_has_no_evs(bare: Bare) -> None:
    assert not any(map(any, bare.ev_rows()))
    assert (bare.ev_table(5), bare.ev_profiles(), bare.take_ev_events(9)) == ([], [], [])
    assert (bare.reverse_paths(), bare.denied_paths(), bare.link_table(), bare.overfull()) == ([], [], {}, [])
    with pytest.raises(RefusedError, match="bare has no EVs"):
        bare.ev_profile(1)
    with pytest.raises(RefusedError, match="bare probes no EVs"):
        bare.ev_probes(1)


def test_qps_are_found_and_counted(bare: Bare) -> None:
    assert bare.find(5).state == QpState.RTS
    with pytest.raises(RefusedError, match="no QP 7"):
        bare.find(7)
    assert {name: count for name, count in bare.qp_states().items() if count} == {"rts": 1, "error": 1}


def test_packets_come_in_by_its_own_door_until_the_nic_says_otherwise(bare: Bare) -> None:
    assert bare.arrive(0, 0, b"") == "taken"
