"""Checks and watches over daemons that really run; and figures of a check that make no sense."""

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from orchestrator.fabric import Fabric
from orchestrator.mapper.fault_direction import Direction
from orchestrator.mapper.link_testing import LinkTesting
from orchestrator.mapper.link_verdicts import Verdict
from orchestrator.mapper.mapping import check_settings
from tests.orchestrator.running import DEADLINE_S, MESSAGE_BYTES, SMALL, broken, connect, totals_when_placed
from tests.support.wait import eventually

PERIOD_NS = 20_000
NIC_LINK, UP_LINK = "h001~p1-t0-1", "p0-t0-0~p0-t1-1"


@pytest.mark.integration
async def test_a_check_of_a_sleeping_fabric_finds_it_good_and_leaves_it_asleep(
    fabric: Fabric, links: LinkTesting
) -> None:
    found = await links.check(rounds=20, period_ns=PERIOD_NS)
    assert found.all_good
    assert {link.probes for link in found.links} == {20}
    await eventually(lambda: fabric.time.state == "sleep", DEADLINE_S)


@pytest.mark.integration
@pytest.mark.spec("arXiv 2605.04333", "8")
async def test_a_check_names_what_is_bad(fabric: Fabric, links: LinkTesting) -> None:
    await broken(fabric, "loss", UP_LINK, share_ppm=300_000)
    await broken(fabric, "link_down", NIC_LINK)
    found = await links.check(rounds=60, period_ns=PERIOD_NS)
    verdicts = {link.cable.name: link.verdict for link in found.links}
    assert verdicts[NIC_LINK] == Verdict.DOWN
    assert verdicts[UP_LINK] == Verdict.GRAY
    assert set(found.bad) == {NIC_LINK, UP_LINK}
    assert {link.cable.name: link.direction for link in found.links if link.direction} == {UP_LINK: Direction.BOTH}


@pytest.mark.integration
async def test_a_check_shorter_than_its_questions_keeps_its_verdicts(fabric: Fabric, links: LinkTesting) -> None:
    await broken(fabric, "link_down", UP_LINK)
    found = await links.check(rounds=8, period_ns=PERIOD_NS)
    assert found.bad == [UP_LINK]
    assert not found.of(Verdict.UNKNOWN), "what was found first has not slid out of the window"
    assert {link.cable.name for link in found.links if link.direction} == {UP_LINK}


@pytest.mark.integration
async def test_a_dead_t1_is_named_and_a_dead_nic_leaves_its_links_open(fabric: Fabric, links: LinkTesting) -> None:
    await broken(fabric, "switch_crash", "p0-t1-1")
    await broken(fabric, "nic_crash", "h001")
    found = await links.check(rounds=20, period_ns=PERIOD_NS)
    unknown = {link.cable.name for link in found.of(Verdict.UNKNOWN)}
    assert {"h001~p0-t0-1", "h001~p1-t0-1", "p0-t0-1~p0-t1-0"} <= unknown
    assert found.bad == [UP_LINK]
    note = next(link.note for link in found.links if link.cable.name == UP_LINK)
    assert "or p0-t1-1 itself" in note


@pytest.mark.parametrize(
    "figures", [{"rounds": 0}, {"loss": 0.0}, {"loss": 1.0}, {"period_ns": 5}, {"period_ns": 10**12}]
)
def test_figures_that_make_no_sense_are_refused(figures: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=rf"{next(iter(figures))}"):
        check_settings(SMALL, **figures)  # type: ignore[arg-type]


def test_a_check_lasts_as_long_as_its_loss_needs() -> None:
    figures = [check_settings(Topology.demo(), loss=loss) for loss in (0.05, 0.01)]
    few, many = (one.mapper.window_ns // one.period_ns for one in figures)
    assert few < 100 < many < 400


@pytest.mark.integration
async def test_a_busy_fabric_accuses_nobody(fabric: Fabric, links: LinkTesting) -> None:
    write = await connect(fabric)
    mapping = await links.watch(PERIOD_NS)
    for wr_id in range(8):
        await fabric.command("h000", "post_write", {**write, "wr_id": wr_id})
    watch = mapping.watch
    await totals_when_placed(fabric, 8 * MESSAGE_BYTES)
    await eventually(lambda: watch.latest is not None and watch.latest.all_good, DEADLINE_S)
    assert watch.accusations == 0
