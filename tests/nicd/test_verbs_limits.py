"""Limits of a QP through the host API: asked for, handed to the peer, agreed."""

from pathlib import Path
from typing import Any

import pytest

import nicd.daemon
import switchd.daemon
from nicd.core.commands import CreateQp, ModifyQp
from nicd.verbs import AsyncDevice, Endpoint, VerbsError
from nicd.verbs_codec import QpLimits, QpOffer
from nicd.verbs_limits import asked, checked, endpoint_of, known, limits_of, offered
from tests.support.daemons import daemons
from tests.support.verbs_bench import verbs_bench

OFFER = QpOffer(8, 40, True, False, True)
NODES = {"h000": nicd.daemon.build, "h001": nicd.daemon.build, "p0-t0-0": switchd.daemon.build}


def test_an_endpoint_tells_the_peer_what_is_offered() -> None:
    result = {"qpn": 17, **OFFER._asdict()}
    endpoint = endpoint_of(3, 99, result)
    assert endpoint == (3, 17, 99, OFFER)
    # As it comes out of whatever carried it.
    assert offered(list(OFFER)) == {f"peer_{name}": value for name, value in OFFER._asdict().items()}
    assert offered(None) == {}
    assert endpoint_of(3, 99, {"qpn": 17}).offer is None


def test_limits_of_a_connection() -> None:
    limits = QpLimits(8, 16, 40, 50, 1, 0, 1)
    assert limits_of({"qpn": 1, "state": "rtr", **limits._asdict()}) == limits
    assert limits_of({"qpn": 1, "state": "rtr"}) is None


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ({"mpr": True}, "mpr must be a whole number"),
        ({"mpr": -1}, "mpr must be a whole number"),
        ({"incast": 1 << 24}, "incast must be a whole number"),
        ({"trim_nack": 1}, "trim_nack must be true or false"),
    ],
)
def test_what_is_no_limit(args: dict[str, Any], text: str) -> None:
    with pytest.raises(VerbsError, match=text):
        asked(args)


def test_unknown_names_and_shapes() -> None:
    assert checked({"mpr": None, "other": 5}, ("mpr",)) == {}
    with pytest.raises(VerbsError, match="no limit is called 'mrp'"):
        known({"mrp": 5}, ("mpr",))
    for shape in ([1, 2], "offer", 7, [1, 2, 3, 4, 5]):
        with pytest.raises(VerbsError, match="must be"):
            offered(shape)


@pytest.mark.integration
async def test_limits_and_timers_reach_the_nic(tmp_path: Path) -> None:
    async with verbs_bench(tmp_path) as (nics, _), await AsyncDevice.open(str(tmp_path / "h000")) as one:
        qp = await one.create_qp(psn=1, mpr=8, incast=3, dynamic_mpr=True)
        assert await one.connect(qp, Endpoint(0, 5, 6, OFFER)) is None
        await one.start(qp, retry_linear=3)
        create, connect, start = nics[0].commands[-3:]
        assert isinstance(create, CreateQp)
        assert (create.mpr, create.incast, create.dynamic_mpr, create.trim_nack) == (8, 3, True, None)
        assert (connect.peer_mpr, connect.peer_max_wimm, connect.peer_dynamic_mpr) == (8, 40, False)  # type: ignore[union-attr]
        assert isinstance(start, ModifyQp)
        assert (start.state, start.retry_linear, start.retry_exponential) == ("rts", 3, None)
        with pytest.raises(VerbsError, match="no limit is called"):
            await one.create_qp(window=8)


@pytest.mark.integration
@pytest.mark.spec("MRC 1.0", "3")
async def test_two_applications_agree_on_real_nics(tmp_path: Path) -> None:
    path = tmp_path / "{node}.sock"
    async with (
        daemons(NODES, {"verbs": str(path)}),
        await AsyncDevice.open(str(tmp_path / "h000.sock")) as one,
        await AsyncDevice.open(str(tmp_path / "h001.sock")) as two,
    ):
        a, b = await one.create_qp(mpr=9, dynamic_mpr=True), await two.create_qp(max_wimm=33, trim_nack=False)
        there = await one.connect(a, b.local)
        back = await two.connect(b, a.local)
        assert there is not None
        assert back is not None
        assert (there.receive_mpr, there.send_mpr, there.send_wimm) == (9, 32, 33)
        assert (back.receive_mpr, back.send_mpr, back.receive_wimm) == (32, 9, 33)
        assert (there.trim_nack, there.dynamic_mpr) == (back.trim_nack, back.dynamic_mpr) == (0, 0)
        with pytest.raises(VerbsError, match="an MPR of 0"):
            await one.create_qp(mpr=0)
        with pytest.raises(VerbsError, match="no EV profile 3"):
            await one.create_qp(profile=3)
        assert (await one.create_qp(profile=0)).local.qpn
