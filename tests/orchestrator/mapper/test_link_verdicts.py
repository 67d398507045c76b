"""The words of the map."""

from orchestrator.mapper.link_verdicts import Cable, LinkMap, LinkVerdict, Verdict

NIC_LINK = Cable(3, 0, 2, None)
UP_LINK = Cable(3, 0, None, 1)


def test_cables_have_the_names_of_the_topology() -> None:
    assert (NIC_LINK.name, NIC_LINK.kind) == ("h002~p3-t0-0", "nic-t0")
    assert (UP_LINK.name, UP_LINK.kind) == ("p3-t0-0~p3-t1-1", "t0-t1")


def test_remarks_add_up_and_a_withheld_verdict_is_a_suspicion() -> None:
    found = LinkVerdict(NIC_LINK, Verdict.DOWN, note="no carrier").noted("or the T0")
    assert found.note == "no carrier; or the T0"
    assert found.withheld("wait").verdict == Verdict.SUSPECT


def test_only_gray_down_and_dead_is_bad() -> None:
    links = [LinkVerdict(NIC_LINK._replace(nic=number), verdict) for number, verdict in enumerate(Verdict)]
    found = LinkMap(5, tuple(links), ("p0-t1-0",))
    assert found.bad == ["p0-t1-0", "h002~p3-t0-0", "h003~p3-t0-0"]
    assert not found.all_good
    assert LinkMap(5, (links[0],), ()).all_good
    assert found.sums()[3, "nic-t0", "gray"] == 1
