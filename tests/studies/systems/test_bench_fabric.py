"""The fabrics of the rows, and shares of a line with headers paid."""

import pytest

from studies.flows import Flow
from studies.systems.bench_fabric import CONTROL_DSCP, PLAIN_ECMP, PLAIN_RC, Watch, fabric, line_bps, measure


def test_a_line_pays_the_headers_of_its_transport() -> None:
    mrc = fabric("x", 2, 2)
    rc = fabric("x", 2, 2, nic={"transport": "rc"})
    irn = fabric("x", 2, 2, nic={"transport": "rc", "rc_recovery": "selective"})
    assert line_bps(rc) == pytest.approx(100e9 * 4096 / (4096 + 64 + 38))
    assert line_bps(irn) == pytest.approx(100e9 * 4096 / (4096 + 80 + 38))
    assert line_bps(mrc) < line_bps(irn)
    assert line_bps(rc, 4) == 4 * line_bps(rc)


@pytest.mark.parametrize("planes", [1, 2])
def test_shares_are_of_one_port_and_the_watch_keeps_the_fabric(planes: int) -> None:
    topology = fabric("x", 2, 2, planes=planes, nic=PLAIN_RC, switch=PLAIN_ECMP, dscp=CONTROL_DSCP)
    found = measure(topology, (Flow(0, 2, 1, qps=planes, group="a"), Flow(1, 0, 1, group="b")), 50_000, 150_000)
    assert found.group("a")[0] == pytest.approx(planes, rel=0.03)
    assert found.group("b")[0] == pytest.approx(1, rel=0.05)
    assert found.watch.qp("h000", 16)["peer_index"] == 2
    assert found.watch.fabric.now_ns == 160_000


def test_a_watch_strikes_with_what_it_was_given() -> None:
    struck: list[int] = []

    class Other:
        def strike(self, fabric: object, lines: object) -> None:
            struck.append(1)

    watch = Watch((Other(),))
    watch.strike(None, ())  # type: ignore[arg-type]
    assert struck == [1]
