"""One T0 at one look: cut, silent, coming back; and knobs that make no sense."""

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from orchestrator.mapper.link_evidence import LinkEvidence
from orchestrator.mapper.link_verdicts import Cable, LinkVerdict, Verdict
from orchestrator.mapper.t0_view import Case, MapperSettings, T0View, Verdicts, withhold
from tests.support.probed import ProbedFabric

SHAPE = Topology(
    name="view", planes=1, t0_per_plane=1, t1_per_plane=2, nics_per_t0=3, evs_per_qp=4, reserve_evs_per_qp=2
)
KNOBS = MapperSettings(window_ns=1_000, heal_ns=20, settle_ns=1)
NIC_LINK, UP_LINK = Cable(0, 0, 1, None), Cable(0, 0, None, 1)


class Viewed:
    """One T0, looked at every ten nanoseconds."""

    def __init__(self) -> None:
        self.fabric = ProbedFabric(SHAPE)
        self.evidence = LinkEvidence(SHAPE.nics, KNOBS.window_ns)
        self.cases: dict[Cable, Case] = {}
        self.at_ns = 0
        self.look(0)

    def look(self, rounds: int) -> Verdicts:
        self.fabric.rounds(rounds)
        self.at_ns += 10
        for nic, table in self.fabric.tables().items():
            self.evidence.enter(nic, self.at_ns, table)
        self.view = T0View(SHAPE, KNOBS, self.evidence, self.cases, 0, 0, self.at_ns)
        return self.view.judge()


def test_carrier_is_believed_at_once() -> None:
    viewed = Viewed()
    viewed.look(10)
    viewed.fabric.no_carrier.add((1, 0))
    found = viewed.look(1)[NIC_LINK]
    assert (found.verdict, found.note) == (Verdict.DOWN, "no carrier")


def test_silence_is_believed_after_so_many_probes() -> None:
    viewed = Viewed()
    viewed.look(100)
    viewed.fabric.losses[NIC_LINK.name] = 1.0
    verdicts = [viewed.look(1)[NIC_LINK].verdict for _ in range(KNOBS.silent_probes)]
    assert verdicts[-1] == Verdict.DOWN
    assert Verdict.DOWN not in verdicts[:-1]


def test_a_link_all_of_whose_probes_are_lost_of_late_is_fading_until_it_is_down() -> None:
    viewed = Viewed()
    viewed.look(100)
    viewed.fabric.losses[UP_LINK.name] = 1.0
    viewed.look(3)
    assert viewed.view.fading == {UP_LINK}


def test_a_cut_link_that_comes_back_is_a_suspect_until_it_has_healed() -> None:
    viewed = Viewed()
    viewed.look(10)
    viewed.fabric.losses[UP_LINK.name] = 1.0
    assert viewed.look(20)[UP_LINK].verdict == Verdict.DOWN
    viewed.fabric.losses.clear()
    verdicts = [viewed.look(10)[UP_LINK].verdict for _ in range(5)]
    assert verdicts[:3] == [Verdict.SUSPECT] * 3
    assert verdicts[-1] == Verdict.GOOD
    assert viewed.cases == {}


def test_what_was_lost_while_the_cut_lasted_is_not_held_against_it() -> None:
    viewed = Viewed()
    viewed.look(10)
    viewed.fabric.losses[NIC_LINK.name] = 1.0
    viewed.look(20)
    viewed.fabric.losses.clear()
    viewed.look(10)
    assert viewed.look(10)[NIC_LINK].lost == 0


def test_a_case_outlives_its_witnesses() -> None:
    viewed = Viewed()
    viewed.fabric.losses[UP_LINK.name] = 0.4
    assert viewed.look(100)[UP_LINK].verdict == Verdict.GRAY
    viewed.fabric.dark |= {0, 1, 2}
    found = viewed.look(10)[UP_LINK]
    assert found.verdict == Verdict.GRAY
    assert "no NIC below p0-t0-0 could try it" in found.note


def test_accusations_of_a_dying_switch_are_withheld() -> None:
    verdicts = {NIC_LINK: LinkVerdict(NIC_LINK, Verdict.DOWN), UP_LINK: LinkVerdict(UP_LINK, Verdict.GOOD)}
    withhold(verdicts, [NIC_LINK, UP_LINK], "p0-t0-0")
    assert verdicts[NIC_LINK].verdict == Verdict.SUSPECT
    assert verdicts[UP_LINK].verdict == Verdict.GOOD


@pytest.mark.parametrize(
    "knob", [{"window_ns": 0}, {"silent_probes": 0}, {"tolerated": 0.0}, {"false_alarm": 1.0}, {"odds": 0.5}]
)
def test_knobs_that_make_no_sense_are_refused(knob: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=f"mapper.{next(iter(knob))}"):
        MapperSettings(**{"window_ns": 1, "heal_ns": 1, "settle_ns": 1, **knob})  # type: ignore[arg-type]
