"""The life of a QP, which is the same for every transport: states, refusals, flushed work, set-up time."""

from typing import Any

import pytest

from mrcfabric.node import Input, Rank
from mrcfabric.topology import Topology
from nicd.compose import nic_config
from nicd.core.commands import ConnectQp, CreateQp, DestroyQp, ModifyQp, PostWrite, RegisterMemory
from nicd.core.events import CommandDone, Completion, QpChange
from nicd.core.nic import Nic
from nicd.core.transports import TRANSPORTS

QPN, VA, SIZE = 100, 0x1000, 8192
CONNECT = ConnectQp(0, QPN, 1, 200, 5, 7)
RTS = ModifyQp(0, QPN, "rts")

pytestmark = pytest.mark.parametrize("transport", sorted(TRANSPORTS))


class One:
    """A NIC with one region and one QP in INIT; whatever it sends is lost."""

    def __init__(self, transport: str, *, ready: bool = True, **nic: Any) -> None:
        topology = Topology(
            name="one", planes=2, t0_per_plane=1, t1_per_plane=1, nics_per_t0=2, evs_per_qp=8, reserve_evs_per_qp=0,
            nic={"transport": transport, **nic},
        )  # fmt: skip
        self.nic = Nic(nic_config(topology, "h000"))
        self.now = 0
        self.events: list[Any] = []
        self.do(RegisterMemory(0, VA, SIZE, 1, 7))
        self.do(CreateQp(0, QPN))
        if ready:
            assert [self.do(CONNECT), self.do(RTS)] == [None, None]

    def do(self, command: Any) -> str | None:
        """Why the command was refused; None: it was not."""
        self.now += 1
        self.nic.advance([Input(self.now, int(Rank.COMMAND), 0, self.now, command)], self.now)
        self.events += self.nic.drain_events()
        done: CommandDone = self.told(CommandDone)[-1]
        return done.error

    def wait(self, length_ns: int) -> None:
        self.now += length_ns
        self.nic.advance([], self.now)
        self.events += self.nic.drain_events()

    def told(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def states(self) -> list[str]:
        return [change.target for change in self.told(QpChange)]


def work(wr_id: int = 1, length: int = 4, imm: int | None = None, remote: int = VA, r_key: int = 7) -> PostWrite:
    return PostWrite(0, QPN, wr_id, 1, VA, length, remote, r_key, imm)


@pytest.mark.spec("MRC 1.0", "3")
def test_it_sends_in_the_last_of_its_states(transport: str) -> None:
    one = One(transport, ready=False)
    assert "is in state init, not rts" in (one.do(work()) or "")
    assert "cannot go from init to rts" in (one.do(RTS) or "")
    assert one.do(CONNECT) is None
    assert "is in state rtr, not rts" in (one.do(work()) or "")
    assert one.do(RTS) is None
    assert one.do(work()) is None
    assert one.states() == ["init", "rtr", "rts"]
    (row,) = one.nic.qp_table()
    assert (row["qpn"], row["state"], row["reason"], row["peer_index"]) == (QPN, "rts", "modified", 1)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (work(length=0), "a message of 0 bytes"),
        (work(length=1 << 32), "possible are 1 to 2**32 - 1"),
        (work(length=SIZE + 1), "are not inside region 1"),
        (work(imm=1 << 32), "is no immediate of 32 bits"),
        (work(imm=-1), "is no immediate of 32 bits"),
        (work(remote=(1 << 64) - 3), "remote address out of range"),
        (work(r_key=1 << 32), "R_Key or remote address"),
        (work(r_key=-1), "R_Key or remote address"),
    ],
)
def test_work_that_cannot_be_done_is_refused(transport: str, asked: PostWrite, why: str) -> None:
    one = One(transport)
    assert why in (one.do(asked) or "")
    assert one.states()[-1] == "rts"


def test_unfinished_work_has_a_bound(transport: str) -> None:
    one = One(transport, work_requests_max=2)
    assert [one.do(work()), one.do(work())] == [None, None]
    assert "has 2 unfinished messages" in (one.do(work()) or "")


@pytest.mark.parametrize("ends", [ModifyQp(0, QPN, "error"), DestroyQp(0, QPN)])
def test_its_end_flushes_what_is_unfinished(transport: str, ends: Any) -> None:
    one = One(transport)
    for wr_id in range(3):
        assert one.do(work(wr_id, SIZE // 2)) is None
    assert one.do(ends) is None
    assert [(done.wr_id, done.status) for done in one.told(Completion)] == [(number, "flushed") for number in range(3)]
    assert one.nic.counters()["qp_errors"] == isinstance(ends, ModifyQp)


@pytest.mark.parametrize(("connected", "state"), [(False, "init"), (True, "rtr")])
def test_who_stays_in_set_up_and_receives_nothing_fails(transport: str, connected: bool, state: str) -> None:
    one = One(transport, ready=False, setup_timeout_ns=20_000)
    if connected:
        assert one.do(CONNECT) is None
    one.wait(19_990)
    assert one.states()[-1] == state
    one.wait(20)
    assert one.states()[-1] == "error"
    assert one.told(QpChange)[-1].reason == f"setup_timeout_in_{state}"
    assert one.nic.counters()["qp_errors"] == connected, "nobody counts on a QP that has no peer"
